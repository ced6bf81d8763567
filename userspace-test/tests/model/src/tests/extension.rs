// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the supported extensions for every operation and every kind of device.

use crate::rust::model::{
    code::{
        DatError,
        Kind, //
    },
    event::Operation,
    extension::Extensions,
};

/// Kinds of devices: whether they are iWARP, whether they support atomic operations, and the bits
/// that a query returns.
const DEVICES: [(bool, bool, u32); 4] = [
    (false, true, 0x7),
    (false, false, 0x1),
    (true, true, 0),
    (true, false, 0),
];

#[test]
fn a_query_returns_the_supported_extensions() {
    for (is_iwarp, has_atomics, bits) in DEVICES {
        let extensions = Extensions::new(is_iwarp, has_atomics);
        assert_eq!(extensions.bits(), bits);
        assert_eq!(extensions.has_atomics(), bits & 0x6 != 0);
        for number in 0..=12 {
            let operation = Operation::from_number(number).expect("operation");
            let bit = match number {
                8 | 9 | 12 => 0x1,
                10 => 0x2,
                11 => 0x4,
                _ => 0,
            };
            let expected = if bits & bit == bit {
                Ok(())
            } else {
                Err(DatError::from(Kind::ModelNotSupported))
            };
            assert_eq!(
                extensions.check_supported(operation),
                expected,
                "{operation:?}"
            );
        }
    }
}

#[test]
fn without_a_device_there_are_none() {
    assert_eq!(Extensions::default().bits(), 0);
    assert!(!Extensions::default().has_atomics());
}

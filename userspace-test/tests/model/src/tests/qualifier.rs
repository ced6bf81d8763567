// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests connection qualifiers, and the header of qualifiers above 65535.

use crate::rust::model::qualifier::{
    decode,
    Qualifier,
    OVERHEAD,
    SHARED_PORT, //
};
use proptest::prelude::*;

#[test]
fn ports_are_ports_and_wide_qualifiers_share_one() {
    assert_eq!(Qualifier::new(0), None);
    assert_eq!(Qualifier::new(1), Some(Qualifier::Port(1)));
    assert_eq!(Qualifier::new(65535), Some(Qualifier::Port(65535)));
    assert_eq!(Qualifier::new(65536), Some(Qualifier::Extended(65536)));
    assert_eq!(Qualifier::Port(7175).port(), 7175);
    assert_eq!(Qualifier::Extended(65536).port(), SHARED_PORT);
    assert_eq!(SHARED_PORT, 299);
}

#[test]
fn the_header_byte_by_byte() {
    let mut out = [0xee; 20];
    let framed = Qualifier::Extended(0x0102_0304_0506_0708).encode(b"abc", &mut out);
    assert_eq!(framed, Some(15));
    assert_eq!(
        out,
        *b"KD\x01\x03\x01\x02\x03\x04\x05\x06\x07\x08abc\xee\xee\xee\xee\xee"
    );
}

#[test]
fn a_port_needs_no_header() {
    let mut out = [0xee; 4];
    assert_eq!(Qualifier::Port(5).overhead(), 0);
    assert_eq!(Qualifier::Port(5).encode(b"abc", &mut out), Some(3));
    assert_eq!(out, *b"abc\xee");
    assert_eq!(Qualifier::Port(5).encode(b"abcde", &mut out), None);
}

#[test]
fn private_data_without_room_is_refused() {
    let wide = Qualifier::Extended(1 << 20);
    assert_eq!(wide.encode(&[], &mut [0; OVERHEAD - 1]), None);
    assert_eq!(wide.encode(&[], &mut [0; OVERHEAD]), Some(OVERHEAD));
    assert_eq!(wide.encode(&[1], &mut [0; OVERHEAD]), None);
    assert_eq!(wide.encode(&[1; 255], &mut [0; 300]), Some(OVERHEAD + 255));
    assert_eq!(wide.encode(&[1; 256], &mut [0; 300]), None);
}

#[test]
fn a_wrong_byte_of_the_header_is_detected() {
    let mut good = [0; OVERHEAD + 2];
    Qualifier::Extended(1 << 16).encode(b"ab", &mut good);
    assert_eq!(decode(&good), Some((1 << 16, &b"ab"[..])));
    for (at, byte) in [(0, b'k'), (1, b'd'), (2, 0), (2, 2), (3, 3), (9, 0)] {
        let mut bad = good;
        bad[at] = byte;
        assert_eq!(decode(&bad), None, "byte {at} is {byte}");
    }
    for length in 0..good.len() {
        assert_eq!(decode(&good[..length]), None, "cut to {length} bytes");
    }
}

proptest! {
    #[test]
    fn unframing_inverts_framing_despite_padding(
        raw in 65536_u64..,
        data in prop::collection::vec(any::<u8>(), 0..=255),
        padding in 0_usize..64,
    ) {
        let mut out = vec![0; OVERHEAD + data.len() + padding];
        let framed = Qualifier::Extended(raw).encode(&data, &mut out);
        prop_assert_eq!(framed, Some(OVERHEAD + data.len()));
        prop_assert_eq!(decode(&out), Some((raw, &data[..])));
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_framed_to_the_same_bytes(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        dress in any::<bool>(),
    ) {
        if dress {
            for (to, from) in bytes.iter_mut().zip(*b"KD\x01") {
                *to = from;
            }
        }
        if let Some((raw, data)) = decode(&bytes) {
            prop_assert!(raw > 65535);
            let mut again = vec![0; OVERHEAD + data.len()];
            Qualifier::Extended(raw).encode(data, &mut again);
            prop_assert_eq!(&again[..], &bytes[..again.len()]);
        } else if let [b'K', b'D', 1, length, q0, q1, q2, q3, q4, q5, _, _, body @ ..] = &bytes[..] {
            let narrow = [q0, q1, q2, q3, q4, q5].iter().all(|byte| **byte == 0);
            prop_assert!(narrow || body.len() < usize::from(*length));
        }
    }
}

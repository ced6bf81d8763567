// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What completion flags mean, for every status.

use crate::rust::model::{
    completion::{
        signals,
        CompletionFlags,
        Signal, //
    },
    event::DtoStatus,
};

fn flags(bits: u32) -> CompletionFlags {
    CompletionFlags::from_bits(bits).expect("flags")
}

#[test]
fn success_obeys_the_flags() {
    for (bits, signal) in [
        (0x00, Signal::Wakes),
        (0x01, Signal::Dropped),
        (0x02, Signal::Wakes),
        (0x04, Signal::Quiet),
        (0x05, Signal::Dropped),
        (0x08, Signal::Wakes),
        (0x10, Signal::Wakes),
        (0x1a, Signal::Wakes),
        (0x1e, Signal::Quiet),
        (0x1f, Signal::Dropped),
    ] {
        assert_eq!(
            signals(flags(bits), DtoStatus::Success),
            signal,
            "{bits:#x}"
        );
    }
}

#[test]
fn failure_is_never_hidden() {
    for number in 1..=12 {
        let status = DtoStatus::from_number(number).expect("status");
        for bits in 0..=0x1f {
            assert_eq!(signals(flags(bits), status), Signal::Wakes, "{status:?}");
        }
    }
}

#[test]
fn unknown_flags_are_refused() {
    for bits in 0..=0x1f {
        assert!(CompletionFlags::from_bits(bits).is_some());
    }
    for bit in 5..32 {
        assert_eq!(CompletionFlags::from_bits(1 << bit), None);
        assert_eq!(CompletionFlags::from_bits((1 << bit) | 1), None);
    }
}

#[test]
fn has_wants_every_flag() {
    let both = flags(0x0c);
    assert!(both.has(CompletionFlags::UNSIGNALLED));
    assert!(both.has(CompletionFlags::BARRIER_FENCE));
    assert!(both.has(both));
    assert!(!CompletionFlags::UNSIGNALLED.has(both));
    assert!(!both.has(CompletionFlags::SUPPRESS));
    assert!(!both.has(CompletionFlags::EVD_THRESHOLD));
    assert!(flags(0x02).has(CompletionFlags::SOLICITED_WAIT));
}

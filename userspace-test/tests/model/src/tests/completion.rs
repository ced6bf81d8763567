// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the effect of completion flags for every operation, mode and status.

use crate::rust::model::{
    completion::{
        notification_for,
        CompletionFlags,
        Notification,
        WakeMode, //
    },
    event::{
        DtoStatus,
        Operation, //
    },
};

const MODES: [WakeMode; 3] = [
    WakeMode::Threshold,
    WakeMode::Unsignalled,
    WakeMode::Solicited,
];

/// Returns these flags, for a send that allows all of them.
fn flags(bits: u32) -> CompletionFlags {
    CompletionFlags::of_dto(bits, Operation::Send, WakeMode::Unsignalled).expect("flags")
}

#[test]
fn success_obeys_the_flags() {
    for (bits, signal) in [
        (0x00, Notification::Wake),
        (0x01, Notification::None),
        (0x02, Notification::Wake),
        (0x04, Notification::Quiet),
        (0x05, Notification::None),
        (0x08, Notification::Wake),
        (0x0a, Notification::Wake),
        (0x0e, Notification::Quiet),
        (0x0f, Notification::None),
    ] {
        for mode in [WakeMode::Threshold, WakeMode::Unsignalled] {
            let found = notification_for(flags(bits), mode, DtoStatus::Success);
            assert_eq!(found, signal, "{bits:#x}");
        }
    }
}

#[test]
fn a_drained_message_wakes_no_waiter_for_solicited_ones() {
    let plain = CompletionFlags::default();
    let found = notification_for(plain, WakeMode::Solicited, DtoStatus::Success);
    assert_eq!(found, Notification::Quiet);
}

#[test]
fn failure_is_never_hidden() {
    for number in 1..=12 {
        let status = DtoStatus::from_number(number).expect("status");
        for mode in MODES {
            for bits in 0..=0x0f {
                assert_eq!(
                    notification_for(flags(bits), mode, status),
                    Notification::Wake,
                    "{status:?}"
                );
            }
        }
    }
}

#[test]
fn a_marker_has_no_event() {
    for number in 0..=12 {
        let status = DtoStatus::from_number(number).expect("status");
        for mode in MODES {
            let found = notification_for(CompletionFlags::MARKER, mode, status);
            assert_eq!(found, Notification::None, "{status:?}");
        }
    }
    // Its success has none for the same reason as that of a suppressed request.
    assert!(CompletionFlags::MARKER.has(CompletionFlags::SUPPRESS));
    assert!(!flags(0x0f).has(CompletionFlags::MARKER));
}

/// Returns the flags that an operation supports in every mode.
fn known(operation: Operation) -> u32 {
    match operation {
        // Operations that consume a receive of the peer can request a solicited wake-up.
        Operation::Send | Operation::RdmaWriteImmed => 0x0b,
        Operation::Receive
        | Operation::ReceiveWithInvalidate
        | Operation::RecvImmed
        | Operation::RecvMsgImmed => 0,
        Operation::LmrInvalidate => 0x29,
        Operation::LmrFmr => 0x49,
        _ => 0x09,
    }
}

#[test]
fn each_operation_accepts_its_flags_in_each_mode() {
    for number in 0..=12 {
        let operation = Operation::from_number(number).expect("operation");
        for mode in MODES {
            let unsignalled = if mode == WakeMode::Unsignalled {
                0x04
            } else {
                0
            };
            let allowed = known(operation) | unsignalled;
            for bits in 0..0x80 {
                let found = CompletionFlags::of_dto(bits, operation, mode);
                // WITH_NEXT includes SUPPRESS.
                let expected = bits & !allowed == 0 && bits & 0x41 != 0x40;
                assert_eq!(
                    found.is_some(),
                    expected,
                    "{operation:?} {mode:?} {bits:#x}"
                );
            }
            for bit in 7..32 {
                assert_eq!(CompletionFlags::of_dto(1 << bit, operation, mode), None);
            }
        }
    }
}

#[test]
fn an_endpoint_has_one_mode_for_each_direction() {
    for bits in (0..0x100).chain([0x8000_0000, u32::MAX]) {
        let requests = match bits {
            0 | 0x10 => Some(WakeMode::Threshold),
            0x04 => Some(WakeMode::Unsignalled),
            _ => None,
        };
        assert_eq!(WakeMode::of_requests(bits), requests, "{bits:#x}");
        let receives = if bits == 0x02 {
            Some(WakeMode::Solicited)
        } else {
            requests
        };
        assert_eq!(WakeMode::of_receives(bits), receives, "{bits:#x}");
    }
}

#[test]
fn has_requires_every_flag() {
    let both = flags(0x0c);
    assert!(both.has(CompletionFlags::UNSIGNALLED));
    assert!(both.has(CompletionFlags::BARRIER_FENCE));
    assert!(both.has(both));
    assert!(!CompletionFlags::UNSIGNALLED.has(both));
    assert!(!both.has(CompletionFlags::SUPPRESS));
    assert!(flags(0x02).has(CompletionFlags::SOLICITED_WAIT));
}

#[test]
fn all_flags_are_those_of_dat() {
    // DAT_COMPLETION_SUPPRESS_FLAG to DAT_COMPLETION_EVD_THRESHOLD_FLAG.
    assert_eq!(CompletionFlags::ALL, 0x1f);
    // With DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG and KDAPL_COMPLETION_WITH_NEXT_FLAG.
    assert_eq!(CompletionFlags::ALL_OF_KERNEL, 0x7f);
}

#[test]
fn either_fence_makes_a_request_wait() {
    for bits in [0x00, 0x01, 0x08, 0x09, 0x20, 0x21, 0x28, 0x29] {
        let operation = Operation::LmrInvalidate;
        let flags = CompletionFlags::of_dto(bits, operation, WakeMode::Threshold);
        let fenced = flags.expect("flags").is_fenced();
        assert_eq!(fenced, bits & 0x28 != 0, "{bits:#x}");
    }
}

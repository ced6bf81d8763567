// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares records with a mirror of `struct kdapl_event`.

use crate::rust::model::{
    ep::ConnectionEvent,
    event::{
        AsyncEvent,
        DtoStatus,
        Event,
        Operation,
        Record, //
    },
};
use proptest::prelude::*;

/// `struct kdapl_event`, with the fields in the order of the header.
#[repr(C)]
#[derive(Default, PartialEq, Debug)]
struct Mirror {
    number: u32,
    status: u32,
    evd: u64,
    object: u64,
    cookie: u64,
    value: u64,
    operation: u32,
    rmr_context: u32,
    private_data_size: u32,
    immed_data: u32,
    reserved: u64,
}

impl Mirror {
    /// Reads each field at its offset, as little-endian bytes.
    fn of(record: &Record) -> Self {
        let bytes: Vec<u8> = record.iter().flat_map(|word| word.to_le_bytes()).collect();
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let short = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        macro_rules! fields {
            ($($read:ident: $($field:ident)+;)+) => {
                Self { $($($field: $read(std::mem::offset_of!(Self, $field)),)+)+ }
            };
        }
        fields! {
            short: number status operation rmr_context private_data_size immed_data;
            long: evd object cookie value reserved;
        }
    }
}

const EVD: u64 = 0x3000_0000_0012_3456;

#[test]
fn a_record_is_as_large_as_the_struct() {
    assert_eq!(size_of::<Mirror>(), 64);
    assert_eq!(size_of::<Record>(), 64);
}

#[test]
fn dto() {
    let event = Event::Dto {
        ep: 1 << 63,
        cookie: u64::MAX,
        status: DtoStatus::Transport,
        operation: Operation::RdmaRead,
        length: 1 << 40,
        rmr_context: 0xdead_beef,
        immed_data: 0,
    };
    let mirror = Mirror {
        number: 0x0001,
        status: 8,
        evd: EVD,
        object: 1 << 63,
        cookie: u64::MAX,
        value: 1 << 40,
        operation: 2,
        rmr_context: 0xdead_beef,
        ..Mirror::default()
    };
    assert_eq!(Mirror::of(&event.encode(EVD)), mirror);
}

#[test]
fn extensions_have_a_number_of_their_own() {
    for (operation, number) in [
        (Operation::RdmaWriteImmed, 8),
        (Operation::RecvImmed, 9),
        (Operation::FetchAdd, 10),
        (Operation::CmpSwap, 11),
        (Operation::RecvMsgImmed, 12),
    ] {
        let event = Event::Dto {
            ep: 5,
            cookie: 6,
            status: DtoStatus::RemoteAccess,
            operation,
            length: 8,
            rmr_context: 0,
            immed_data: 0x8000_0001,
        };
        let mirror = Mirror {
            number: 0x4_0000,
            status: 6,
            evd: EVD,
            object: 5,
            cookie: 6,
            value: 8,
            operation: number,
            immed_data: 0x8000_0001,
            ..Mirror::default()
        };
        assert_eq!(event.number(), 0x4_0000);
        assert_eq!(Mirror::of(&event.encode(EVD)), mirror);
    }
}

#[test]
fn request() {
    let event = Event::Request {
        cr: 11,
        psp: 22,
        conn_qual: 65_535,
        private_data_size: 56,
    };
    let mirror = Mirror {
        number: 0x2001,
        evd: EVD,
        object: 11,
        cookie: 22,
        value: 65_535,
        private_data_size: 56,
        ..Mirror::default()
    };
    assert_eq!(Mirror::of(&event.encode(EVD)), mirror);
}

#[test]
fn connection() {
    for (event, number) in [
        (ConnectionEvent::Established, 0x4001),
        (ConnectionEvent::PeerRejected, 0x4002),
        (ConnectionEvent::NonPeerRejected, 0x4003),
        (ConnectionEvent::AcceptCompletionError, 0x4004),
        (ConnectionEvent::Disconnected, 0x4005),
        (ConnectionEvent::Broken, 0x4006),
        (ConnectionEvent::TimedOut, 0x4007),
        (ConnectionEvent::Unreachable, 0x4008),
    ] {
        let event = Event::Connection {
            event,
            ep: 7,
            private_data_size: 196,
            reason: 28,
        };
        let mirror = Mirror {
            number,
            status: 28,
            evd: EVD,
            object: 7,
            private_data_size: 196,
            ..Mirror::default()
        };
        assert_eq!(Mirror::of(&event.encode(EVD)), mirror);
    }
}

#[test]
fn asynchronous() {
    for (cause, number) in [
        (AsyncEvent::EvdOverflow, 0x8001),
        (AsyncEvent::IaCatastrophic, 0x8002),
        (AsyncEvent::EpBroken, 0x8003),
    ] {
        let event = Event::Async {
            cause,
            object: 9,
            reason: 3,
        };
        let mirror = Mirror {
            number,
            status: 3,
            evd: EVD,
            object: 9,
            ..Mirror::default()
        };
        assert_eq!(Mirror::of(&event.encode(EVD)), mirror);
    }
}

#[test]
fn software() {
    let mirror = Mirror {
        number: 0x1_0001,
        evd: EVD,
        cookie: 0xffff_8000_0000_0000,
        ..Mirror::default()
    };
    let event = Event::Software {
        pointer: 0xffff_8000_0000_0000,
    };
    assert_eq!(Mirror::of(&event.encode(EVD)), mirror);
}

#[test]
fn unknown_numbers_are_no_event() {
    const UNKNOWN: [u64; 10] = [
        0, 2, 0x1002, 0x2002, 0x4000, 0x4009, 0x8004, 0x1_0002, 0x3_ffff, 0x4_0001,
    ];
    for number in UNKNOWN {
        assert_eq!(Event::decode(&[number, 0, 0, 0, 0, 0, 0, 0]), None);
    }
    // A DTO with an unknown status, or an unknown operation.
    assert_eq!(Event::decode(&[1 | (13 << 32), 0, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(Event::decode(&[0x4_0000, 0, 0, 0, 0, 13, 0, 0]), None);
    // A core operation with the event number of the extensions, and the reverse.
    assert_eq!(Event::decode(&[0x4_0000, 0, 0, 0, 0, 7, 0, 0]), None);
    assert_eq!(Event::decode(&[1, 0, 0, 0, 0, 8, 0, 0]), None);
    // A bind without a valid status.
    assert_eq!(
        Event::decode(&[0x1001 | (13 << 32), 0, 0, 0, 0, 0, 0, 0]),
        None
    );
}

#[test]
fn numbers_convert_in_both_directions() {
    for n in 0..=12 {
        assert_eq!(DtoStatus::from_number(n).map(DtoStatus::number), Some(n));
    }
    for n in 0..=12 {
        assert_eq!(Operation::from_number(n).map(Operation::number), Some(n));
    }
}

/// Returns any event.
fn any_event() -> impl Strategy<Value = Event> {
    let dto = (any::<[u64; 3]>(), 0..=12_u32, 0..=12_u32, any::<[u32; 2]>()).prop_map(
        |([ep, cookie, length], status, operation, [rmr_context, immed_data])| Event::Dto {
            ep,
            cookie,
            status: DtoStatus::from_number(status).expect("status"),
            operation: Operation::from_number(operation).expect("operation"),
            length,
            rmr_context,
            immed_data,
        },
    );
    let bind = (any::<[u64; 2]>(), 0..=12_u32).prop_map(|([rmr, cookie], status)| Event::RmrBind {
        rmr,
        cookie,
        status: DtoStatus::from_number(status).expect("status"),
    });
    let request =
        (any::<[u64; 3]>(), any::<u32>()).prop_map(|([cr, psp, conn_qual], private_data_size)| {
            Event::Request {
                cr,
                psp,
                conn_qual,
                private_data_size,
            }
        });
    let connection = (0x4001..=0x4008_u32, any::<u64>(), any::<[u32; 2]>()).prop_map(
        |(number, ep, [private_data_size, reason])| Event::Connection {
            event: ConnectionEvent::from_number(number).expect("event"),
            ep,
            private_data_size,
            reason,
        },
    );
    let cause =
        (0x8001..=0x8003_u32, any::<u64>(), any::<u32>()).prop_map(|(number, object, reason)| {
            Event::Async {
                cause: AsyncEvent::from_number(number).expect("fault"),
                object,
                reason,
            }
        });
    let software = any::<u64>().prop_map(|pointer| Event::Software { pointer });
    prop_oneof![dto, bind, request, connection, cause, software]
}

proptest! {
    #[test]
    fn decoding_inverts_encoding(event in any_event(), evd in any::<u64>()) {
        prop_assert_eq!(Event::decode(&event.encode(evd)), Some((event, evd)));
    }

    #[test]
    fn any_record_is_decoded_or_refused(
        record in any::<Record>(),
        number in prop_oneof![4 => 0..0x1_1000_u64, 1 => 0x4_0000..0x4_0010_u64],
    ) {
        let mut record = record;
        record[0] = (record[0] & !0xffff_ffff) | number;
        if let Some((event, evd)) = Event::decode(&record) {
            // Encoding writes every field that decoding reads.
            prop_assert_eq!(Event::decode(&event.encode(evd)), Some((event, evd)));
        }
    }
}

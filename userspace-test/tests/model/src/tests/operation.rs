// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the properties of each operation with a table, and the length check with arithmetic.

use crate::rust::model::{
    code::{
        Arg,
        DatError,
        Kind, //
    },
    event::Operation,
    handle::Direction,
    operation::ATOMIC_SIZE,
};
use proptest::prelude::*;

/// Number; whether the operation is a request, writes to local memory, is an extension, is atomic;
/// positions of the segments, the remote memory (0: none) and the flags in its call. A bind and a
/// registration have no number of segments (0). An atomic operation and a read into an RMR have one
/// segment.
type Row = (u32, bool, bool, bool, bool, (u32, u32, u32));

const TABLE: [Row; 15] = [
    (0, true, false, false, false, (2, 0, 5)),
    (1, true, false, false, false, (2, 5, 6)),
    (2, true, true, false, false, (2, 5, 6)),
    (3, false, true, false, false, (2, 0, 5)),
    (4, false, true, false, false, (2, 0, 5)),
    (5, true, false, false, false, (0, 0, 8)),
    (6, true, false, false, false, (0, 0, 9)),
    (7, true, false, false, false, (0, 0, 4)),
    (8, true, false, true, false, (2, 5, 7)),
    (9, false, true, true, false, (2, 0, 5)),
    (10, true, true, true, true, (3, 5, 6)),
    (11, true, true, true, true, (4, 6, 7)),
    (12, false, true, true, false, (2, 0, 5)),
    (0x100, true, false, false, false, (2, 0, 5)),
    (0x101, true, true, false, false, (2, 4, 5)),
];

fn operation(number: u32) -> Operation {
    Operation::from_number(number).expect("operation")
}

#[test]
fn each_operation_is_as_in_the_table() {
    for (number, is_request, writes_local_memory, is_extension, is_atomic, places) in TABLE {
        let operation = operation(number);
        let direction = if is_request {
            Direction::Request
        } else {
            Direction::Receive
        };
        let position = |arg| DatError::Invalid(arg).code(operation.order()) & 0xff;
        let (segments, remote, flags) = places;
        assert_eq!(operation.direction(), direction, "{operation:?}");
        assert_eq!(
            operation.writes_local_memory(),
            writes_local_memory,
            "{operation:?}"
        );
        assert_eq!(operation.is_extension(), is_extension, "{operation:?}");
        assert_eq!(operation.is_atomic(), is_atomic, "{operation:?}");
        let to_rmr = operation == Operation::RdmaReadToRmr;
        assert_eq!(operation.names_local_rmrs(), to_rmr, "{operation:?}");
        let reads = is_atomic || to_rmr || operation == Operation::RdmaRead;
        assert_eq!(operation.reads_remotely(), reads, "{operation:?}");
        let local = match segments {
            0 if operation == Operation::BindMw => 3,
            0 => 0,
            place => place + u32::from(!is_atomic && !to_rmr),
        };
        for (arg, place) in [
            (Arg::SegmentCount, segments),
            (Arg::Segments, local),
            (Arg::RemoteSegment, remote),
            (Arg::Flags, flags),
        ] {
            let subtype = if place == 0 { 0 } else { 36 + place };
            assert_eq!(position(arg), subtype, "{arg:?} of {operation:?}");
        }
        assert_eq!(operation.names_remote_memory(), remote != 0);
    }
    for number in [13, 0xff, 0x102] {
        assert!(Operation::from_number(number).is_none());
    }
}

#[test]
fn an_atomic_operation_is_of_eight_aligned_bytes() {
    let length_error = Err(Kind::LengthError.into());
    for operation in [Operation::FetchAdd, Operation::CmpSwap] {
        for length in [0, 7, 9, 16, u64::MAX] {
            assert_eq!(operation.check_remote(length, 64, 0), length_error);
        }
        for length in 1..8 {
            assert_eq!(operation.check_remote(8, 64, length), length_error);
        }
        for address in 65..72 {
            let unaligned = Err(DatError::Invalid(Arg::RemoteSegment));
            assert_eq!(operation.check_remote(8, address, 0), unaligned);
        }
        for length in [0, 8, 9, u32::MAX] {
            assert_eq!(operation.check_remote(8, u64::MAX - 7, length), Ok(()));
        }
    }
}

proptest! {
    #[test]
    fn remote_segments_are_checked_for_length_and_alignment(
        number in 0..=12_u32,
        length in prop_oneof![0..20_u64, any::<u64>()],
        address in any::<u64>(),
        room in prop_oneof![0..20_u32, any::<u32>()],
    ) {
        let operation = operation(number);
        let expected = if !operation.names_remote_memory() {
            Ok(())
        } else if room != 0 && length > room.into() {
            Err(DatError::from(Kind::LengthError))
        } else if operation.is_atomic() && length != ATOMIC_SIZE {
            Err(Kind::LengthError.into())
        } else if operation.is_atomic() && address & 7 != 0 {
            Err(DatError::Invalid(Arg::RemoteSegment))
        } else {
            Ok(())
        };
        prop_assert_eq!(operation.check_remote(length, address, room), expected);
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares DTO slots with a `HashMap`.

use crate::rust::model::{
    completion::CompletionFlags,
    dto::{
        Dto,
        DtoResult,
        DtoSlots,
        PostMark,
        Scan,
        ScanPart,
        Slot, //
    },
    event::{
        DtoStatus,
        Event,
        Operation, //
    },
};
use proptest::prelude::*;
use std::collections::HashMap;

fn slots(n: usize) -> DtoSlots<Vec<Slot>> {
    DtoSlots::new(vec![Slot::vacant(); n])
}

fn dto(cookie: u64) -> Dto {
    Dto {
        cookie,
        operation: Operation::Send,
        flags: CompletionFlags::default(),
        length: cookie,
        posted: PostMark::NONE,
    }
}

/// Result of a scan that finds this DTO.
fn busy(slot: u32, dto: Dto) -> Scan {
    Scan {
        found: Some((slot, dto)),
        next: Some(slot + 1),
    }
}

/// Result of a scan that finds none before this slot.
fn idle(next: u32) -> Scan {
    Scan {
        found: None,
        next: Some(next),
    }
}

/// Result of a scan that finds none up to the last slot.
const END: Scan = Scan {
    found: None,
    next: None,
};

#[test]
fn no_slot_at_all() {
    let mut none = slots(0);
    assert_eq!(none.capacity(), 0);
    assert_eq!(none.post(dto(1)), None);
    assert_eq!(none.complete(0), None);
    assert_eq!(none.outstanding(), 0);
}

#[test]
fn a_slot_completes_once() {
    let mut two = slots(2);
    let first = two.post(dto(1)).expect("a slot");
    let second = two.post(dto(2)).expect("a slot");
    assert_ne!(first, second);
    assert_eq!(two.post(dto(3)), None);
    assert_eq!(two.outstanding(), 2);
    assert_eq!(two.complete(first), Some(dto(1)));
    assert_eq!(two.complete(first), None);
    assert_eq!(two.outstanding(), 1);
    two.cancel(second);
    assert_eq!(two.complete(second), None);
    assert_eq!(two.outstanding(), 0);
    for slot in [2, 3, u32::MAX] {
        assert_eq!(two.complete(slot), None);
    }
}

#[test]
fn an_event_has_the_fields_of_its_dto() {
    let posted = dto(7);
    let expected = |status, length, immed_data| Event::Dto {
        ep: 5,
        cookie: 7,
        status,
        operation: posted.operation,
        length,
        rmr_context: 0,
        immed_data,
    };
    let result = DtoResult {
        status: DtoStatus::Success,
        length: 9,
        extra: 11,
    };
    assert_eq!(posted.event(5, result), expected(DtoStatus::Success, 9, 11));
    assert_eq!(posted.flushed(5), expected(DtoStatus::Flushed, 0, 0));
}

#[test]
fn the_operation_tells_what_came_with_a_message() {
    let result = DtoResult {
        status: DtoStatus::Success,
        length: 9,
        extra: 11,
    };
    for (operation, reported, contexts) in [
        (Operation::RecvMsgImmed, Operation::RecvMsgImmed, (0, 11)),
        (
            Operation::ReceiveWithInvalidate,
            Operation::ReceiveWithInvalidate,
            (11, 0),
        ),
        (Operation::SendWithInvalidate, Operation::Send, (0, 11)),
        (Operation::RdmaReadToRmr, Operation::RdmaRead, (0, 11)),
    ] {
        let posted = Dto {
            operation,
            ..dto(7)
        };
        let Event::Dto {
            operation,
            rmr_context,
            immed_data,
            ..
        } = posted.event(5, result)
        else {
            panic!("not the event of a DTO");
        };
        assert_eq!((operation, (rmr_context, immed_data)), (reported, contexts));
    }
}

#[test]
fn a_bind_has_an_event_of_its_own() {
    let bind = Dto {
        operation: Operation::BindMw,
        length: 77,
        ..dto(7)
    };
    let expected = Event::RmrBind {
        rmr: 77,
        cookie: 7,
        status: DtoStatus::Flushed,
    };
    assert_eq!(bind.flushed(5), expected);
}

#[test]
fn a_bind_that_the_device_refuses_is_a_failed_rmr_operation() {
    let bind = Dto {
        operation: Operation::BindMw,
        length: 77,
        ..dto(7)
    };
    let status = |status| {
        let result = DtoResult {
            status,
            length: 0,
            extra: 0,
        };
        match bind.event(5, result) {
            Event::RmrBind { status, .. } => status,
            event => panic!("{event:?}"),
        }
    };
    assert_eq!(status(DtoStatus::Success), DtoStatus::Success);
    assert_eq!(status(DtoStatus::Flushed), DtoStatus::Flushed);
    for failure in [
        DtoStatus::LocalEp,
        DtoStatus::LocalProtection,
        DtoStatus::Transport,
    ] {
        assert_eq!(status(failure), DtoStatus::RmrOperationFailed);
    }
}

#[test]
fn a_time_is_kept_until_the_slot_is_taken_again() {
    let mut two = slots(2);
    let slot = two.post(dto(1)).expect("a slot");
    two.set_post_time(slot, 77);
    // A slot without a DTO in flight, and a slot that does not exist.
    two.set_post_time(1, 78);
    two.set_post_time(2, 79);
    let stamped = Dto {
        posted: PostMark::at(77),
        ..dto(1)
    };
    assert_eq!(two.find_busy(0), busy(slot, stamped));
    assert_eq!(two.complete(slot), Some(stamped));
    assert_eq!(two.find_busy(0), END);
    let again = two.post(dto(2)).expect("a slot");
    assert_eq!(two.find_busy(0), busy(again, dto(2)));
}

#[test]
fn a_scan_examines_a_bounded_number_of_slots() {
    let mut many = slots(1000);
    for cookie in 0..600 {
        many.post(dto(cookie));
    }
    for slot in (0..600).filter(|slot| *slot != 300) {
        many.complete(slot);
    }
    assert_eq!(many.find_busy(0), idle(256));
    assert_eq!(many.find_busy(44), idle(300));
    assert_eq!(many.find_busy(45), busy(300, dto(300)));
    assert_eq!(many.find_busy(256), busy(300, dto(300)));
    assert_eq!(many.find_busy(301), idle(557));
    // Slots that were never used are not examined.
    assert_eq!(many.find_busy(344), END);
    for slot in [557, 600, 1000, u32::MAX] {
        assert_eq!(many.find_busy(slot), END);
    }
}

#[test]
fn a_part_of_a_scan_ends_after_its_dtos_or_a_run_of_free_slots() {
    let mut many = slots(1000);
    for cookie in 0..600 {
        many.post(dto(cookie));
    }
    for slot in 4..600 {
        many.complete(slot);
    }
    let part = |from, most| {
        let mut part = ScanPart::new(from, most);
        let mut found = Vec::new();
        while let Some((slot, _)) = part.advance(|from| many.find_busy(from)) {
            found.push(slot);
        }
        assert_eq!(
            part.advance(|_| panic!("a search after the end of the part")),
            None
        );
        (found, part.rest())
    };
    assert_eq!(part(0, 0), (vec![], Some(0)));
    assert_eq!(part(0, 3), (vec![0, 1, 2], Some(3)));
    assert_eq!(part(3, 3), (vec![3], Some(260)));
    assert_eq!(part(260, 3), (vec![], Some(516)));
    assert_eq!(part(516, 3), (vec![], None));
}

#[test]
fn slot_numbers_fit_into_a_work_request_id() {
    const LIMIT: usize = 1 << 15;
    assert_eq!(slots(LIMIT).capacity(), 1 << 15);
    let mut many = slots(LIMIT + 2);
    assert_eq!(many.capacity(), 1 << 15);
    for n in 0..LIMIT as u64 {
        assert_eq!(many.post(dto(n)), Some(n as u32));
    }
    assert_eq!(many.post(dto(0)), None);
}

#[test]
fn storage_that_was_not_vacant_is_refused() {
    let mut other = vec![Slot::vacant()];
    assert_eq!(DtoSlots::new(&mut other[..]).post(dto(1)), Some(0));
    let mut taken = DtoSlots::new(other);
    assert_eq!(taken.post(dto(2)), None);
    assert_eq!(taken.outstanding(), 0);
}

/// An operation on the slots. The number selects one of the DTOs in flight.
#[derive(Clone, Copy, Debug)]
enum Act {
    Post,
    Complete(usize),
    Cancel(usize),
    CompleteAny(u32),
}

proptest! {
    #[test]
    fn like_a_map(
        capacity in 0..12_usize,
        acts in prop::collection::vec(prop_oneof![
            3 => Just(Act::Post),
            2 => any::<usize>().prop_map(Act::Complete),
            1 => any::<usize>().prop_map(Act::Cancel),
            1 => (0..16_u32).prop_map(Act::CompleteAny),
        ], 0..200),
    ) {
        let mut slots = slots(capacity);
        let mut map: HashMap<u32, Dto> = HashMap::new();
        let nth = |map: &HashMap<u32, Dto>, n: usize| {
            let mut taken: Vec<u32> = map.keys().copied().collect();
            taken.sort_unstable();
            (!taken.is_empty()).then(|| taken[n % taken.len()])
        };
        for (n, act) in acts.into_iter().enumerate() {
            match act {
                Act::Post => {
                    // The second half is posted after the end of a connection.
                    let mut dto = dto(n as u64);
                    if n > 100 {
                        dto.flags = dto.flags.with(CompletionFlags::AFTER_END);
                    }
                    let posted = slots.post(dto);
                    prop_assert_eq!(posted.is_some(), map.len() < capacity);
                    if let Some(slot) = posted {
                        prop_assert!((slot as usize) < capacity);
                        prop_assert_eq!(map.insert(slot, dto), None);
                    }
                }
                Act::Complete(n) => if let Some(slot) = nth(&map, n) {
                    prop_assert_eq!(slots.complete(slot), map.remove(&slot));
                }
                Act::Cancel(n) => if let Some(slot) = nth(&map, n) {
                    slots.cancel(slot);
                    map.remove(&slot);
                }
                Act::CompleteAny(slot) => {
                    prop_assert_eq!(slots.complete(slot), map.remove(&slot));
                }
            }
            prop_assert_eq!(slots.outstanding() as usize, map.len());
            let after = map.values().filter(|dto| dto.flags.has(CompletionFlags::AFTER_END));
            prop_assert_eq!(slots.posted_after_end() as usize, after.count());
        }
        prop_assert_eq!(slots.capacity() as usize, capacity);
    }
}

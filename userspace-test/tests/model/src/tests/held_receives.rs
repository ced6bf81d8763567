// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares receives that are held back, and their slots, with a `VecDeque`.

use crate::rust::model::{
    completion::CompletionFlags,
    dto::{
        Dto,
        DtoResult,
        DtoSlots,
        PostMark,
        Slot, //
    },
    event::{
        DtoStatus,
        Operation, //
    },
    held_receives::{
        Held,
        HeldReceives, //
    },
};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Largest number of events that are taken at once.
const BATCH: usize = 64;

type Slots = DtoSlots<Vec<Slot>>;
type Queue = HeldReceives<Vec<Held>>;

fn both(capacity: usize) -> (Slots, Queue) {
    let slots = DtoSlots::new(vec![Slot::vacant(); capacity]);
    (slots, HeldReceives::new(vec![Held::vacant(); capacity]))
}

fn dto(cookie: u64) -> Dto {
    Dto {
        cookie,
        operation: Operation::Receive,
        flags: CompletionFlags::default(),
        length: 100,
        posted: PostMark::NONE,
    }
}

fn result(length: u64) -> DtoResult {
    DtoResult {
        status: DtoStatus::Success,
        length,
        extra: 3,
    }
}

/// Completes a receive, and holds it back.
fn hold(slots: &mut Slots, queue: &mut Queue, slot: u32, length: u64) -> bool {
    let dto = slots.complete(slot).expect("a receive");
    queue.hold(slots, slot, dto, result(length))
}

/// Takes a batch. Returns the cookies and the lengths, and whether more are left.
fn take(slots: &mut Slots, queue: &mut Queue) -> (Vec<(u64, u64)>, bool) {
    let mut taken = Vec::new();
    let more = queue.take_some(slots, |dto, result| {
        taken.push((dto.cookie, result.length));
    });
    (taken, more)
}

#[test]
fn longer_storage_keeps_the_order() {
    let (mut slots, mut queue) = both(BATCH + 2);
    for cookie in 0..BATCH as u64 + 2 {
        let slot = slots.post(dto(cookie)).expect("a slot");
        assert!(hold(&mut slots, &mut queue, slot, cookie));
    }
    let (taken, more) = take(&mut slots, &mut queue);
    assert_eq!((taken.len(), more), (BATCH, true));
    // The oldest entry is in the middle, and the next one wraps around.
    for cookie in [100, 101, 102] {
        let slot = slots.post(dto(cookie)).expect("a slot");
        assert!(hold(&mut slots, &mut queue, slot, cookie));
    }
    assert_eq!(queue.grow(vec![Held::vacant(); BATCH]).len(), BATCH);
    assert_eq!(queue.grow(vec![Held::vacant(); BATCH + 9]).len(), BATCH + 2);
    assert_eq!(slots.grow(vec![Slot::vacant(); BATCH + 9]).len(), BATCH + 2);
    let slot = slots.post(dto(103)).expect("a slot");
    assert!(hold(&mut slots, &mut queue, slot, 103));
    let expected =
        [BATCH as u64, BATCH as u64 + 1, 100, 101, 102, 103].map(|number| (number, number));
    assert_eq!(take(&mut slots, &mut queue), (expected.to_vec(), false));
    assert_eq!(slots.outstanding(), 0);
}

#[test]
fn nothing_is_held_without_storage() {
    let (mut slots, _) = both(2);
    let mut none = HeldReceives::new(Vec::new());
    let slot = slots.post(dto(1)).expect("a slot");
    assert!(!hold(&mut slots, &mut none, slot, 5));
    assert!(none.is_empty());
    assert_eq!(slots.outstanding(), 0);
    assert_eq!(take(&mut slots, &mut none), (vec![], false));
}

#[test]
fn a_held_receive_is_outstanding() {
    let (mut slots, mut queue) = both(1);
    let slot = slots.post(dto(1)).expect("a slot");
    assert!(hold(&mut slots, &mut queue, slot, 5));
    assert!(!queue.is_empty());
    assert_eq!(slots.outstanding(), 1);
    assert_eq!(slots.post(dto(2)), None);
    assert_eq!(take(&mut slots, &mut queue), (vec![(1, 5)], false));
    assert!(queue.is_empty());
    assert_eq!(slots.outstanding(), 0);
    assert_eq!(slots.post(dto(2)), Some(slot));
}

#[test]
fn only_the_slot_that_was_freed_last_is_kept() {
    let (mut slots, mut queue) = both(3);
    let [first, second] = [1, 2].map(|cookie| slots.post(dto(cookie)).expect("a slot"));
    // One that is busy, one that was never used, one that does not exist.
    for slot in [first, 2, 3] {
        assert!(!slots.undo_complete(slot, dto(9)));
    }
    slots.complete(first);
    slots.complete(second);
    assert!(!queue.hold(&mut slots, first, dto(1), result(5)));
    assert!(queue.is_empty());
    assert_eq!(slots.outstanding(), 0);
    assert!(queue.hold(&mut slots, second, dto(2), result(6)));
    assert_eq!(take(&mut slots, &mut queue), (vec![(2, 6)], false));
}

#[test]
fn a_batch_is_bounded() {
    for count in [BATCH - 1, BATCH, BATCH + 1, 2 * BATCH, 2 * BATCH + 1] {
        let (mut slots, mut queue) = both(count);
        for cookie in 0..count as u64 {
            let slot = slots.post(dto(cookie)).expect("a slot");
            assert!(hold(&mut slots, &mut queue, slot, cookie));
        }
        let mut all = Vec::new();
        loop {
            let (taken, more) = take(&mut slots, &mut queue);
            assert_eq!(taken.len(), BATCH.min(count - all.len()));
            all.extend(taken);
            assert_eq!(more, all.len() < count);
            assert_eq!(slots.outstanding() as usize, count - all.len());
            if !more {
                break;
            }
        }
        let expected: Vec<_> = (0..count as u64).map(|cookie| (cookie, cookie)).collect();
        assert_eq!(all, expected);
    }
}

/// An operation. The number selects one of the receives in flight.
#[derive(Clone, Copy, Debug)]
enum Act {
    Post,
    /// Completes a receive, and reports it at once.
    Report(usize),
    Hold(usize),
    Take,
}

proptest! {
    #[test]
    fn like_a_deque(
        capacity in 0..200_usize,
        acts in prop::collection::vec(prop_oneof![
            8 => Just(Act::Post),
            2 => any::<usize>().prop_map(Act::Report),
            6 => any::<usize>().prop_map(Act::Hold),
            1 => Just(Act::Take),
        ], 0..1000),
    ) {
        let (mut slots, mut queue) = both(capacity);
        let mut in_flight: Vec<(u32, u64)> = Vec::new();
        let mut held: VecDeque<(u64, u64)> = VecDeque::new();
        for (n, act) in acts.into_iter().enumerate() {
            let n = n as u64;
            match act {
                Act::Post => {
                    let posted = slots.post(dto(n));
                    // A slot is in flight, or held, or free.
                    prop_assert_eq!(posted.is_some(), in_flight.len() + held.len() < capacity);
                    in_flight.extend(posted.map(|slot| (slot, n)));
                }
                Act::Report(which) | Act::Hold(which) if !in_flight.is_empty() => {
                    let (slot, cookie) = in_flight.swap_remove(which % in_flight.len());
                    if matches!(act, Act::Hold(_)) {
                        // There is always room.
                        prop_assert!(hold(&mut slots, &mut queue, slot, n));
                        held.push_back((cookie, n));
                    } else {
                        prop_assert_eq!(slots.complete(slot), Some(dto(cookie)));
                    }
                }
                Act::Report(_) | Act::Hold(_) => {}
                Act::Take => {
                    let (taken, more) = take(&mut slots, &mut queue);
                    let expected: Vec<_> = held.drain(..BATCH.min(held.len())).collect();
                    prop_assert_eq!(taken, expected);
                    prop_assert_eq!(more, !held.is_empty());
                }
            }
            prop_assert_eq!(queue.is_empty(), held.is_empty());
            prop_assert_eq!(slots.outstanding() as usize, in_flight.len() + held.len());
        }
    }
}

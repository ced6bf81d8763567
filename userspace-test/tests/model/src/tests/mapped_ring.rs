// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the mapped ring with a `VecDeque`, and lets a process write anything to the head.

use super::ring::record;
use crate::rust::model::{
    atomic::{
        AtomicU32,
        AtomicU64, //
    },
    mapped_ring::{
        MappedRing,
        NoRoom,
        SharedMemory,
        SharedWords,
        EMPTY, //
    },
};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Memory for records, and the indices.
pub(super) struct Memory {
    head: AtomicU32,
    tail: AtomicU32,
    calls_only: AtomicU32,
    empty: AtomicU32,
    records: Vec<AtomicU64>,
}

impl Memory {
    fn for_records(count: usize) -> Self {
        let [head, tail, calls_only, empty] = [0; 4].map(AtomicU32::new);
        let records = (0..count * 8).map(|_| AtomicU64::new(0)).collect();
        Self {
            head,
            tail,
            calls_only,
            empty,
            records,
        }
    }

    /// Checks whether the kernel claims that it has no other events, as a process does.
    fn claims_empty(&self) -> bool {
        self.empty.load_acquire() == EMPTY
    }
}

impl SharedMemory for Memory {
    fn words(&self) -> SharedWords<'_> {
        SharedWords {
            head: &self.head,
            tail: &self.tail,
            calls_only: &self.calls_only,
            empty: &self.empty,
            records: &self.records,
        }
    }
}

fn ring(most: u32) -> MappedRing<Memory> {
    MappedRing::new(Memory::for_records(8), most).expect("a ring")
}

#[test]
fn slots_are_a_power_of_two_within_memory_and_queue_length() {
    for (most, slots) in [(1, 1), (2, 2), (3, 2), (7, 4), (8, 8), (1000, 8)] {
        assert_eq!(ring(most).slots(), slots, "{most}");
    }
    assert!(MappedRing::new(Memory::for_records(8), 0).is_none());
    assert!(MappedRing::new(Memory::for_records(0), 8).is_none());
}

#[test]
fn the_process_is_told_to_call() {
    let ring = ring(8);
    for calls_only in [true, false] {
        ring.update_calls_only(|| calls_only);
        assert_eq!(ring.memory().calls_only.load(), u32::from(calls_only));
    }
}

#[test]
fn records_are_visited_also_if_the_process_takes_them() {
    let ring = ring(4);
    (0..4).for_each(|n| ring.push(&record(n)).expect("room"));
    let visited = |first| {
        let mut count = 0;
        ring.for_each_from(first, |_| count += 1);
        count
    };
    assert_eq!((visited(0), visited(1)), (4, 3));
    ring.memory().head.swap(3);
    assert_eq!((visited(0), visited(3)), (4, 1));
    ring.memory().head.swap(77);
    assert_eq!(visited(0), 0);
}

#[test]
fn the_claim_is_made_after_the_check() {
    let ring = ring(8);
    assert!(!ring.memory().claims_empty());
    for is_empty in [true, false, true] {
        ring.claim_empty(|| {
            assert!(
                !ring.memory().claims_empty(),
                "the claim comes after the check"
            );
            is_empty
        });
        assert_eq!(ring.memory().claims_empty(), is_empty);
    }
    ring.retract_empty();
    assert!(!ring.memory().claims_empty());
}

#[test]
fn a_ring_is_filled_up_to_its_last_slot_or_record() {
    let (ring, mut queue) = (ring(8), (1..=10).collect::<VecDeque<u64>>());
    let oldest = |queue: &VecDeque<u64>| queue.front().map(|&number| record(number));
    let remove = |queue: &mut VecDeque<u64>| {
        queue.pop_front();
    };
    ring.fill(&mut queue, oldest, remove);
    assert_eq!((ring.len(), queue.len()), (8, 2));
    ring.memory().head.store_release(8);
    ring.fill(&mut queue, oldest, remove);
    assert_eq!((ring.len(), queue.len()), (2, 0));
    for number in 9..=10 {
        assert_eq!(ring.pop(), Some(record(number)));
    }
}

/// The process takes each record at once, and there is always another one.
#[test]
fn a_fast_process_does_not_prolong_the_handover() {
    let (ring, mut handed_over) = (ring(8), 0);
    ring.fill(
        &mut handed_over,
        |_| Some(record(7)),
        |handed_over| {
            *handed_over += 1;
            assert!(*handed_over <= 8, "the handover does not end");
            ring.memory().head.store_release(*handed_over);
        },
    );
    assert_eq!(handed_over, 8);
}

/// The process writes an invalid head when the kernel has found room.
#[test]
fn a_record_without_room_stays_in_the_queue() {
    let (ring, mut removed) = (ring(8), 0);
    let oldest = |_: &u32| {
        ring.memory().head.store_release(1);
        Some(record(7))
    };
    ring.fill(&mut removed, oldest, |removed| *removed += 1);
    assert_eq!(removed, 0);
    ring.memory().head.store_release(0);
    assert_eq!(ring.len(), 0);
}

/// Steps of the kernel, and of the process.
#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    Pop,
    /// The kernel peeks at this many records, a thread takes so many, and the kernel takes those
    /// that it has found.
    PeekAndTake(usize, u32),
    /// The process takes the oldest record, as documented.
    Take,
    /// The process writes a head that is this far before the tail.
    Write(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Push),
        2 => Just(Step::Pop),
        2 => (1..6_usize, 0..3_u32).prop_map(|(peek, taken)| Step::PeekAndTake(peek, taken)),
        2 => Just(Step::Take),
        1 => prop_oneof![0..12_u32, any::<u32>()].prop_map(Step::Write),
    ]
}

proptest! {
    #[test]
    fn behaves_as_a_bounded_queue(
        steps in prop::collection::vec(step(), 1..200),
        most in 1..10_u32,
    ) {
        let ring = ring(most);
        // Records by index. Those before the head are not in the queue.
        let (mut pushed, mut queue) = (0_u32, Some(VecDeque::new()));
        for step in steps {
            match (step, &mut queue) {
                (Step::Push, Some(queue)) if queue.len() < ring.slots() as usize => {
                    prop_assert!(ring.has_room());
                    prop_assert_eq!(ring.push(&record(pushed.into())), Ok(()));
                    queue.push_back(pushed);
                    pushed += 1;
                }
                (Step::Push, _) => {
                    prop_assert!(!ring.has_room());
                    prop_assert_eq!(ring.push(&record(7)), Err(NoRoom));
                }
                (Step::Pop, Some(queue)) => {
                    let oldest = queue.pop_front();
                    prop_assert_eq!(ring.pop(), oldest.map(|n| record(n.into())));
                }
                (Step::Take, Some(queue)) => {
                    if queue.pop_front().is_some() {
                        let head = ring.memory().head.load();
                        ring.memory().head.store_release(head.wrapping_add(1));
                    }
                }
                (Step::PeekAndTake(most, taken), Some(queue)) => {
                    let mut records = vec![record(0); most];
                    let (index, count) = ring.peek(&mut records);
                    prop_assert_eq!(count, most.min(queue.len()));
                    for (found, n) in records.iter().take(count).zip(queue.iter()) {
                        prop_assert_eq!(*found, record(u64::from(*n)));
                    }
                    let taken = taken.min(queue.len() as u32);
                    ring.memory().head.store_release(index.wrapping_add(taken));
                    queue.drain(..taken as usize);
                    prop_assert_eq!(ring.take_from(index, count as u32), taken == 0);
                    if taken == 0 {
                        queue.drain(..count);
                    }
                    // More than there are.
                    let index = ring.memory().head.load();
                    prop_assert!(!ring.take_from(index, queue.len() as u32 + 1));
                }
                (Step::PeekAndTake(..), None) => {
                    let (index, count) = ring.peek(&mut [record(0); 4]);
                    prop_assert_eq!(count, 0);
                    prop_assert!(!ring.take_from(index, 1));
                }
                (Step::Pop | Step::Take, None) => prop_assert_eq!(ring.pop(), None),
                (Step::Write(before), _) => {
                    ring.memory().head.store_release(pushed.wrapping_sub(before));
                    let valid = before <= ring.slots() && before <= pushed;
                    queue = valid.then(|| (pushed - before..pushed).collect());
                    if before <= ring.slots() && before > pushed {
                        // Slots that were never written: the process only harms itself.
                        return Ok(());
                    }
                }
            }
            let len = queue.as_ref().map_or(0, VecDeque::len);
            prop_assert_eq!(ring.len() as usize, len);
            prop_assert_eq!(ring.memory().tail.load(), pushed);
        }
    }
}

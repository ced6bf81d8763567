// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the ring with a `VecDeque`, including the wrap of the indices.

use crate::rust::model::{
    atomic::AtomicU64,
    event::Record,
    ring::{
        resize::{BeginError, Resize},
        words_for,
        Ring,
        RingConsumer,
        RingFull,
        RingProducer, //
    },
};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

type Words = Arc<[AtomicU64]>;

fn storage(words: usize) -> Words {
    (0..words).map(|_| AtomicU64::new(u64::MAX)).collect()
}

/// A ring with its producer and its consumer.
pub(super) struct Whole {
    pub(super) ring: Ring,
    producer: RingProducer<Words>,
    consumer: RingConsumer<Words>,
}

impl Whole {
    pub(super) fn at(qlen: u32, index: u32) -> Self {
        let words = words_for(qlen).expect("a length");
        let (ring, producer, consumer) =
            Ring::with_start_index(storage(words), qlen, index).expect("a ring");
        Self {
            ring,
            producer,
            consumer,
        }
    }

    pub(super) fn push(&mut self, n: u64) -> Result<u32, RingFull> {
        self.ring.push(&mut self.producer, &record(n))
    }

    fn push_quiet(&mut self, n: u64) -> Result<(), RingFull> {
        self.ring.push_quiet(&mut self.producer, &record(n))
    }

    fn pop(&mut self) -> Option<Record> {
        self.ring.pop(&mut self.consumer)
    }

    fn begin(&self, qlen: u32) -> Result<Resize<Words>, BeginError> {
        self.begin_with(words_for(qlen).expect("a length"), qlen)
    }

    fn begin_with(&self, words: usize, qlen: u32) -> Result<Resize<Words>, BeginError> {
        Resize::begin(&self.ring, &self.consumer, storage(words), qlen)
    }

    /// Finishes a move as `dat_evd_resize` does. `late` is the largest number of records to copy at
    /// the end, when producers are locked out.
    fn finish(&mut self, mut resize: Resize<Words>, late: u32) -> Result<(), RingFull> {
        loop {
            match resize.finish(&self.ring, &mut self.producer, &mut self.consumer, late) {
                Ok(_) => return Ok(()),
                Err(behind) => resize = behind,
            }
            resize.catch_up(&self.ring, &self.consumer)?;
        }
    }
}

/// Returns a record of eight different words.
pub(super) fn record(n: u64) -> Record {
    std::array::from_fn(|i| n * 8 + i as u64)
}

#[test]
fn lengths_are_rounded_up_to_a_power_of_two() {
    for (qlen, words) in [
        (0, None),
        (1, Some(8)),
        (2, Some(16)),
        (3, Some(32)),
        (5, Some(64)),
        (64, Some(512)),
        (65, Some(1024)),
        (0x7fff_ffff, Some(1 << 34)),
        (0x8000_0000, Some(1 << 34)),
        (0x8000_0001, None),
        (u32::MAX, None),
    ] {
        assert_eq!(words_for(qlen), words, "{qlen}");
    }
}

#[test]
fn storage_has_to_suffice() {
    assert!(Ring::new(storage(0), 0).is_none());
    assert!(Ring::new(storage(31), 3).is_none());
    assert!(Ring::new(storage(8), 1 << 31).is_none());
    assert!(Ring::new(storage(8), u32::MAX).is_none());
    for words in [32, 33, 100] {
        let (ring, producer, mut consumer) = Ring::new(storage(words), 3).expect("a ring");
        assert_eq!(producer.capacity(), 4);
        assert_eq!(ring.len(), 0);
        assert_eq!(ring.pop(&mut consumer), None);
    }
}

#[test]
fn a_full_ring_uses_every_slot() {
    let mut whole = Whole::at(4, 0);
    for n in 0..4 {
        assert_eq!(whole.push(n), Ok(n as u32 + 1));
    }
    assert_eq!(whole.push(9), Err(RingFull));
    assert_eq!(whole.ring.len(), 4);
    assert_eq!(whole.pop(), Some(record(0)));
    assert_eq!(whole.push(4), Ok(4));
    for n in 1..=4 {
        assert_eq!(whole.pop(), Some(record(n)));
    }
    assert_eq!(whole.pop(), None);
    assert_eq!(whole.ring.len(), 0);
}

#[test]
fn a_ring_of_one() {
    let mut whole = Whole::at(1, u32::MAX);
    for n in 0..3 {
        assert_eq!(whole.push(n), Ok(1));
        assert_eq!(whole.push(7), Err(RingFull));
        assert_eq!(whole.pop(), Some(record(n)));
    }
}

#[test]
fn each_waking_record_has_another_index() {
    let mut whole = Whole::at(4, u32::MAX);
    let mut seen = vec![whole.ring.last_waking_index()];
    for n in 0..3 {
        assert_eq!(whole.push_quiet(n), Ok(()));
        assert_eq!(Some(&whole.ring.last_waking_index()), seen.last());
        whole.push(n).expect("room");
        let newest = whole.ring.last_waking_index();
        assert!(!seen.contains(&newest));
        seen.push(newest);
        assert!(whole.pop().is_some() && whole.pop().is_some());
    }
}

#[test]
fn quiet_records_are_records() {
    let mut whole = Whole::at(2, u32::MAX);
    assert!(!whole.ring.has_waking());
    for n in 0..2 {
        assert_eq!(whole.push_quiet(n), Ok(()));
        assert!(!whole.ring.has_waking());
    }
    assert_eq!(whole.push_quiet(9), Err(RingFull));
    assert_eq!(whole.push(9), Err(RingFull));
    assert!(!whole.ring.has_waking());
    assert_eq!(whole.pop(), Some(record(0)));
    assert_eq!(whole.push(2), Ok(2));
    assert!(whole.ring.has_waking());
    assert_eq!(whole.pop(), Some(record(1)));
    assert!(whole.ring.has_waking());
    assert_eq!(whole.pop(), Some(record(2)));
    assert!(!whole.ring.has_waking());
}

#[test]
fn new_slots_have_to_suffice() {
    let mut whole = Whole::at(4, u32::MAX - 1);
    for n in 0..2 {
        assert_eq!(whole.push(n), Ok(n as u32 + 1));
    }
    assert_eq!(whole.begin_with(8, 2).err(), Some(BeginError::Storage));
    assert_eq!(whole.begin_with(8, 0).err(), Some(BeginError::Storage));
    assert_eq!(whole.begin(1).err(), Some(BeginError::Full));
    // One more record is pushed, which does not fit any more.
    let resize = whole.begin(2).expect("both fit");
    assert_eq!(whole.push(2), Ok(3));
    assert_eq!(whole.finish(resize, 1), Err(RingFull));
    assert_eq!(whole.producer.capacity(), 4);
    for n in 0..3 {
        assert_eq!(whole.pop(), Some(record(n)));
    }
}

#[test]
fn a_resize_copies_few_with_the_producers_kept_out() {
    const LATE: u32 = 3;
    for more in 0..8 {
        let mut whole = Whole::at(16, u32::MAX - 1);
        for n in 0..4 {
            assert!(whole.push(n).is_ok());
        }
        let resize = whole.begin(32).expect("they fit");
        for n in 4..4 + u64::from(more) {
            assert!(whole.push(n).is_ok());
        }
        let moved = resize.finish(&whole.ring, &mut whole.producer, &mut whole.consumer, LATE);
        assert_eq!(moved.is_ok(), more <= LATE);
        assert_eq!(whole.producer.capacity() == 32, more <= LATE);
        if let Err(mut behind) = moved {
            assert_eq!(behind.catch_up(&whole.ring, &whole.consumer), Ok(()));
            assert_eq!(whole.finish(behind, 0), Ok(()));
        }
        for n in 0..4 + u64::from(more) {
            assert_eq!(whole.pop(), Some(record(n)));
        }
        assert_eq!(whole.pop(), None);
    }
}

/// Records, and whether they wake the waiter (are not quiet).
type Deque = VecDeque<(Record, bool)>;

/// An operation on a ring.
#[derive(Clone, Copy, Debug)]
enum Act {
    Push,
    PushQuiet,
    Pop,
    /// Peeks at this many records, pops so many, and takes those that the peek has found.
    PeekAndTake(usize, usize),
    Len,
    /// To this queue length, with this number of pushes during the move.
    Resize(u32, u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Push),
        4 => Just(Act::PushQuiet),
        4 => Just(Act::Pop),
        3 => (1..6_usize, 0..3_usize).prop_map(|(peek, pops)| Act::PeekAndTake(peek, pops)),
        2 => Just(Act::Len),
        1 => (1..40_u32, 0..4_u8).prop_map(|(qlen, pushes)| Act::Resize(qlen, pushes)),
    ]
}

proptest! {
    #[test]
    fn like_a_deque(
        qlen in 1..20_u32,
        start in prop_oneof![any::<u32>(), (u32::MAX - 30)..=u32::MAX],
        acts in prop::collection::vec(act(), 0..200),
    ) {
        let mut whole = Whole::at(qlen, start);
        let mut deque = VecDeque::new();
        let mut capacity = qlen.next_power_of_two() as usize;
        let mut n = 0;
        let mut push = |whole: &mut Whole, deque: &mut Deque, capacity: usize, waking: bool| {
            n += 1;
            let expected = if deque.len() == capacity {
                Err(RingFull)
            } else {
                deque.push_back((record(n), waking));
                Ok(deque.len() as u32)
            };
            if waking {
                assert_eq!(whole.push(n), expected);
            } else {
                assert_eq!(whole.push_quiet(n), expected.map(drop));
            }
        };
        for act in acts {
            prop_assert_eq!(whole.producer.capacity() as usize, capacity);
            prop_assert_eq!(whole.ring.has_waking(), deque.iter().any(|(_, waking)| *waking));
            match act {
                Act::Push => push(&mut whole, &mut deque, capacity, true),
                Act::PushQuiet => push(&mut whole, &mut deque, capacity, false),
                Act::Pop => prop_assert_eq!(whole.pop(), deque.pop_front().map(|(record, _)| record)),
                Act::PeekAndTake(most, pops) => {
                    let mut records = vec![record(0); most];
                    let (index, count) = whole.ring.peek(&whole.consumer, &mut records);
                    prop_assert_eq!(count, most.min(deque.len()));
                    let found = records.iter().take(count);
                    prop_assert!(found.eq(deque.iter().take(count).map(|(record, _)| record)));
                    let mut popped = 0;
                    for _ in 0..pops {
                        prop_assert_eq!(whole.pop(), deque.pop_front().map(|(record, _)| record));
                        popped = (popped + 1).min(count);
                    }
                    let is_taken =
                        whole.ring.take_from(&mut whole.consumer, index, count as u32);
                    // Nothing is taken of an empty ring, which succeeds.
                    prop_assert_eq!(is_taken, popped == 0 || count == 0);
                    if popped == 0 {
                        deque.drain(..count);
                    }
                    prop_assert_eq!(whole.ring.len() as usize, deque.len());
                }
                Act::Len => prop_assert_eq!(whole.ring.len() as usize, deque.len()),
                Act::Resize(qlen, pushes) => {
                    let wanted = qlen.next_power_of_two() as usize;
                    let begun = whole.begin(qlen);
                    prop_assert_eq!(begun.is_ok(), deque.len() <= wanted);
                    let Ok(resize) = begun else { continue };
                    (0..pushes).for_each(|n| push(&mut whole, &mut deque, capacity, n % 2 == 0));
                    let finished = whole.finish(resize, u32::from(pushes) / 2);
                    prop_assert_eq!(finished.is_ok(), deque.len() <= wanted);
                    if finished.is_ok() {
                        capacity = wanted;
                    }
                }
            }
        }
        while let Some((expected, _)) = deque.pop_front() {
            prop_assert_eq!(whole.pop(), Some(expected));
        }
        prop_assert_eq!(whole.pop(), None);
    }
}

#[test]
fn two_threads() {
    const EVENTS: u64 = 200_000;
    let Whole {
        ring,
        mut producer,
        mut consumer,
    } = Whole::at(8, u32::MAX - 1000);
    let (ring, producer) = (&ring, &mut producer);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..EVENTS {
                while ring.push(producer, &record(n)).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        for n in 0..EVENTS {
            loop {
                assert!(ring.len() <= 8);
                if let Some(found) = ring.pop(&mut consumer) {
                    assert_eq!(found, record(n));
                    break;
                }
                std::thread::yield_now();
            }
        }
    });
    assert_eq!(ring.pop(&mut consumer), None);
}

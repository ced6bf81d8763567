// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The ring against a `VecDeque`, also where the indices wrap.

use crate::rust::model::{
    atomic::AtomicU64,
    event::Record,
    ring::{
        words_for,
        Full,
        ProducerKey,
        Ring, //
    },
};
use proptest::prelude::*;
use std::collections::VecDeque;

type HostRing = Ring<Vec<AtomicU64>>;

fn storage(words: usize) -> Vec<AtomicU64> {
    (0..words).map(|_| AtomicU64::new(u64::MAX)).collect()
}

fn ring_at(qlen: u32, index: u32) -> HostRing {
    let words = words_for(qlen).expect("a length");
    Ring::starting_at(storage(words), qlen, index).expect("a ring")
}

/// A record whose words all differ.
fn record(n: u64) -> Record {
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
        let ring = Ring::new(storage(words), 3).expect("a ring");
        assert_eq!(ring.capacity(), 4);
        assert_eq!(ring.len(), 0);
        assert_eq!(ring.pop(), None);
    }
}

#[test]
fn full_to_the_last_slot_and_not_beyond() {
    let ring = ring_at(4, 0);
    let mut key = ProducerKey::new();
    for n in 0..4 {
        assert_eq!(ring.push(&mut key, &record(n)), Ok(n as u32 + 1));
    }
    assert_eq!(ring.push(&mut key, &record(9)), Err(Full));
    assert_eq!(ring.len(), 4);
    assert_eq!(ring.pop(), Some(record(0)));
    assert_eq!(ring.push(&mut key, &record(4)), Ok(4));
    for n in 1..=4 {
        assert_eq!(ring.pop(), Some(record(n)));
    }
    assert_eq!(ring.pop(), None);
    assert_eq!(ring.len(), 0);
}

#[test]
fn a_ring_of_one() {
    let ring = ring_at(1, u32::MAX);
    let mut key = ProducerKey::new();
    for n in 0..3 {
        assert_eq!(ring.push(&mut key, &record(n)), Ok(1));
        assert_eq!(ring.push(&mut key, &record(7)), Err(Full));
        assert_eq!(ring.pop(), Some(record(n)));
    }
}

/// What to do to a ring.
#[derive(Clone, Copy, Debug)]
enum Act {
    Push,
    Pop,
    Len,
}

proptest! {
    #[test]
    fn like_a_deque(
        qlen in 1..20_u32,
        start in prop_oneof![any::<u32>(), (u32::MAX - 30)..=u32::MAX],
        acts in prop::collection::vec(
            prop_oneof![3 => Just(Act::Push), 2 => Just(Act::Pop), 1 => Just(Act::Len)], 0..200),
    ) {
        let ring = ring_at(qlen, start);
        let mut key = ProducerKey::new();
        let mut deque = VecDeque::new();
        let capacity = qlen.next_power_of_two() as usize;
        prop_assert_eq!(ring.capacity() as usize, capacity);
        for (n, act) in acts.into_iter().enumerate() {
            match act {
                Act::Push if deque.len() == capacity => {
                    prop_assert_eq!(ring.push(&mut key, &record(n as u64)), Err(Full));
                }
                Act::Push => {
                    deque.push_back(record(n as u64));
                    let queued = deque.len() as u32;
                    prop_assert_eq!(ring.push(&mut key, &record(n as u64)), Ok(queued));
                }
                Act::Pop => prop_assert_eq!(ring.pop(), deque.pop_front()),
                Act::Len => prop_assert_eq!(ring.len() as usize, deque.len()),
            }
        }
        while let Some(expected) = deque.pop_front() {
            prop_assert_eq!(ring.pop(), Some(expected));
        }
        prop_assert_eq!(ring.pop(), None);
    }
}

#[test]
fn two_threads() {
    const EVENTS: u64 = 200_000;
    let ring = ring_at(8, u32::MAX - 1000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut key = ProducerKey::new();
            for n in 0..EVENTS {
                while ring.push(&mut key, &record(n)).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        for n in 0..EVENTS {
            loop {
                assert!(ring.len() <= 8);
                if let Some(found) = ring.pop() {
                    assert_eq!(found, record(n));
                    break;
                }
                std::thread::yield_now();
            }
        }
    });
    assert_eq!(ring.pop(), None);
}

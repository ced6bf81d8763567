// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Slots that several threads take from the free list of the crate `kdat`, and give back.

use super::explore;
use crate::kdat::free_list::{
    FreeList,
    Word,
    NONE, //
};
use loom::{
    cell::UnsafeCell,
    sync::{
        atomic::{
            AtomicU32,
            AtomicU64,
            Ordering, //
        },
        Arc, //
    },
    thread,
};

/// What a word of these tests does, and what the one of the crate does not.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    Sound,
    /// The tag of a change is lost.
    Untagged,
    /// A load does not order the accesses after it.
    RelaxedLoad,
    /// A change does not order the accesses before it.
    RelaxedExchange,
}

/// Word with the orderings that a flaw leaves.
struct Top {
    word: AtomicU64,
    flaw: Flaw,
}

impl Word for Top {
    fn load_acquire(&self) -> u64 {
        self.word.load(match self.flaw {
            Flaw::RelaxedLoad => Ordering::Relaxed,
            _ => Ordering::Acquire,
        })
    }

    fn exchange(&self, old: u64, new: u64) -> bool {
        let new = match self.flaw {
            Flaw::Untagged => new & u64::from(NONE),
            _ => new,
        };
        let success = match self.flaw {
            Flaw::RelaxedExchange => Ordering::Relaxed,
            _ => Ordering::AcqRel,
        };
        let exchanged = self
            .word
            .compare_exchange(old, new, success, Ordering::Relaxed);
        exchanged.is_ok()
    }
}

/// Slots, of which each has a link and contents that loom lets one thread at a time access.
struct Slots {
    free: FreeList<Top>,
    links: [AtomicU32; 3],
    contents: [UnsafeCell<u32>; 3],
}

impl Slots {
    /// Returns the first `number` slots on the list, in their order.
    fn new(number: u32, flaw: Flaw) -> Arc<Self> {
        let word = AtomicU64::new(FreeList::<Top>::EMPTY);
        let slots = Self {
            free: FreeList::new(Top { word, flaw }),
            links: [(); 3].map(|()| AtomicU32::new(NONE)),
            contents: [(); 3].map(|()| UnsafeCell::new(0)),
        };
        (0..number).rev().for_each(|slot| slots.give(slot));
        Arc::new(slots)
    }

    /// Takes a slot, and uses its contents.
    fn take(&self) -> Option<u32> {
        let link = |slot: u32| Some(self.links.get(slot as usize)?.load(Ordering::Relaxed));
        let slot = self.free.pop(link)?;
        self.contents[slot as usize].with_mut(|_| ());
        Some(slot)
    }

    /// Uses the contents of a slot, and gives it back.
    fn give(&self, slot: u32) {
        self.contents[slot as usize].with_mut(|_| ());
        let link = |below| self.links[slot as usize].store(below, Ordering::Relaxed);
        self.free.push(slot, link);
    }

    /// Checks that exactly these slots are free.
    fn are_free(&self, mut expected: Vec<u32>) {
        let mut free: Vec<_> = core::iter::from_fn(|| self.take()).take(4).collect();
        free.sort_unstable();
        expected.sort_unstable();
        assert_eq!(free, expected, "a slot is lost, or is there twice");
    }
}

/// One thread takes two slots, and gives the first one back. Another takes two.
fn a_slot_comes_back(flaw: Flaw) {
    explore(move || {
        let slots = Slots::new(3, flaw);
        let giver = {
            let slots = slots.clone();
            thread::spawn(move || {
                let (first, second) = (slots.take(), slots.take());
                first.into_iter().for_each(|slot| slots.give(slot));
                second
            })
        };
        let taker = {
            let slots = slots.clone();
            thread::spawn(move || [slots.take(), slots.take()])
        };
        let held = giver.join().unwrap().into_iter();
        let held: Vec<_> = held
            .chain(taker.join().unwrap().into_iter().flatten())
            .collect();
        slots.are_free((0..3).filter(|slot| !held.contains(slot)).collect());
        let times = |slot| held.iter().filter(|other| *other == slot).count();
        assert!(
            held.iter().all(|slot| times(slot) == 1),
            "a slot has two holders"
        );
    });
}

/// Each of two threads takes a slot and gives it back.
fn both_give_back(flaw: Flaw) {
    explore(move || {
        let slots = Slots::new(2, flaw);
        let users = [0, 1].map(|_| {
            let slots = slots.clone();
            thread::spawn(move || {
                let slot = slots.take().expect("a slot for each thread");
                slots.give(slot);
            })
        });
        users.into_iter().for_each(|user| user.join().unwrap());
        slots.are_free(vec![0, 1]);
    });
}

#[test]
fn a_slot_that_comes_back_is_taken_once() {
    a_slot_comes_back(Flaw::Sound);
}

#[test]
fn a_slot_has_one_user_at_a_time() {
    both_give_back(Flaw::Sound);
}

#[test]
#[should_panic(expected = "a slot has two holders")]
fn without_a_tag_a_slot_is_taken_twice() {
    a_slot_comes_back(Flaw::Untagged);
}

#[test]
#[should_panic(expected = "a slot has two holders")]
fn with_a_relaxed_load_a_link_is_stale() {
    a_slot_comes_back(Flaw::RelaxedLoad);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn with_a_relaxed_exchange_a_slot_has_two_users() {
    both_give_back(Flaw::RelaxedExchange);
}

/// A chain of slots, as that of a new chunk, is put on the list beside a thread that takes one.
#[test]
fn a_chain_is_added_beside_a_taker() {
    explore(|| {
        let slots = Slots::new(1, Flaw::Sound);
        let grower = {
            let slots = slots.clone();
            thread::spawn(move || {
                slots.links[1].store(2, Ordering::Relaxed);
                let link = |below| slots.links[2].store(below, Ordering::Relaxed);
                slots.free.push(1, link);
            })
        };
        let taker = {
            let slots = slots.clone();
            thread::spawn(move || slots.take().expect("there is always one"))
        };
        grower.join().unwrap();
        let held = taker.join().unwrap();
        slots.are_free((0..3).filter(|slot| *slot != held).collect());
    });
}

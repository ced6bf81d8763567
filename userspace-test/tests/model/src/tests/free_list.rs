// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The free list of the crate `kdat`: a stack, whose changes have tags of their own.

use crate::kdat::free_list::{FreeList, Word, BITS, NONE};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};

/// Word that one thread uses.
struct Top(Cell<u64>);

impl Word for &Top {
    fn load_acquire(&self) -> u64 {
        self.0.get()
    }

    fn exchange(&self, old: u64, new: u64) -> bool {
        let is_old = self.0.get() == old;
        if is_old {
            self.0.set(new);
        }
        is_old
    }
}

/// Links of the numbers below a length.
struct Links(RefCell<Vec<u32>>);

impl Links {
    fn new(length: usize) -> Self {
        Self(RefCell::new(vec![NONE; length]))
    }

    fn of(&self, number: u32) -> Option<u32> {
        self.0.borrow().get(number as usize).copied()
    }

    fn set(&self, number: u32, below: u32) {
        self.0.borrow_mut()[number as usize] = below;
    }
}

#[test]
fn an_empty_list_has_no_number() {
    let top = Top(Cell::new(FreeList::<&Top>::EMPTY));
    assert_eq!(FreeList::new(&top).pop(|_| Some(NONE)), None);
    assert_eq!(top.0.get(), FreeList::<&Top>::EMPTY);
}

#[test]
fn a_number_without_a_link_stays() {
    let top = Top(Cell::new(FreeList::<&Top>::EMPTY));
    let list = FreeList::new(&top);
    list.push(5, |_| ());
    let before = top.0.get();
    assert_eq!(list.pop(|_| None), None);
    assert_eq!(top.0.get(), before);
}

#[test]
fn the_last_tag_is_followed_by_the_first() {
    let last = u64::MAX << BITS;
    let top = Top(Cell::new(last | u64::from(NONE)));
    let list = FreeList::new(&top);
    list.push(NONE - 1, |below| assert_eq!(below, NONE));
    assert_eq!(top.0.get(), u64::from(NONE - 1));
    assert_eq!(list.pop(|_| Some(NONE)), Some(NONE - 1));
    assert_eq!(top.0.get(), (1 << BITS) | u64::from(NONE));
}

/// A thread that was interrupted between its load and its exchange repeats both.
#[test]
fn a_change_meanwhile_is_seen() {
    let top = Top(Cell::new(FreeList::<&Top>::EMPTY));
    let (list, links) = (FreeList::new(&top), Links::new(2));
    for number in [0, 1] {
        list.push(number, |below| links.set(number, below));
    }
    let once = Cell::new(true);
    // 1 is taken, 0 is taken, and 1 comes back: its old link is 0.
    let interrupted = |number| {
        let link = links.of(number);
        if once.replace(false) {
            assert_eq!(list.pop(|number| links.of(number)), Some(1));
            assert_eq!(list.pop(|number| links.of(number)), Some(0));
            list.push(1, |below| links.set(1, below));
        }
        link
    };
    assert_eq!(list.pop(interrupted), Some(1));
    assert_eq!(list.pop(|number| links.of(number)), None);
}

proptest! {
    /// Chains of up to three numbers are pushed, and numbers are taken.
    #[test]
    fn it_is_a_stack(steps in prop::collection::vec(0..5_u32, 0..200)) {
        let top = Top(Cell::new(FreeList::<&Top>::EMPTY));
        let (list, links) = (FreeList::new(&top), Links::new(600));
        let (mut model, mut next) = (Vec::new(), 0);
        let mut words = std::collections::HashSet::from([top.0.get()]);
        for step in steps {
            if step < 3 {
                let last = next + step;
                (next..last).for_each(|number| links.set(number, number + 1));
                list.push(next, |below| links.set(last, below));
                model.extend((next..=last).rev());
                next = last + 1;
                prop_assert!(words.insert(top.0.get()));
            } else {
                let taken = list.pop(|number| links.of(number));
                prop_assert_eq!(taken, model.pop());
                prop_assert!(taken.is_none() || words.insert(top.0.get()));
            }
        }
    }
}

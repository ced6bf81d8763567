// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The queue of EVDs that have triggered, against a `VecDeque`.

use crate::rust::model::cno::{
    Fifo,
    Full,
    Pending, //
};
use proptest::prelude::*;
use std::collections::{
    HashSet,
    VecDeque, //
};

#[test]
fn without_storage_nothing_is_queued() {
    let mut none = Fifo::new(Vec::new());
    assert_eq!(none.push(1), Err(Full));
    assert_eq!(none.pop(), None);
    assert!(!none.remove(1));
    assert_eq!((none.len(), none.capacity()), (0, 0));
}

#[test]
fn a_shorter_storage_is_given_back() {
    let mut two = Fifo::new(vec![0; 2]);
    two.push(7).expect("room");
    two.push(8).expect("room");
    assert_eq!(two.push(9), Err(Full));
    assert_eq!(two.move_to(vec![5]), Err(vec![5]));
    assert_eq!(two.len(), 2);
    assert_eq!(two.move_to(vec![0; 3]).map(|old| old.len()), Ok(2));
    assert_eq!(two.capacity(), 3);
    two.push(9).expect("room");
    assert_eq!(
        [two.pop(), two.pop(), two.pop(), two.pop()],
        [Some(7), Some(8), Some(9), None]
    );
}

#[test]
fn only_the_first_of_two_is_news() {
    let pending = Pending::new();
    assert!(!pending.is_raised());
    assert!(pending.raise());
    assert!(!pending.raise());
    assert!(pending.is_raised());
    pending.lower();
    assert!(!pending.is_raised());
    assert!(pending.raise());
}

/// What to do to the queue.
#[derive(Clone, Copy, Debug)]
enum Act {
    Push(u64),
    Pop,
    Remove(u64),
    Dedup,
    Grow(usize),
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..20_u64).prop_map(Act::Push),
        3 => Just(Act::Pop),
        1 => (0..20_u64).prop_map(Act::Remove),
        1 => Just(Act::Dedup),
        1 => (0..12_usize).prop_map(Act::Grow),
    ]
}

proptest! {
    #[test]
    fn like_a_deque(capacity in 0..8_usize, acts in prop::collection::vec(any_act(), 0..80)) {
        let mut fifo = Fifo::new(vec![0; capacity]);
        let mut capacity = capacity;
        let mut model = VecDeque::new();
        for act in acts {
            match act {
                Act::Push(handle) => {
                    let room = model.len() < capacity;
                    prop_assert_eq!(fifo.push(handle).is_ok(), room);
                    if room {
                        model.push_back(handle);
                    }
                }
                Act::Pop => prop_assert_eq!(fifo.pop(), model.pop_front()),
                Act::Remove(handle) => {
                    let before = model.len();
                    model.retain(|one| *one != handle);
                    prop_assert_eq!(fifo.remove(handle), model.len() != before);
                }
                Act::Dedup => {
                    fifo.dedup();
                    let mut seen = HashSet::new();
                    model.retain(|one| seen.insert(*one));
                }
                Act::Grow(next) => {
                    let fits = next >= model.len();
                    prop_assert_eq!(fifo.move_to(vec![0; next]).is_ok(), fits);
                    if fits {
                        capacity = next;
                    }
                }
            }
            prop_assert_eq!((fifo.len(), fifo.capacity()), (model.len(), capacity));
        }
        while let Some(handle) = model.pop_front() {
            prop_assert_eq!(fifo.pop(), Some(handle));
        }
        prop_assert_eq!(fifo.pop(), None);
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the receives of a Shared Receive Queue with a map.

use crate::rust::model::{
    completion::CompletionFlags,
    dto::{
        Dto,
        Slot, //
    },
    event::Operation,
    shared_receives::SharedReceives,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn storage(count: usize) -> Vec<Slot> {
    vec![Slot::vacant(); count]
}

fn dto(cookie: u64) -> Dto {
    Dto {
        cookie,
        operation: Operation::Receive,
        flags: CompletionFlags::default(),
        length: 7,
        posted_at: 0,
    }
}

#[test]
fn a_short_queue_keeps_its_slots() {
    let mut receives = SharedReceives::new(storage(4));
    let slots: Vec<_> = (0..4).map(|cookie| receives.post(dto(cookie))).collect();
    assert_eq!(receives.post(dto(9)), None);
    assert!(!receives.set_limit(3));
    assert!(!receives.set_limit(5));
    assert_eq!(receives.limit(), 4);
    let last = slots[3].expect("a slot");
    for slot in slots[..3].iter().flatten() {
        receives.complete(*slot);
    }
    assert!(receives.set_limit(1));
    assert_eq!(receives.post(dto(9)), None);
    assert_eq!(receives.complete(last), Some(dto(3)));
    assert_eq!(receives.complete(last), None);
    assert!(receives.set_limit(4));
    assert_eq!((receives.limit(), receives.capacity()), (4, 4));
}

#[test]
fn shorter_storage_is_returned() {
    let mut receives = SharedReceives::new(storage(4));
    let slot = receives.post(dto(5)).expect("a slot");
    assert_eq!(receives.grow(storage(3)).len(), 3);
    assert_eq!(receives.grow(storage(6)).len(), 4);
    assert_eq!((receives.capacity(), receives.limit()), (6, 4));
    assert!(receives.set_limit(6));
    assert_eq!(receives.complete(slot), Some(dto(5)));
}

#[derive(Clone, Debug)]
enum Step {
    Post,
    Complete(usize),
    Limit(u32),
    Grow(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Post),
        3 => any::<usize>().prop_map(Step::Complete),
        1 => (0..40_u32).prop_map(Step::Limit),
        1 => (0..40_usize).prop_map(Step::Grow),
    ]
}

proptest! {
    #[test]
    fn each_receive_keeps_its_slot(
        capacity in 1..20_usize,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut receives = SharedReceives::new(storage(capacity));
        let mut posted = BTreeMap::new();
        let (mut limit, mut capacity) = (capacity as u32, capacity as u32);
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Post => {
                    let dto = dto(number as u64);
                    let slot = receives.post(dto);
                    prop_assert_eq!(slot.is_some(), (posted.len() as u32) < limit);
                    if let Some(slot) = slot {
                        prop_assert!(slot < capacity);
                        prop_assert_eq!(posted.insert(slot, dto), None);
                    }
                }
                Step::Complete(any) => {
                    let slot = posted.keys().nth(any % posted.len().max(1)).copied();
                    let slot = slot.unwrap_or(any as u32);
                    prop_assert_eq!(receives.complete(slot), posted.remove(&slot));
                }
                Step::Limit(wanted) => {
                    let fits = wanted <= capacity && posted.len() as u32 <= wanted;
                    prop_assert_eq!(receives.set_limit(wanted), fits);
                    limit = if fits { wanted } else { limit };
                }
                Step::Grow(count) => {
                    receives.grow(storage(count));
                    capacity = capacity.max(count as u32);
                }
            }
            prop_assert_eq!(receives.posted() as usize, posted.len());
            prop_assert_eq!((receives.limit(), receives.capacity()), (limit, capacity));
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the LMR contexts by slot against a map.

use crate::rust::model::slot_contexts::SlotContexts;
use proptest::{
    collection::vec,
    prelude::*, //
};
use std::collections::HashMap;

proptest! {
    #[test]
    fn a_slot_has_the_contexts_of_its_last_dto(
        per_slot in 1_usize..5,
        posts in vec((0_u32..6, vec(0_u32..9, 0..5)), 0..40),
        grows_after in 0_usize..40,
    ) {
        let mut contexts = SlotContexts::new(per_slot, vec![0; 4 * per_slot]);
        let (mut expected, mut slots) = (HashMap::new(), 4);
        for (number, (slot, named)) in posts.into_iter().enumerate() {
            if number == grows_after {
                contexts.grow(vec![0; 6 * per_slot]);
                slots = 6;
            }
            let named: Vec<_> = named.into_iter().take(per_slot).collect();
            contexts.set(slot, named.iter().copied());
            if slot < slots {
                expected.insert(slot, named);
            }
            for slot in 0..6 {
                for context in 1..9 {
                    let is_named = expected
                        .get(&slot)
                        .is_some_and(|named: &Vec<u32>| named.contains(&context));
                    prop_assert_eq!(contexts.has(slot, context), is_named);
                }
            }
        }
    }
}

#[test]
fn without_storage_there_are_no_contexts() {
    let mut contexts = SlotContexts::new(0, Vec::new());
    contexts.set(0, [5].into_iter());
    contexts.set(u32::MAX, [5].into_iter());
    assert!(!contexts.has(0, 5) && !contexts.has(0, 0) && !contexts.has(u32::MAX, 5));
}

#[test]
fn shorter_storage_is_returned() {
    let mut contexts = SlotContexts::new(1, vec![0; 4]);
    contexts.set(3, [7].into_iter());
    assert_eq!(contexts.grow(vec![0; 2]).len(), 2);
    assert!(contexts.has(3, 7));
}

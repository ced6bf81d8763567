// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the resource counts of a user with a plain count.

use crate::rust::model::allowance::{
    share_of,
    Ledger,
    ITEMS, //
};
use proptest::prelude::*;

#[test]
fn each_item_is_counted_separately() {
    let ledger = Ledger::new();
    for (place, item) in ITEMS.into_iter().enumerate() {
        let amount = place as u32 + 1;
        assert_eq!(item as usize, place);
        assert!(ledger.take(item, amount, amount));
        assert!(!ledger.take(item, 1, amount));
    }
    for (place, item) in ITEMS.into_iter().enumerate() {
        assert_eq!(ledger.held(item), place as u32 + 1);
        ledger.give_back(item, place as u32 + 1);
        assert_eq!(ledger.held(item), 0);
    }
    assert_eq!(ledger.refused(), ITEMS.len() as u32);
}

#[test]
fn names_differ() {
    let mut names: Vec<_> = ITEMS.iter().map(|item| item.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ITEMS.len());
}

#[test]
fn a_share_is_a_percentage_and_at_least_one() {
    for (available, share, part) in [
        (100, 50, 50),
        (101, 50, 50),
        (u32::MAX, 100, u32::MAX),
        (u32::MAX, 1000, u32::MAX),
        (u32::MAX, 50, u32::MAX / 2),
        (1, 50, 1),
        (0, 50, u32::MAX),
        (200, 0, 1),
        (200, 1, 2),
    ] {
        assert_eq!(share_of(available, share), part, "{available} {share}");
    }
}

proptest! {
    #[test]
    fn never_more_than_the_limit(steps in prop::collection::vec((any::<bool>(), 0..20_u32), 0..200), limit in 0..50_u32) {
        let ledger = Ledger::new();
        let item = ITEMS[0];
        let (mut held, mut refused) = (Vec::new(), 0);
        for (takes, amount) in steps {
            if takes {
                let sum: u32 = held.iter().sum();
                let taken = ledger.take(item, amount, limit);
                prop_assert_eq!(taken, sum + amount <= limit);
                if taken {
                    held.push(amount);
                } else {
                    refused += 1;
                }
            } else if let Some(amount) = held.pop() {
                ledger.give_back(item, amount);
            }
            prop_assert_eq!(ledger.held(item), held.iter().sum::<u32>());
            prop_assert_eq!(ledger.refused(), refused);
        }
        prop_assert!(!ledger.take(item, u32::MAX, u32::MAX) || held.iter().all(|amount| *amount == 0));
    }
}

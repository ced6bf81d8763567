// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Several threads of a user charge and uncharge a resource.

use super::explore;
use crate::rust::model::allowance::{
    Item,
    Ledger, //
};
use loom::{
    sync::Arc,
    thread, //
};

#[test]
fn concurrent_charges_never_exceed_the_limit_and_one_succeeds() {
    explore(|| {
        let ledger = Arc::new(Ledger::new());
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let ledger = ledger.clone();
                thread::spawn(move || ledger.take(Item::Object, 3, 5))
            })
            .collect();
        let taken = takers.into_iter().map(|taker| taker.join().unwrap());
        assert_eq!(taken.filter(|taken| *taken).count(), 1);
        assert_eq!(ledger.held(Item::Object), 3);
    });
}

#[test]
fn a_concurrent_uncharge_is_not_lost() {
    explore(|| {
        let ledger = Arc::new(Ledger::new());
        assert!(ledger.take(Item::Object, 2, 4));
        let giver = {
            let ledger = ledger.clone();
            thread::spawn(move || ledger.give_back(Item::Object, 2))
        };
        let taker = {
            let ledger = ledger.clone();
            thread::spawn(move || ledger.take(Item::Object, 2, 4))
        };
        giver.join().unwrap();
        assert!(taker.join().unwrap());
        assert_eq!(ledger.held(Item::Object), 2);
    });
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the copy of a region against plain arithmetic, and its editions.

use crate::rust::model::recent_region::{
    Editions,
    RecentRegion, //
};
use proptest::prelude::*;

const CONTEXT: u32 = 7;

fn copy_of(editions: &Editions, address: u64, length: u64, writable: bool) -> RecentRegion {
    RecentRegion {
        edition: editions.current(),
        context: CONTEXT,
        address,
        length,
        device_address: 0x5000,
        writable,
    }
}

/// Addresses near the ends of the address space, and near each other.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![0..40_u64, (u64::MAX - 40)..=u64::MAX]
}

proptest! {
    #[test]
    fn a_segment_is_placed_exactly_if_the_region_has_all_of_it(
        (start, segment) in (address(), address()),
        (length, part) in (0..40_u64, 0..40_u32),
        (writable, writes) in any::<(bool, bool)>(),
        context in CONTEXT - 1..=CONTEXT,
    ) {
        let editions = Editions::new(1);
        let length = length.min(u64::MAX - start);
        let copy = copy_of(&editions, start, length, writable);
        let place = copy.place(editions.current(), context, segment, part, writes);
        let ends = |address: u64, length: u64| u128::from(address) + u128::from(length);
        let has_all = segment >= start && ends(segment, part.into()) <= ends(start, length);
        let allowed = context == CONTEXT && (writable || !writes);
        let expected = (has_all && allowed).then(|| 0x5000 + (segment - start));
        prop_assert_eq!(place, expected);
    }
}

#[test]
fn a_change_of_the_table_ends_the_use_of_a_copy() {
    let editions = Editions::new(1);
    let copy = copy_of(&editions, 100, 10, true);
    let place = || copy.place(editions.current(), CONTEXT, 103, 7, true);
    assert_eq!(place(), Some(0x5003));
    for _ in 0..3 {
        editions.advance();
        assert_eq!(place(), None);
    }
}

#[test]
fn a_copy_is_of_one_pz() {
    let (editions, others) = (Editions::new(1), Editions::new(2));
    let copy = copy_of(&editions, 100, 10, true);
    assert_eq!(copy.place(others.current(), CONTEXT, 100, 1, false), None);
    assert_eq!(
        copy.place(editions.current(), CONTEXT, 100, 1, false),
        Some(0x5000)
    );
}

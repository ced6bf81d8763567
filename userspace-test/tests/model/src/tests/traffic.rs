// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the counts of completed DTOs, and that reported totals never decrease.

use crate::rust::model::traffic::{
    Totals,
    Traffic,
    Transfers, //
};
use proptest::prelude::*;

fn traffic([requests, receives, failures]: [u64; 3]) -> Traffic {
    let transfers = |dtos: u64| Transfers {
        dtos,
        bytes: dtos.wrapping_mul(3),
    };
    Traffic {
        requests: transfers(requests),
        receives: transfers(receives),
        failures,
    }
}

#[test]
fn a_sum_without_an_endpoint_is_not_reported() {
    let mut totals = Totals::default();
    totals.add_past(&traffic([1, 0, 0]));
    totals.add_past(&traffic([1, 2, 3]));
    assert_eq!(totals.past(), traffic([2, 2, 3]));
    assert_eq!(totals.report(&traffic([5, 6, 7])), traffic([5, 6, 7]));
    assert_eq!(totals.report(&traffic([2, 9, 7])), traffic([5, 9, 7]));
    assert_eq!(totals.report(&traffic([6, 8, 8])), traffic([6, 9, 8]));
}

#[test]
fn counts_that_wrap_around_are_reported() {
    let mut totals = Totals::default();
    for quarter in 1..=6_u64 {
        let now = traffic([0, 0, (u64::MAX / 4).wrapping_mul(quarter)]);
        assert_eq!(totals.report(&now), now);
    }
}

proptest! {
    /// Endpoints transfer, are freed and are missing in sums for a while. What is reported is never
    /// less than before, and never more than there was.
    #[test]
    fn reports_never_decrease(
        steps in prop::collection::vec((0..3_usize, 0..4_u64, any::<bool>()), 1..100),
    ) {
        let mut totals = Totals::default();
        let (mut live, mut sum, mut last) = ([0_u64; 3], 0, 0);
        for (ep, more, is_freed) in steps {
            live[ep] += more;
            sum += more;
            if is_freed {
                // The reader has read the past before the Endpoint was freed, and does not find it.
                let past = totals.past().failures;
                totals.add_past(&traffic([0, 0, live[ep]]));
                live[ep] = 0;
                let found = past + live.iter().sum::<u64>();
                let reported = totals.report(&traffic([0, 0, found])).failures;
                prop_assert!(reported >= last && reported <= sum);
            }
            let found = totals.past().failures + live.iter().sum::<u64>();
            prop_assert_eq!(found, sum);
            last = totals.report(&traffic([0, 0, found])).failures;
            prop_assert_eq!(last, sum);
        }
    }
}

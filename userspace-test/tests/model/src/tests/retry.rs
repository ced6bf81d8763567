// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the time after which a connection to a silent peer fails.

use crate::rust::model::retry::{
    Retry,
    RetryLimits,
    LONGER_THAN_RNR,
    LONGEST_MS, //
};
use proptest::prelude::*;

/// Limits of a RoCE path as `rdma_cm` sets it up, on an adapter on which a retry count of 7 means 7
/// retries.
const ROCE: RetryLimits = RetryLimits {
    min_timeout: 17,
    max_retries: 7,
    may_be_endless: false,
};

/// The same on soft-RoCE, on which a retry count of 7 means no limit, and which counts a retry if
/// the interval expires before the delay that a receiver requests.
const SOFT: RetryLimits = RetryLimits {
    min_timeout: LONGER_THAN_RNR,
    max_retries: 6,
    may_be_endless: true,
};

/// Returns the shortest and the longest time in nanoseconds until the connection fails.
fn failure_times(retry: Retry) -> (u64, u64) {
    let interval = 4_096_u64 << retry.timeout;
    (
        interval * u64::from(retry.count),
        interval * (u64::from(retry.count) + 1),
    )
}

#[test]
fn the_default_time_out_is_thirty_seconds_and_little_more() {
    assert_eq!(
        Retry::for_peer_timeout(30_000, ROCE),
        Retry {
            timeout: 20,
            count: 7
        }
    );
    assert_eq!(
        Retry::for_peer_timeout(30_000, SOFT),
        Retry {
            timeout: 21,
            count: 4
        }
    );
    for limits in [ROCE, SOFT] {
        let (least, most) = failure_times(Retry::for_peer_timeout(30_000, limits));
        assert!(least >= 30_000_000_000, "{least} ns of {limits:?}");
        assert!(most <= 45_000_000_000, "{most} ns of {limits:?}");
    }
}

/// The longest wait that can be encoded is 655.36 ms.
#[test]
fn the_longest_rnr_delay_is_within_an_interval_of_soft_roce() {
    for milliseconds in [1, 600, 3_200, 30_000] {
        let (least, _) = failure_times(Retry {
            count: 1,
            ..Retry::for_peer_timeout(milliseconds, SOFT)
        });
        assert!(least > 655_360_000, "{least} ns for {milliseconds} ms");
    }
    const { assert!(4_096_u64 << (LONGER_THAN_RNR - 1) < 655_360_000) };
}

#[test]
fn the_time_out_is_at_least_that_of_the_path() {
    assert_eq!(
        Retry::for_peer_timeout(1, ROCE),
        Retry {
            timeout: 17,
            count: 1
        }
    );
    // An encoded time-out of 0 would disable the timer, so a path with a minimum of 0 gets 1.
    let retry = Retry::for_peer_timeout(
        0,
        RetryLimits {
            min_timeout: 0,
            ..ROCE
        },
    );
    assert_eq!((retry.timeout, retry.count), (1, 1));
}

#[test]
fn time_outs_beyond_the_encoding_are_the_longest() {
    let strange = RetryLimits {
        min_timeout: 255,
        max_retries: 0,
        may_be_endless: false,
    };
    assert_eq!(
        Retry::for_peer_timeout(u32::MAX, strange),
        Retry {
            timeout: 31,
            count: 1
        }
    );
    assert_eq!(
        Retry::for_peer_timeout(u32::MAX, ROCE),
        Retry {
            timeout: 31,
            count: 7
        }
    );
}

#[test]
fn without_a_time_out_soft_roce_repeats_for_ever_and_an_adapter_for_an_hour() {
    assert_eq!(
        Retry::for_any_time(SOFT),
        Retry {
            timeout: LONGER_THAN_RNR,
            count: 7
        }
    );
    let (least, _) = failure_times(Retry::for_any_time(ROCE));
    assert_eq!(LONGEST_MS, 3_600_000);
    assert!(least >= 3_600_000_000_000, "{least} ns");
}

proptest! {
    #[test]
    fn a_silent_peer_fails_within_two_intervals_of_its_time_out(
        milliseconds in prop_oneof![1..=3_600_000_u32, 1..=10_000_u32],
        shortest in 0..=20_u8,
        most in 4..=7_u8,
    ) {
        let limits = RetryLimits { min_timeout: shortest, max_retries: most, may_be_endless: false };
        let retry = Retry::for_peer_timeout(milliseconds, limits);
        prop_assert!((1..=31).contains(&retry.timeout), "{retry:?}");
        prop_assert!((1..=most).contains(&retry.count), "{retry:?}");
        prop_assert!(retry.timeout >= shortest, "{retry:?}");
        let asked = u64::from(milliseconds) * 1_000_000;
        let (least, longest) = failure_times(retry);
        prop_assert!(least >= asked, "{retry:?}");
        let interval = longest - least;
        prop_assert!(longest < asked + 2 * interval, "{retry:?}");
        let is_shortest = retry.timeout == shortest.max(1);
        prop_assert!(is_shortest || longest < 2 * asked, "{retry:?}");
    }

    #[test]
    fn the_interval_is_the_shortest_possible(
        milliseconds in 1..=3_600_000_u32,
        shortest in 1..=20_u8,
        most in 1..=7_u8,
    ) {
        let retry = Retry::for_peer_timeout(milliseconds, RetryLimits { min_timeout: shortest, max_retries: most, may_be_endless: false });
        let half = u64::from(most) * (4_096_u64 << (retry.timeout - 1));
        prop_assert!(
            retry.timeout == shortest || half < u64::from(milliseconds) * 1_000_000,
            "{retry:?}"
        );
    }
}

#[test]
fn the_lossy_suites_have_the_most_retries_of_the_shortest_interval() {
    let suites = include_str!("../../../../vm/suites/guest");
    let (_, rest) = suites
        .split_once("'--parameter peer_timeout_ms=")
        .expect("the parameter of the suites");
    let (milliseconds, _) = rest.split_once('\'').expect("its end");
    let milliseconds = milliseconds.parse().expect("milliseconds");
    assert_eq!(
        Retry::for_peer_timeout(milliseconds, SOFT),
        Retry {
            timeout: LONGER_THAN_RNR,
            count: 6
        }
    );
}

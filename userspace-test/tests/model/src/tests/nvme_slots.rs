// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The account of a queue's requests: never more than there are, and none lost.

use crate::nvme::target::slots::{requests, Slots};
use proptest::prelude::*;

#[test]
fn requests_are_reserved_and_given_back() {
    let mut slots = Slots::new(5);
    assert!(slots.reserve(3));
    assert!(!slots.reserve(3));
    assert!(slots.reserve(2));
    assert!(!slots.reserve(1));
    slots.release(3);
    assert!(slots.reserve(3));
    assert!(!slots.reserve(1));
}

#[test]
fn a_refused_reservation_takes_nothing() {
    let mut slots = Slots::new(4);
    assert!(!slots.reserve(5));
    assert!(slots.reserve(4));
}

#[test]
fn the_number_of_requests_suffices_for_the_largest_command() {
    assert_eq!(requests(128, 9, 1 << 15), Some(265));
    assert_eq!(requests(1, 9, 1 << 15), Some(11));
    // The device limits it, but not below one command.
    assert_eq!(requests(128, 9, 100), Some(100));
    assert_eq!(requests(128, 9, 10), Some(10));
    assert_eq!(requests(128, 9, 9), None);
}

proptest! {
    #[test]
    fn no_request_is_invented_or_lost(all in 1..300_u32, wishes in prop::collection::vec(0..40_u32, 0..100)) {
        let mut slots = Slots::new(all);
        let (mut held, mut sum) = (Vec::new(), 0);
        for wish in wishes {
            let granted = slots.reserve(wish);
            prop_assert_eq!(granted, sum + wish <= all);
            if granted {
                sum += wish;
                held.push(wish);
            } else if let Some(oldest) = held.pop() {
                slots.release(oldest);
                sum -= oldest;
            }
        }
        slots.release(sum);
        prop_assert!(slots.reserve(all));
        prop_assert!(!slots.reserve(1));
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the choice of completion vectors: the requested one, or consecutive ones starting at the
//! creator's CPU.

use crate::rust::model::vector::Placement;
use proptest::prelude::*;
use std::collections::HashSet;

#[test]
fn no_vector_beyond_the_last() {
    for (asked, count, there) in [
        (0, 1, true),
        (1, 1, false),
        (3, 4, true),
        (4, 4, false),
        (i32::MAX, 4, false),
        (0, 0, true),
        (1, 0, false),
        (-1, 0, true),
        (-1, 1, true),
        (-2, 4, false),
        (i32::MIN, 4, false),
    ] {
        let found = Placement::new(asked, 7, count);
        assert_eq!(found.is_some(), there, "{asked} of {count}");
    }
}

proptest! {
    #[test]
    fn a_requested_vector_is_used_for_all_queues(asked in 0..64_i32, cpu: u32, nth: u32, behind in 0..64_u32) {
        let count = asked as u32 + 1 + behind;
        let place = Placement::new(asked, cpu, count).expect("a vector");
        prop_assert_eq!(place.first(), asked as u32);
        prop_assert_eq!(place.vector_of_queue(nth, count), asked as u32);
    }

    #[test]
    fn by_default_the_queues_use_all_vectors_from_that_of_the_cpu(
        cpu: u32,
        count in 1..64_u32,
    ) {
        let place = Placement::new(Placement::ANY, cpu, count).expect("a vector");
        prop_assert_eq!(place.first(), cpu % count);
        prop_assert_eq!(place.vector_of_queue(0, count), cpu % count);
        let all: HashSet<_> = (0..count).map(|nth| place.vector_of_queue(nth, count)).collect();
        prop_assert_eq!(all.len(), count as usize);
        prop_assert!(all.iter().all(|vector| *vector < count));
        prop_assert_eq!(place.vector_of_queue(count, count), cpu % count);
    }
}

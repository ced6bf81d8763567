// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares high watermarks with a simple count.

use crate::rust::model::watermarks::{
    Exceeded,
    Marks,
    Watermarks, //
};
use proptest::prelude::*;

proptest! {
    #[test]
    fn each_mark_is_compared_with_the_count(
        soft in proptest::option::of(0_u32..6),
        hard in proptest::option::of(0_u32..6),
        first in 0_u32..4,
        steps in proptest::collection::vec(any::<bool>(), 0..40),
    ) {
        let mut watermarks = Watermarks::new(Marks { soft, hard }, first);
        let (mut count, mut reported) = (first, false);
        for adds in steps {
            if adds {
                watermarks.add(1);
                count += 1;
            } else {
                watermarks.take_one();
                count = count.saturating_sub(1);
            }
            let exceeds_soft = soft.is_some_and(|mark| count > mark);
            let expected = Exceeded {
                soft: exceeds_soft && !reported,
                hard: hard.is_some_and(|mark| count > mark),
            };
            reported |= exceeds_soft;
            prop_assert_eq!(watermarks.check(), expected);
        }
    }
}

#[test]
fn an_infinite_mark_is_none() {
    assert!(!Marks::default().any());
    assert!(Marks {
        soft: Some(0),
        hard: None
    }
    .any());
    assert!(Marks {
        soft: None,
        hard: Some(0)
    }
    .any());
}

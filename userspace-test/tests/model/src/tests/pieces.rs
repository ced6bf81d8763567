// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the places of offsets with a walk over the pieces.

use crate::rust::model::pieces::{Ends, Position};
use proptest::prelude::*;

/// Returns the place of each offset of pieces of these sizes.
fn walk(sizes: &[u64]) -> Vec<Position> {
    let place = |piece, into, size: u64| Position {
        piece,
        into,
        left: size - into,
    };
    sizes
        .iter()
        .enumerate()
        .flat_map(|(piece, &size)| (0..size).map(move |into| place(piece, into, size)))
        .collect()
}

#[test]
fn pages_begin_within_a_page() {
    let ends = Ends::Regular {
        first: 100,
        size: 4096,
    };
    for (offset, piece, into, left) in [
        (0, 0, 0, 100),
        (99, 0, 99, 1),
        (100, 1, 0, 4096),
        (4195, 1, 4095, 1),
        (4196, 2, 0, 4096),
    ] {
        assert_eq!(ends.position(offset), Some(Position { piece, into, left }));
    }
}

#[test]
fn no_place_is_beyond_the_end() {
    let ends = [10, 30];
    assert_eq!(
        Ends::Listed(&ends).position(29),
        Some(Position {
            piece: 1,
            into: 19,
            left: 1
        })
    );
    assert_eq!(Ends::Listed(&ends).position(30), None);
    assert_eq!(Ends::Listed(&ends).position(u64::MAX), None);
    assert_eq!(Ends::Listed(&[]).position(0), None);
    assert_eq!(Ends::Regular { first: 0, size: 0 }.position(0), None);
    let last = Ends::Regular {
        first: 1,
        size: u64::MAX,
    }
    .position(u64::MAX);
    assert_eq!(
        last,
        Some(Position {
            piece: 1,
            into: u64::MAX - 1,
            left: 1
        })
    );
    assert_eq!(Ends::Regular { first: 0, size: 1 }.position(u64::MAX), None);
}

proptest! {
    #[test]
    fn regular_positions_are_those_of_a_walk(first in 1_u64..40, size in 1_u64..40) {
        let sizes: Vec<_> = [first].into_iter().chain([size; 4]).collect();
        for (offset, place) in walk(&sizes).into_iter().enumerate() {
            prop_assert_eq!(Ends::Regular { first, size }.position(offset as u64), Some(place));
        }
    }

    #[test]
    fn listed_positions_are_those_of_a_walk(sizes in prop::collection::vec(1_u64..40, 1..8)) {
        let mut end = 0;
        let ends: Vec<_> = sizes.iter().map(|size| { end += size; end }).collect();
        for (offset, place) in walk(&sizes).into_iter().enumerate() {
            prop_assert_eq!(Ends::Listed(&ends).position(offset as u64), Some(place));
        }
    }
}

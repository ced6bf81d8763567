// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the reservations of a completion queue with a count of the completions that may be
//! queued.

use crate::rust::model::cq_room::{
    next_depth,
    CqRoom, //
};
use proptest::prelude::*;

#[test]
fn the_next_is_four_times_as_long_or_as_long_as_needed() {
    for (last, needed, max, depth) in [
        (1024, 1, 32767, Some(4096)),
        (1024, 5000, 32767, Some(5000)),
        (4096, 1, 32767, Some(16384)),
        (16384, 1, 32767, Some(32767)),
        (32767, 32767, 32767, Some(32767)),
        (1024, 32768, 32767, None),
        (0, 7, 32767, Some(7)),
        (u32::MAX, 1, u32::MAX, Some(u32::MAX)),
        (1, 0, 0, Some(0)),
    ] {
        assert_eq!(
            next_depth(last, needed, max),
            depth,
            "{last} {needed} {max}"
        );
    }
}

#[test]
fn nothing_is_taken_beyond_the_depth() {
    let room = CqRoom::new(10);
    assert_eq!(room.depth(), 10);
    assert!(room.take(10));
    assert!(!room.take(1));
    assert!(room.take(0));
    room.give_back(4);
    assert!(!room.take(5));
    assert!(!room.take(u32::MAX));
    assert!(room.take(4));
}

#[test]
fn what_is_given_up_takes_room_until_the_end_of_the_queue_was_seen_behind_it() {
    let room = CqRoom::new(4);
    assert!(room.take(4));
    let snapshot = room.begin_poll();
    room.give_up(3);
    room.give_back(1);
    // This poll started before the entries were given up.
    assert_eq!(room.end_poll_empty(snapshot), None);
    assert!(!room.take(2));
    let snapshot = room.begin_poll();
    assert_eq!(room.end_poll_empty(snapshot), Some(3));
    assert!(room.take(4));
    assert!(!room.take(1));
}

/// An operation. A number stands for the entries of a queue pair.
#[derive(Clone, Copy, Debug)]
enum Act {
    Take(u32),
    /// Destroys the n-th queue pair, which leaves this number of completions.
    Go(usize, u32),
    /// Polls, and finds the queue empty or not. A queue pair may be destroyed during the poll.
    Look(bool, Option<(usize, u32)>),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..12_u32).prop_map(Act::Take),
        3 => (any::<usize>(), 0..12_u32).prop_map(|(nth, left)| Act::Go(nth, left)),
        2 => (any::<bool>(), prop::option::of((any::<usize>(), 0..12_u32)))
            .prop_map(|(empty, goes)| Act::Look(empty, goes)),
    ]
}

proptest! {
    #[test]
    fn never_more_than_the_depth(
        depth in 0..40_u32,
        acts in prop::collection::vec(act(), 0..80),
    ) {
        let room = CqRoom::new(depth);
        let mut pairs: Vec<u32> = Vec::new();
        let mut left_behind = 0;
        let go = |pairs: &mut Vec<u32>, nth: usize, left: u32| {
            if pairs.is_empty() {
                return 0;
            }
            let nth = nth % pairs.len();
            let taken = pairs.remove(nth);
            let left = left.min(taken);
            room.give_up(left);
            room.give_back(taken - left);
            left
        };
        for act in acts {
            match act {
                Act::Take(entries) => {
                    let fits = pairs.iter().sum::<u32>() + left_behind + entries <= depth;
                    prop_assert_eq!(room.take(entries), fits);
                    if fits {
                        pairs.push(entries);
                    }
                }
                Act::Go(nth, left) => left_behind += go(&mut pairs, nth, left),
                Act::Look(empty, goes) => {
                    let snapshot = room.begin_poll();
                    let had = left_behind;
                    if let Some((nth, left)) = goes {
                        left_behind += go(&mut pairs, nth, left);
                    }
                    if empty {
                        prop_assert_eq!(room.end_poll_empty(snapshot), (had != 0).then_some(had));
                        left_behind -= had;
                    }
                }
            }
        }
    }
}

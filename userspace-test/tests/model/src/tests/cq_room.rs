// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the reservations of a completion queue with a count of the completions that may be
//! queued.

use crate::rust::model::cq_room::{
    next_depth,
    CqRoom,
    Taken, //
};
use proptest::prelude::*;

#[test]
fn the_next_cq_is_four_times_as_deep_or_as_deep_as_needed() {
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
    Taken::new(4).end(&room);
    assert!(!room.take(5));
    assert!(!room.take(u32::MAX));
    assert!(room.take(4));
}

#[test]
fn given_up_entries_are_released_by_a_later_poll_that_finds_the_cq_empty() {
    let room = CqRoom::new(4);
    assert!(room.take(4));
    let snapshot = room.begin_poll();
    let taken = Taken::new(4);
    assert_eq!(taken.give_up(3), 3);
    assert!(!room.has_given_up());
    taken.end(&room);
    assert!(room.has_given_up());
    // This poll began before the queue pair was destroyed.
    assert_eq!(room.end_poll_empty(snapshot), None);
    assert!(!room.take(2));
    let snapshot = room.begin_poll();
    assert_eq!(room.end_poll_empty(snapshot), Some(3));
    assert!(!room.has_given_up());
    assert!(room.take(4));
    assert!(!room.take(1));
}

#[test]
fn a_queue_pair_that_outlives_its_endpoint_keeps_its_entries() {
    let room = CqRoom::new(4);
    assert!(room.take(4));
    let taken = Taken::new(4);
    assert_eq!(taken.give_up(4), 4);
    // The queue is empty, but further completions may arrive.
    let before = room.begin_poll();
    assert_eq!(room.end_poll_empty(before), None);
    assert!(!room.take(1));
    taken.end(&room);
    let before = room.begin_poll();
    assert_eq!(room.end_poll_empty(before), Some(4));
    assert!(room.take(4));
}

#[test]
fn no_more_entries_are_given_up_than_were_taken() {
    let taken = Taken::new(5);
    assert_eq!(taken.give_up(3), 3);
    assert_eq!(taken.give_up(3), 2);
    assert_eq!(taken.give_up(1), 0);
    let room = CqRoom::new(5);
    assert!(room.take(5));
    taken.end(&room);
    assert!(!room.take(1));
}

#[test]
fn split_parts_add_up_to_the_whole() {
    for (entries, part, sizes) in [(7, 3, [4, 3]), (7, 0, [7, 0]), (7, 9, [0, 7])] {
        let mut first = Taken::new(entries);
        let second = first.split(part);
        assert_eq!([first, second].map(|taken| taken.give_up(u32::MAX)), sizes);
    }
}

/// An operation on the queue pairs. The first number selects one.
#[derive(Clone, Copy, Debug)]
enum Act {
    Take(u32),
    /// Gives up a number of entries of the selected one.
    GiveUp(usize, u32),
    /// Destroys the selected one.
    Destroy(usize),
    /// Polls, and finds the queue empty or not. A queue pair may be destroyed meanwhile.
    Poll(bool, Option<usize>),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..12_u32).prop_map(Act::Take),
        3 => (any::<usize>(), 0..12_u32).prop_map(|(nth, count)| Act::GiveUp(nth, count)),
        3 => any::<usize>().prop_map(Act::Destroy),
        2 => (any::<bool>(), prop::option::of(any::<usize>()))
            .prop_map(|(empty, destroyed)| Act::Poll(empty, destroyed)),
    ]
}

/// A queue pair, by a plain count.
struct Pair {
    taken: Taken,
    entries: u32,
    given_up: u32,
}

proptest! {
    #[test]
    fn never_more_than_the_depth(
        depth in 0..40_u32,
        acts in prop::collection::vec(act(), 0..80),
    ) {
        let room = CqRoom::new(depth);
        let mut pairs: Vec<Pair> = Vec::new();
        let mut left_behind = 0;
        let destroy = |pairs: &mut Vec<Pair>, nth: usize| {
            if pairs.is_empty() {
                return 0;
            }
            let nth = nth % pairs.len();
            let pair = pairs.remove(nth);
            pair.taken.end(&room);
            pair.given_up
        };
        for act in acts {
            match act {
                Act::Take(entries) => {
                    let sum: u32 = pairs.iter().map(|pair| pair.entries).sum();
                    let fits = sum + left_behind + entries <= depth;
                    prop_assert_eq!(room.take(entries), fits);
                    if fits {
                        pairs.push(Pair { taken: Taken::new(entries), entries, given_up: 0 });
                    }
                }
                Act::GiveUp(nth, count) => if !pairs.is_empty() {
                    let nth = nth % pairs.len();
                    let pair = &mut pairs[nth];
                    let rest = pair.entries - pair.given_up;
                    prop_assert_eq!(pair.taken.give_up(count), count.min(rest));
                    pair.given_up += count.min(rest);
                }
                Act::Destroy(nth) => left_behind += destroy(&mut pairs, nth),
                Act::Poll(empty, destroyed) => {
                    let snapshot = room.begin_poll();
                    let had = left_behind;
                    if let Some(nth) = destroyed {
                        left_behind += destroy(&mut pairs, nth);
                    }
                    if empty {
                        prop_assert_eq!(room.end_poll_empty(snapshot), (had != 0).then_some(had));
                        left_behind -= had;
                    }
                }
            }
            prop_assert_eq!(room.has_given_up(), left_behind != 0);
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the reservations of a completion queue with a count of the completions that may be
//! queued.

use crate::rust::model::cq_room::{
    next_depth,
    CqReservation,
    CqRoom,
    Mark, //
};
use proptest::prelude::*;
use std::collections::VecDeque;

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
    CqReservation::new(4).end(&room);
    assert!(!room.take(5));
    assert!(!room.take(u32::MAX));
    assert!(room.take(4));
}

#[test]
fn a_longer_reservation_ends_with_all_its_entries() {
    for (given_up, free) in [(0, 10), (5, 5), (7, 3), (u32::MAX, 3)] {
        let room = CqRoom::new(10);
        assert!(room.take(4));
        let taken = CqReservation::new(4);
        assert!(room.take(3));
        taken.lengthen(3);
        assert_eq!(taken.entries(), 7);
        assert_eq!(taken.give_up(given_up), given_up.min(7));
        taken.end(&room);
        assert!(!room.take(free + 1));
        assert!(room.take(free));
        assert_eq!(room.found_empty(), given_up.min(7));
    }
}

#[test]
fn given_up_entries_are_released_by_a_later_poll_that_finds_the_cq_empty() {
    let room = CqRoom::new(4);
    assert!(room.take(4));
    assert_eq!(room.found_empty(), 0);
    let taken = CqReservation::new(4);
    assert_eq!(taken.give_up(3), 3);
    assert!(!room.has_given_up());
    taken.end(&room);
    assert!(room.has_given_up());
    assert!(!room.take(2));
    assert_eq!(room.found_empty(), 3);
    assert!(!room.has_given_up());
    assert!(room.take(4));
    assert!(!room.take(1));
}

#[test]
fn given_up_entries_are_released_although_the_cq_is_never_empty() {
    let room = CqRoom::new(4);
    assert!(room.take(4));
    let [first, second] = [CqReservation::new(1), CqReservation::new(2)];
    [&first, &second].map(|taken| taken.give_up(u32::MAX));
    first.end(&room);
    assert_eq!(room.completions_taken(3), 0);
    second.end(&room);
    assert_eq!(room.completions_taken(1), 1);
    // The second one waits for completions that were queued when it was destroyed, at most four.
    assert_eq!(room.completions_taken(3), 0);
    assert_eq!(room.completions_taken(1), 2);
    assert!(!room.has_given_up());
    assert!(room.take(3));
}

#[test]
fn a_mark_passes_after_as_many_completions_as_may_be_queued() {
    let room = CqRoom::new(3);
    let mark = room.mark();
    assert!(!room.has_passed(mark));
    room.completions_taken(2);
    let later = room.mark();
    assert!(!room.has_passed(mark));
    room.completions_taken(1);
    assert!(room.has_passed(mark) && !room.has_passed(later));
    room.found_empty();
    assert!(room.has_passed(later) && !room.has_passed(room.mark()));
}

#[test]
fn a_queue_pair_that_outlives_its_endpoint_keeps_its_entries() {
    let room = CqRoom::new(4);
    assert!(room.take(4));
    let taken = CqReservation::new(4);
    assert_eq!(taken.give_up(4), 4);
    // The queue is empty, but further completions may arrive.
    assert_eq!(room.found_empty(), 0);
    assert!(!room.take(1));
    taken.end(&room);
    assert_eq!(room.found_empty(), 4);
    assert!(room.take(4));
}

#[test]
fn the_entries_of_a_queue_pair_that_cannot_be_destroyed_stay_reserved() {
    let room = CqRoom::new(4);
    assert!(room.take(3));
    let taken = CqReservation::new(3);
    assert_eq!(taken.give_up(2), 2);
    assert!(!taken.stays());
    taken.stay();
    assert!(taken.stays());
    taken.end(&room);
    assert!(!room.has_given_up());
    assert_eq!(room.found_empty(), 0);
    assert_eq!(room.completions_taken(4), 0);
    assert!(!room.take(2));
    assert!(room.take(1));
}

#[test]
fn no_more_entries_are_given_up_than_were_taken() {
    let taken = CqReservation::new(5);
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
        let mut first = CqReservation::new(entries);
        let second = first.split(part);
        assert_eq!([first, second].map(|taken| taken.give_up(u32::MAX)), sizes);
    }
}

/// An operation on the queue pairs. The first number selects one.
#[derive(Clone, Copy, Debug)]
enum Act {
    Take(u32),
    /// Queues completions of the selected one.
    Complete(usize, u32),
    /// Gives up what is outstanding of the selected one, and destroys it.
    Destroy(usize),
    /// Takes a number of completions.
    Poll(u32),
    /// Takes the remaining completions.
    Empty,
    Mark,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..12_u32).prop_map(Act::Take),
        4 => (any::<usize>(), 1..12_u32).prop_map(|(nth, count)| Act::Complete(nth, count)),
        2 => any::<usize>().prop_map(Act::Destroy),
        4 => (1..6_u32).prop_map(Act::Poll),
        1 => Just(Act::Empty),
        2 => Just(Act::Mark),
    ]
}

/// A queue pair, by plain counts.
struct Pair {
    id: usize,
    taken: CqReservation,
    entries: u32,
    /// Completions of it that are queued: their slots are busy.
    queued: u32,
}

/// Completion queues, and their accounts.
struct Model {
    room: CqRoom,
    pairs: Vec<Pair>,
    next_id: usize,
    /// Queue pairs of the queued completions.
    queue: VecDeque<usize>,
    /// Number of completions that were queued, and that were taken.
    queued: u64,
    taken: u64,
    /// Marks, and the number of completions that were queued before.
    marks: Vec<(Mark, u64)>,
    given_up: u32,
}

impl Model {
    fn take(&mut self, entries: u32) {
        if self.room.take(entries) {
            let (id, taken) = (self.next_id, CqReservation::new(entries));
            self.next_id += 1;
            self.pairs.push(Pair {
                id,
                taken,
                entries,
                queued: 0,
            });
        }
    }

    fn complete(&mut self, nth: usize, count: u32) {
        let Some(nth) = nth.checked_rem(self.pairs.len()) else {
            return;
        };
        let pair = &mut self.pairs[nth];
        let count = count.min(pair.entries - pair.queued);
        pair.queued += count;
        self.queue.extend((0..count).map(|_| pair.id));
        self.queued += u64::from(count);
    }

    fn destroy(&mut self, nth: usize) {
        let Some(nth) = nth.checked_rem(self.pairs.len()) else {
            return;
        };
        let pair = self.pairs.remove(nth);
        self.given_up += pair.taken.give_up(pair.queued);
        pair.taken.end(&self.room);
    }

    fn poll(&mut self, most: u32) {
        let mut count = 0;
        while count < most {
            let Some(id) = self.queue.pop_front() else {
                break;
            };
            count += 1;
            if let Some(pair) = self.pairs.iter_mut().find(|pair| pair.id == id) {
                pair.queued -= 1;
            }
        }
        self.taken += u64::from(count);
        self.given_up -= self.room.completions_taken(count);
        if count < most {
            self.given_up -= self.room.found_empty();
        }
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let depth = self.room.depth();
        prop_assert!(self.queue.len() <= depth as usize, "the queue overflows");
        prop_assert_eq!(self.room.has_given_up(), self.given_up != 0);
        for (mark, queued) in &self.marks {
            let passed = self.room.has_passed(*mark);
            prop_assert!(!passed || self.taken >= *queued, "passed too early");
            let must = self.queue.is_empty() && self.taken >= queued + u64::from(depth);
            prop_assert!(passed || !must, "passed too late");
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_cq_never_overflows_and_marks_pass_in_time(
        depth in 1..40_u32,
        acts in prop::collection::vec(act(), 0..200),
    ) {
        let mut model = Model {
            room: CqRoom::new(depth),
            pairs: Vec::new(),
            next_id: 0,
            queue: VecDeque::new(),
            queued: 0,
            taken: 0,
            marks: Vec::new(),
            given_up: 0,
        };
        for act in acts {
            match act {
                Act::Take(entries) => model.take(entries),
                Act::Complete(nth, count) => model.complete(nth, count),
                Act::Destroy(nth) => model.destroy(nth),
                Act::Poll(most) => model.poll(most),
                Act::Empty => model.poll(u32::MAX),
                Act::Mark => model.marks.push((model.room.mark(), model.queued)),
            }
            model.check()?;
        }
        // At the latest the end releases all.
        (0..model.pairs.len()).for_each(|_| model.destroy(0));
        model.poll(u32::MAX);
        prop_assert!(model.room.take(depth));
    }
}

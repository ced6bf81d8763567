// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The EVDs of a CNO, against lists.

use crate::rust::model::cno::{
    look::{
        look,
        pop_or_settle,
        Reason,
        Subject, //
    },
    Full,
    Number,
    Roster,
    Seat, //
};
use proptest::prelude::*;

fn roster(seats: usize) -> Roster<Vec<Seat>> {
    Roster::new(vec![Seat::VACANT; seats])
}

#[test]
fn without_seats_nobody_is_attached() {
    let mut none = roster(0);
    assert_eq!(none.attach(1), Err(Full));
    assert_eq!(none.take(), None);
    assert_eq!(none.unclear(), None);
    assert_eq!((none.evds(), none.triggered()), (0, 0));
}

#[test]
fn a_shorter_storage_is_given_back() {
    let mut two = roster(2);
    let seven = two.attach(7).expect("a seat");
    let eight = two.attach(8).expect("a seat");
    assert_eq!(two.attach(9), Err(Full));
    assert!(two.trigger(eight) && two.trigger(seven));
    let short = vec![Seat::VACANT; 1];
    assert_eq!(two.move_to(short.clone()), Err(short));
    assert_eq!(
        two.move_to(vec![Seat::VACANT; 2]).map(|old| old.len()),
        Ok(2)
    );
    assert_eq!(two.attach(9), Err(Full));
    assert_eq!(
        two.move_to(vec![Seat::VACANT; 3]).map(|old| old.len()),
        Ok(2)
    );
    let nine = two.attach(9).expect("a seat");
    assert!(two.trigger(nine));
    assert_eq!(
        [two.take(), two.take(), two.take(), two.take()],
        [Some(8), Some(7), Some(9), None]
    );
}

/// Where an EVD stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Idle,
    Triggered,
    Handed,
    Looked,
}

/// The same with lists.
#[derive(Default)]
struct Lists {
    /// The EVD of a seat, and where it stands.
    seats: Vec<Option<(u64, Standing)>>,
    triggered: Vec<usize>,
    unclear: Vec<usize>,
}

impl Lists {
    fn standing(&self, seat: usize) -> Option<Standing> {
        self.seats[seat].map(|(_, standing)| standing)
    }

    fn put(&mut self, seat: usize, standing: Option<Standing>) {
        self.triggered.retain(|other| *other != seat);
        self.unclear.retain(|other| *other != seat);
        match standing {
            Some(Standing::Triggered) => self.triggered.push(seat),
            Some(Standing::Handed | Standing::Looked) => self.unclear.push(seat),
            Some(Standing::Idle) | None => {}
        }
        let evd = self.seats[seat].map(|(evd, _)| evd);
        self.seats[seat] = evd.zip(standing);
    }

    /// Moves it if it stands in one of these places; says whether it did.
    fn advance(&mut self, seat: usize, from: &[Standing], to: Standing) -> bool {
        let moves = self
            .standing(seat)
            .is_some_and(|standing| from.contains(&standing));
        if moves {
            self.put(seat, Some(to));
        }
        moves
    }
}

/// What to do.
#[derive(Clone, Copy, Debug)]
enum Act {
    Attach,
    Detach(usize),
    Trigger(usize),
    Take,
    Look(usize),
    Emptied(usize),
    Settle(usize),
    /// Of the EVD that is there, or of one that was.
    Dismiss(usize, bool),
    Grow(usize),
}

fn any_act() -> impl Strategy<Value = Act> {
    let seat = || 0..6_usize;
    prop_oneof![
        3 => Just(Act::Attach),
        1 => seat().prop_map(Act::Detach),
        5 => seat().prop_map(Act::Trigger),
        4 => Just(Act::Take),
        2 => seat().prop_map(Act::Look),
        2 => seat().prop_map(Act::Emptied),
        2 => seat().prop_map(Act::Settle),
        1 => (seat(), any::<bool>()).prop_map(|(seat, right)| Act::Dismiss(seat, right)),
        1 => (0..8_usize).prop_map(Act::Grow),
    ]
}

proptest! {
    #[test]
    fn like_lists(seats in 0..4_usize, acts in prop::collection::vec(any_act(), 0..120)) {
        use Standing::{Handed, Idle, Looked, Triggered};
        let mut roster = roster(seats);
        let mut lists = Lists { seats: vec![None; seats], ..Lists::default() };
        // Known from when they were attached, as an EVD knows its own.
        let mut numbers: Vec<Option<Number>> = vec![None; 8];
        for (evd, act) in (100_u64..).zip(acts) {
            let known = |seat: usize| numbers[seat].map(|number| (seat, number));
            match act {
                Act::Attach => {
                    let free = lists.seats.iter().position(Option::is_none);
                    let number = roster.attach(evd);
                    prop_assert_eq!(number.is_ok(), free.is_some());
                    if let Some(free) = free {
                        lists.seats[free] = Some((evd, Idle));
                        numbers[free] = number.ok();
                    }
                }
                Act::Detach(seat) => if let Some((seat, number)) = known(seat) {
                    lists.put(seat, None);
                    let was_last = lists.seats.iter().all(Option::is_none);
                    prop_assert_eq!(roster.detach(number), was_last);
                },
                Act::Trigger(seat) => if let Some((seat, number)) = known(seat) {
                    let news = lists.advance(seat, &[Idle, Handed, Looked], Triggered);
                    prop_assert_eq!(roster.trigger(number), news);
                },
                Act::Take => {
                    let first = lists.triggered.first().copied();
                    let evd = first.and_then(|seat| lists.seats[seat]).map(|(evd, _)| evd);
                    prop_assert_eq!(roster.take(), evd);
                    if let Some(first) = first {
                        lists.put(first, Some(Handed));
                    }
                }
                Act::Look(seat) => if let Some((seat, number)) = known(seat) {
                    let looks = lists.advance(seat, &[Idle, Handed, Looked], Looked);
                    prop_assert_eq!(roster.look(number), looks);
                },
                Act::Emptied(seat) => if let Some((seat, number)) = known(seat) {
                    let looks = lists.advance(seat, &[Triggered, Handed, Looked], Looked);
                    prop_assert_eq!(roster.emptied(number), looks);
                },
                Act::Settle(seat) => if let Some((seat, number)) = known(seat) {
                    lists.advance(seat, &[Looked], Idle);
                    roster.settle(number);
                },
                Act::Dismiss(seat, right) => if let Some((seat, number)) = known(seat) {
                    let there = lists.seats[seat].map_or(0, |(evd, _)| evd);
                    if right {
                        lists.advance(seat, &[Handed, Looked], Idle);
                    }
                    roster.dismiss(number, if right { there } else { there + 1 });
                },
                Act::Grow(next) => {
                    let fits = next >= lists.seats.len();
                    prop_assert_eq!(roster.move_to(vec![Seat::VACANT; next]).is_ok(), fits);
                    if fits {
                        lists.seats.resize(next, None);
                    }
                }
            }
            prop_assert_eq!(roster.evds(), lists.seats.iter().flatten().count());
            prop_assert_eq!(roster.triggered(), lists.triggered.len());
            let unclear = lists.unclear.first().map(|seat| {
                (numbers[*seat].expect("known"), lists.seats[*seat].expect("there").0)
            });
            prop_assert_eq!(roster.unclear(), unclear);
        }
    }
}

/// An EVD that does what it is told and keeps a record of what it was asked.
struct Told {
    /// There is something to find out.
    unclear: bool,
    queued: u32,
    /// What comes between the look and its beginning.
    comes: u32,
    asked: Vec<&'static str>,
}

impl Subject for Told {
    type Event = u32;

    fn begin(&mut self, reason: Reason) -> bool {
        self.asked.push(match reason {
            Reason::Unclear => "unclear",
            Reason::Emptied => "emptied",
        });
        self.unclear
    }

    fn arm_and_drain(&mut self) {
        self.asked.push("arm");
        self.queued += self.comes;
    }

    fn has_events(&self) -> bool {
        self.queued != 0
    }

    fn pop(&mut self) -> Option<u32> {
        self.queued = self.queued.checked_sub(1)?;
        Some(self.queued)
    }

    fn trigger(&mut self) {
        self.asked.push("trigger");
    }

    fn end(&mut self) {
        self.asked.push("end");
    }
}

#[test]
fn a_look_triggers_if_there_is_anything() {
    let after = |unclear, queued, comes| {
        let mut told = Told {
            unclear,
            queued,
            comes,
            asked: Vec::new(),
        };
        look(&mut told);
        told.asked
    };
    assert_eq!(after(false, 1, 1), ["unclear"]);
    assert_eq!(after(true, 0, 0), ["unclear", "arm", "end"]);
    assert_eq!(after(true, 1, 0), ["unclear", "arm", "trigger", "end"]);
    assert_eq!(after(true, 0, 1), ["unclear", "arm", "trigger", "end"]);
}

#[test]
fn a_consumer_that_finds_nothing_gets_what_came_meanwhile() {
    let after = |unclear, comes| {
        let mut told = Told {
            unclear,
            queued: 0,
            comes,
            asked: Vec::new(),
        };
        (pop_or_settle(&mut told), told.asked)
    };
    assert_eq!(after(false, 1), (None, vec!["emptied"]));
    assert_eq!(after(true, 0), (None, vec!["emptied", "arm", "end"]));
    assert_eq!(
        after(true, 2),
        (Some(1), vec!["emptied", "arm", "trigger", "end"])
    );
}

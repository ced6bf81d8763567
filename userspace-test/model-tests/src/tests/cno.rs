// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the EVDs of a CNO (Consumer Notification Object) with lists.

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
use std::{
    cell::Cell,
    ops::{
        Deref,
        DerefMut, //
    },
};

type Cno = Roster<Vec<Seat>>;

/// Attaches an EVD as the kernel does: adds seats when all are taken.
fn seated(cno: &mut Cno, evd: u64) -> Number {
    loop {
        match cno.attach(evd) {
            Ok(number) => return number,
            Err(Full { wanted }) => {
                let wanted = wanted.expect("the limit is not reached");
                assert_eq!(cno.grow(vec![Seat::VACANT; wanted]), Ok(()));
            }
        }
    }
}

#[test]
fn without_seats_nobody_is_attached() {
    let mut none = Cno::new();
    assert_eq!(none.attach(1), Err(Full { wanted: Some(16) }));
    assert_eq!(none.take(), None);
    assert_eq!(none.first_triggered(), None);
    assert_eq!(none.unclear(), None);
    assert_eq!((none.evds(), none.triggered()), (0, 0));
}

#[test]
fn seats_that_come_too_late_are_given_back() {
    let mut cno = Cno::new();
    assert_eq!(cno.grow(vec![Seat::VACANT; 16]), Ok(()));
    // Another thread has added seats after the same error.
    let late = vec![Seat::VACANT; 16];
    assert_eq!(cno.grow(late.clone()), Err(late));
    for evd in 0..16 {
        assert!(cno.attach(evd).is_ok());
    }
    assert_eq!(cno.attach(16), Err(Full { wanted: Some(32) }));
    assert_eq!(cno.evds(), 16);
}

#[test]
fn a_cno_that_grows_keeps_what_it_knows() {
    let mut cno = Cno::new();
    let seats: Vec<_> = (0..200).map(|evd| seated(&mut cno, evd)).collect();
    for evd in (0..200).rev().step_by(3) {
        assert!(cno.trigger(seats[evd]));
    }
    assert_eq!(cno.grow(vec![Seat::VACANT; 256]), Ok(()));
    let handed: Vec<_> = std::iter::from_fn(|| cno.take()).collect();
    let triggered: Vec<_> = (0..200).rev().step_by(3).collect();
    assert_eq!(handed, triggered);
    for (evd, seat) in (0..).zip(&seats) {
        assert_eq!(cno.evd(*seat), evd);
    }
}

#[test]
fn the_seat_of_an_evd_that_left_is_used_again() {
    let mut cno = Cno::new();
    let seats: Vec<_> = (0..16).map(|evd| seated(&mut cno, evd)).collect();
    assert!(!cno.detach(seats[9]));
    // No effect: the seat has no EVD.
    assert!(!cno.detach(seats[9]));
    assert!(!cno.trigger(seats[9]));
    assert!(!cno.detach(seats[3]));
    assert_eq!(cno.evds(), 14);
    assert_eq!(
        [cno.attach(20), cno.attach(21)],
        [Ok(seats[9]), Ok(seats[3])]
    );
    assert_eq!(cno.attach(22), Err(Full { wanted: Some(32) }));
    for seat in &seats[1..] {
        assert!(!cno.detach(*seat));
    }
    assert!(cno.detach(seats[0]));
}

/// Seats that count the accesses to them.
struct Watched(Vec<Seat>);

thread_local! {
    static LOOKS: Cell<usize> = const { Cell::new(0) };
}

impl Deref for Watched {
    type Target = [Seat];

    fn deref(&self) -> &[Seat] {
        LOOKS.set(LOOKS.get() + 1);
        &self.0
    }
}

impl DerefMut for Watched {
    fn deref_mut(&mut self) -> &mut [Seat] {
        LOOKS.set(LOOKS.get() + 1);
        &mut self.0
    }
}

/// Largest number of accesses of one call.
#[derive(Default)]
struct Most(usize);

impl Most {
    fn of<T>(&mut self, call: impl FnOnce() -> T) -> T {
        LOOKS.set(0);
        let result = call();
        self.0 = self.0.max(LOOKS.get());
        result
    }
}

/// Makes every call that the kernel makes under the CNO's lock, for each of `evds` EVDs. Returns
/// the largest number of seats that one call accessed.
///
/// The result bounds the time of a call, because no function of [`Segments`] accesses more than one
/// seat.
///
/// [`Segments`]: crate::rust::model::segments::Segments
fn longest_call(evds: u64) -> usize {
    let mut cno = Roster::<Watched>::new();
    let mut most = Most::default();
    let mut seats = Vec::new();
    for evd in 0..evds {
        seats.push(loop {
            match most.of(|| cno.attach(evd)) {
                Ok(seat) => break seat,
                Err(full) => {
                    let more = Watched(vec![
                        Seat::VACANT;
                        full.wanted.expect("the limit is not reached")
                    ]);
                    assert!(most.of(|| cno.grow(more)).is_ok());
                }
            }
        });
    }
    for seat in &seats {
        assert!(most.of(|| cno.trigger(*seat)));
    }
    for evd in 0..evds {
        assert_eq!(most.of(|| cno.first_triggered()), Some(evd));
        assert_eq!(most.of(|| cno.take()), Some(evd));
    }
    for seat in seats.iter().rev() {
        assert!(most.of(|| cno.look(*seat)));
        assert!(most.of(|| cno.emptied(*seat)));
        assert!(most.of(|| cno.unclear()).is_some());
        most.of(|| cno.settle(*seat));
    }
    // Remove seats from the middle of a list.
    for seat in &seats {
        assert!(most.of(|| cno.trigger(*seat)));
    }
    let half = seats.len() / 2;
    for seat in seats[half..].iter().chain(&seats[..half]) {
        most.of(|| cno.detach(*seat));
    }
    assert_eq!((cno.evds(), cno.triggered()), (0, 0));
    for evd in 0..evds.min(1000) {
        assert!(most.of(|| cno.attach(evd)).is_ok());
    }
    most.0
}

#[test]
fn a_million_evds_take_as_many_steps_as_ten() {
    let few = longest_call(10);
    assert!(few <= 8, "{few} seats touched");
    assert_eq!(longest_call(1_000_000), few);
}

/// State of an EVD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Idle,
    Triggered,
    Handed,
    Looked,
}

/// Reference implementation with lists.
#[derive(Default)]
struct Lists {
    /// The EVD of each seat, and its state.
    seats: Vec<Option<(u64, Standing)>>,
    /// Numbers of the seats, as returned when an EVD was attached.
    numbers: Vec<Number>,
    triggered: Vec<usize>,
    unclear: Vec<usize>,
}

impl Lists {
    /// Attaches an EVD, which the roster has given this seat.
    fn attach(&mut self, evd: u64, number: Number) {
        let taken = self.numbers.iter().position(|known| *known == number);
        let seat = taken.unwrap_or_else(|| {
            self.numbers.push(number);
            self.seats.push(None);
            self.seats.len() - 1
        });
        assert_eq!(self.seats[seat], None, "the seat is taken");
        self.seats[seat] = Some((evd, Standing::Idle));
    }

    /// Returns a seat that has or had an EVD.
    fn known(&self, seat: usize) -> Option<(usize, Number)> {
        let seat = seat.checked_rem(self.numbers.len())?;
        Some((seat, self.numbers[seat]))
    }

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

    /// Changes the state of a seat if it is one of `from`. Returns whether it was.
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

/// An operation.
#[derive(Clone, Copy, Debug)]
enum Act {
    Attach,
    Detach(usize),
    Trigger(usize),
    Take,
    Look(usize),
    Emptied(usize),
    Settle(usize),
    /// With the handle of the EVD in the seat if true, with another one if false.
    Dismiss(usize, bool),
    /// With this number of seats, which may be the wanted one.
    Grow(usize),
}

fn any_act() -> impl Strategy<Value = Act> {
    let seat = || prop_oneof![0..6_usize, 0..60_usize];
    prop_oneof![
        3 => Just(Act::Attach),
        1 => seat().prop_map(Act::Detach),
        5 => seat().prop_map(Act::Trigger),
        4 => Just(Act::Take),
        2 => seat().prop_map(Act::Look),
        2 => seat().prop_map(Act::Emptied),
        2 => seat().prop_map(Act::Settle),
        1 => (seat(), any::<bool>()).prop_map(|(seat, right)| Act::Dismiss(seat, right)),
        1 => (0..40_usize).prop_map(Act::Grow),
    ]
}

proptest! {
    #[test]
    fn like_lists(evds in 0..60_u64, acts in prop::collection::vec(any_act(), 0..120)) {
        use Standing::{Handed, Idle, Looked, Triggered};
        let mut roster = Cno::new();
        let mut lists = Lists::default();
        for evd in 0..evds {
            lists.attach(evd, seated(&mut roster, evd));
        }
        for (evd, act) in (100_u64..).zip(acts) {
            let known = |seat: usize| lists.known(seat);
            match act {
                Act::Attach => lists.attach(evd, seated(&mut roster, evd)),
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
                Act::Grow(seats) => {
                    let seats = vec![Seat::VACANT; seats];
                    let wanted = match roster.attach(evd) {
                        Ok(number) => {
                            lists.attach(evd, number);
                            None
                        }
                        Err(full) => full.wanted,
                    };
                    let fits = wanted == Some(seats.len());
                    if wanted.is_some() {
                        prop_assert_eq!(roster.grow(seats).is_ok(), fits);
                    }
                }
            }
            prop_assert_eq!(roster.evds() as usize, lists.seats.iter().flatten().count());
            prop_assert_eq!(roster.triggered() as usize, lists.triggered.len());
            let unclear = lists.unclear.first().map(|seat| {
                (lists.numbers[*seat], lists.seats[*seat].expect("an EVD").0)
            });
            prop_assert_eq!(roster.unclear(), unclear);
            for (seat, number) in lists.seats.iter().zip(&lists.numbers) {
                if let Some((evd, _)) = seat {
                    prop_assert_eq!(roster.evd(*number), *evd);
                }
            }
        }
    }
}

/// An EVD that follows a script and records the calls.
struct Told {
    /// Whether `begin` reports that a check is needed.
    unclear: bool,
    queued: u32,
    /// Number of events that arrive after `begin`.
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Which EVDs a CNO hears of, and where each of them stands: none forgotten, each handed out once.
//!
//! An EVD has a [`Seat`] at its CNO. All that changes how it stands happens under the CNO's lock, so
//! that there is no moment in which an EVD that may have events is nowhere:
//!
//! ```text
//!              trigger                   take
//!      Idle ------------> Triggered -------------> Handed out
//!        ^                 ^     |                   |
//!        |         trigger |     | emptied           | look, emptied
//!        |  settle         |     v                   |
//!        +---------------- Looked at <---------------+
//! ```
//!
//! *Idle* is one that was found empty, and whose next event triggers. One that was handed out may
//! have more than was taken. Whoever finds out about it says so before it looks ([`look`]): an event
//! that comes meanwhile triggers, and then what the look has found does not matter any more.

pub(crate) mod look;

use core::ops::DerefMut;

/// Where an EVD stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// There is no EVD.
    Vacant,
    /// It has nothing, and what comes triggers.
    Idle,
    /// It has something, and nobody was told.
    Triggered,
    /// It was handed out, and may have more than was taken.
    Handed,
    /// Somebody is just finding out whether it has anything.
    Looked,
}

/// What a CNO knows of one of its EVDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    evd: u64,
    standing: Standing,
    /// Who is before it in its line.
    before: Option<usize>,
    /// Who is behind it.
    behind: Option<usize>,
}

impl Seat {
    /// Of no EVD.
    pub(crate) const VACANT: Self = Self {
        evd: 0,
        standing: Standing::Vacant,
        before: None,
        behind: None,
    };
}

/// Which seat: what an EVD knows of its CNO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(usize);

/// There is no seat left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Seats in the order in which they came to stand so.
struct Line {
    first: Option<usize>,
    last: Option<usize>,
    len: usize,
}

impl Line {
    const EMPTY: Self = Self {
        first: None,
        last: None,
        len: 0,
    };
}

/// The EVDs of a CNO, over caller-provided storage.
pub(crate) struct Roster<S> {
    seats: S,
    /// How many are not vacant.
    evds: usize,
    triggered: Line,
    /// Handed out or looked at.
    unclear: Line,
}

impl<S: DerefMut<Target = [Seat]>> Roster<S> {
    /// Of no EVD; `seats` are vacant.
    pub(crate) const fn new(seats: S) -> Self {
        Self {
            seats,
            evds: 0,
            triggered: Line::EMPTY,
            unclear: Line::EMPTY,
        }
    }

    /// How many EVDs there are.
    pub(crate) fn evds(&self) -> usize {
        self.evds
    }

    /// How many of them have triggered.
    pub(crate) fn triggered(&self) -> usize {
        self.triggered.len
    }

    /// Gives an EVD a seat.
    ///
    /// # Errors
    ///
    /// All are taken.
    pub(crate) fn attach(&mut self, evd: u64) -> Result<Number, Full> {
        let mut seats = self.seats.iter_mut().enumerate();
        let (number, seat) = seats
            .find(|(_, seat)| seat.standing == Standing::Vacant)
            .ok_or(Full)?;
        seat.evd = evd;
        seat.standing = Standing::Idle;
        self.evds = self.evds.saturating_add(1);
        Ok(Number(number))
    }

    /// An EVD leaves. Says whether it was the last one.
    pub(crate) fn detach(&mut self, seat: Number) -> bool {
        if self.standing(seat) != Standing::Vacant {
            self.put(seat, Standing::Vacant);
            self.evds = self.evds.saturating_sub(1);
        }
        self.evds == 0
    }

    /// An EVD has something. Says whether that is news.
    pub(crate) fn trigger(&mut self, seat: Number) -> bool {
        let is_news = match self.standing(seat) {
            Standing::Idle | Standing::Handed | Standing::Looked => true,
            Standing::Triggered | Standing::Vacant => false,
        };
        if is_news {
            self.put(seat, Standing::Triggered);
        }
        is_news
    }

    /// Hands out the EVD that has triggered before the others.
    pub(crate) fn take(&mut self) -> Option<u64> {
        let first = self.triggered.first?;
        let evd = self.seats.get(first)?.evd;
        self.put(Number(first), Standing::Handed);
        Some(evd)
    }

    /// The EVD that the next [`Roster::take`] would hand out.
    pub(crate) fn first_triggered(&self) -> Option<u64> {
        Some(self.seats.get(self.triggered.first?)?.evd)
    }

    /// Whose seat this is; 0 if there is no such seat.
    pub(crate) fn evd(&self, seat: Number) -> u64 {
        self.seats.get(seat.0).map_or(0, |seat| seat.evd)
    }

    /// The first EVD of which somebody has to find out whether it has anything, if there is one.
    pub(crate) fn unclear(&self) -> Option<(Number, u64)> {
        let first = self.unclear.first?;
        Some((Number(first), self.seats.get(first)?.evd))
    }

    /// Somebody looks whether an EVD has anything. `false`: it has, and everybody may know.
    pub(crate) fn look(&mut self, seat: Number) -> bool {
        match self.standing(seat) {
            Standing::Idle | Standing::Handed | Standing::Looked => {
                self.put(seat, Standing::Looked);
                true
            }
            Standing::Triggered | Standing::Vacant => false,
        }
    }

    /// The consumer has found an EVD empty, and looks once more: its trigger is taken back. `false`:
    /// so has somebody before, and nothing has come since.
    pub(crate) fn emptied(&mut self, seat: Number) -> bool {
        match self.standing(seat) {
            Standing::Triggered | Standing::Handed | Standing::Looked => {
                self.put(seat, Standing::Looked);
                true
            }
            Standing::Idle | Standing::Vacant => false,
        }
    }

    /// The look is over. If nothing has triggered since it began, there is nothing.
    pub(crate) fn settle(&mut self, seat: Number) {
        if self.standing(seat) == Standing::Looked {
            self.put(seat, Standing::Idle);
        }
    }

    /// An [unclear](Roster::unclear) EVD is there no more, so nobody will find out.
    pub(crate) fn dismiss(&mut self, seat: Number, evd: u64) {
        let Some(found) = self.seats.get(seat.0) else {
            return;
        };
        if found.evd == evd && matches!(found.standing, Standing::Handed | Standing::Looked) {
            self.put(seat, Standing::Idle);
        }
    }

    /// Goes on with other storage of at least as many seats, the new ones vacant; gives the old one
    /// back.
    ///
    /// # Errors
    ///
    /// The new storage is too short; it is given back, and nothing has changed.
    pub(crate) fn move_to(&mut self, mut seats: S) -> Result<S, S> {
        if seats.len() < self.seats.len() {
            return Err(seats);
        }
        for (new, old) in seats.iter_mut().zip(self.seats.iter()) {
            *new = *old;
        }
        Ok(core::mem::replace(&mut self.seats, seats))
    }

    fn standing(&self, seat: Number) -> Standing {
        self.seats
            .get(seat.0)
            .map_or(Standing::Vacant, |seat| seat.standing)
    }

    /// The line of those who stand so, if they stand in one.
    fn line(&mut self, standing: Standing) -> Option<&mut Line> {
        match standing {
            Standing::Vacant | Standing::Idle => None,
            Standing::Triggered => Some(&mut self.triggered),
            Standing::Handed | Standing::Looked => Some(&mut self.unclear),
        }
    }

    /// Makes neighbours of two in the line for `standing`; `None` is its end.
    fn join(&mut self, standing: Standing, left: Option<usize>, right: Option<usize>) {
        if let Some(seat) = left.and_then(|left| self.seats.get_mut(left)) {
            seat.behind = right;
        } else if let Some(line) = self.line(standing) {
            line.first = right;
        }
        if let Some(seat) = right.and_then(|right| self.seats.get_mut(right)) {
            seat.before = left;
        } else if let Some(line) = self.line(standing) {
            line.last = left;
        }
    }

    /// Moves an EVD to the end of the line for `standing`.
    fn put(&mut self, Number(seat): Number, standing: Standing) {
        let Some(old) = self.seats.get(seat).copied() else {
            return;
        };
        self.join(old.standing, old.before, old.behind);
        if let Some(line) = self.line(old.standing) {
            line.len = line.len.saturating_sub(1);
        }
        let mut last = None;
        if let Some(line) = self.line(standing) {
            line.len = line.len.saturating_add(1);
            last = line.last;
        }
        if let Some(new) = self.seats.get_mut(seat) {
            new.standing = standing;
        }
        self.join(standing, last, Some(seat));
        self.join(standing, Some(seat), None);
    }
}

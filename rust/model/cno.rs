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
//!
//! Interrupts are off under the CNO's lock, and a program chooses how many EVDs a CNO has. So every
//! call here takes constant time: seats stand in lines that are linked through the seats, and a CNO
//! that needs more seats gets one more [segment](Segments) of them.

pub(crate) mod look;

use super::segments::Segments;
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

/// The end of a line: the number of no seat.
const END: u32 = u32::MAX;

/// What a CNO knows of one of its EVDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    evd: u64,
    /// The seat before it in its line.
    before: u32,
    /// The seat after it in its line.
    after: u32,
    standing: Standing,
}

impl Seat {
    /// Of no EVD.
    pub(crate) const VACANT: Self = Self {
        evd: 0,
        before: END,
        after: END,
        standing: Standing::Vacant,
    };
}

/// Which seat: what an EVD knows of its CNO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(u32);

/// All seats are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// How many seats to [grow](Roster::grow) by; `None` if there may be no more.
    pub(crate) wanted: Option<usize>,
}

/// Seats in the order in which they came to stand so.
struct Line {
    first: u32,
    last: u32,
    len: u32,
}

impl Line {
    const EMPTY: Self = Self {
        first: END,
        last: END,
        len: 0,
    };
}

/// The lines of a CNO. EVDs that are idle stand in none.
struct Lines {
    /// Seats that had an EVD once.
    vacant: Line,
    triggered: Line,
    /// Handed out or looked at.
    unclear: Line,
}

impl Lines {
    /// Returns the line of the seats that stand so, if they stand in one.
    #[inline(always)]
    fn of(&mut self, standing: Standing) -> Option<&mut Line> {
        match standing {
            Standing::Idle => None,
            Standing::Vacant => Some(&mut self.vacant),
            Standing::Triggered => Some(&mut self.triggered),
            Standing::Handed | Standing::Looked => Some(&mut self.unclear),
        }
    }
}

/// The EVDs of a CNO, over caller-provided storage.
pub(crate) struct Roster<S> {
    seats: Segments<S>,
    /// Seats from here on never had an EVD, and stand in no line.
    fresh: u32,
    lines: Lines,
}

impl<S: DerefMut<Target = [Seat]>> Roster<S> {
    /// Of no EVD, without seats.
    pub(crate) const fn new() -> Self {
        Self {
            seats: Segments::new(),
            fresh: 0,
            lines: Lines {
                vacant: Line::EMPTY,
                triggered: Line::EMPTY,
                unclear: Line::EMPTY,
            },
        }
    }

    /// How many EVDs there are.
    pub(crate) fn evds(&self) -> u32 {
        self.fresh.saturating_sub(self.lines.vacant.len)
    }

    /// How many of them have triggered.
    pub(crate) fn triggered(&self) -> u32 {
        self.lines.triggered.len
    }

    /// Gives an EVD a seat.
    ///
    /// # Errors
    ///
    /// All are taken: the caller allocates more, [adds](Roster::grow) them and tries again.
    pub(crate) fn attach(&mut self, evd: u64) -> Result<Number, Full> {
        let number = self.vacate().ok_or(Full {
            wanted: self.seats.next_len(),
        })?;
        if let Some(seat) = self.seats.get_mut(number) {
            *seat = Seat {
                evd,
                standing: Standing::Idle,
                ..Seat::VACANT
            };
        }
        Ok(Number(number))
    }

    /// Finds a seat for one more EVD, and takes it out of its line.
    fn vacate(&mut self) -> Option<u32> {
        let first = self.lines.vacant.first;
        if first != END {
            self.leave(first);
            return Some(first);
        }
        let fresh = self.fresh;
        if fresh >= self.seats.len() {
            return None;
        }
        self.fresh = fresh.wrapping_add(1);
        Some(fresh)
    }

    /// Adds vacant seats.
    ///
    /// # Errors
    ///
    /// They come back if they are not as many as are [wanted](Full::wanted) now. The caller drops
    /// them after the lock.
    pub(crate) fn grow(&mut self, seats: S) -> Result<(), S> {
        self.seats.grow(seats)
    }

    /// An EVD leaves. Says whether it was the last one.
    pub(crate) fn detach(&mut self, seat: Number) -> bool {
        if self.standing(seat) != Standing::Vacant {
            self.put(seat, Standing::Vacant);
        }
        self.evds() == 0
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
        let first = self.lines.triggered.first;
        let evd = self.seats.get(first)?.evd;
        self.put(Number(first), Standing::Handed);
        Some(evd)
    }

    /// The EVD that the next [`Roster::take`] would hand out.
    pub(crate) fn first_triggered(&self) -> Option<u64> {
        Some(self.seats.get(self.lines.triggered.first)?.evd)
    }

    /// Whose seat this is; 0 if there is no such seat.
    pub(crate) fn evd(&self, seat: Number) -> u64 {
        self.seats.get(seat.0).map_or(0, |seat| seat.evd)
    }

    /// The first EVD of which somebody has to find out whether it has anything, if there is one.
    pub(crate) fn unclear(&self) -> Option<(Number, u64)> {
        let first = self.lines.unclear.first;
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

    fn standing(&self, seat: Number) -> Standing {
        self.seats
            .get(seat.0)
            .map_or(Standing::Vacant, |seat| seat.standing)
    }

    /// Joins two neighbours in the line of the seats that stand so; [`END`] is its end.
    #[inline(always)]
    fn join(&mut self, standing: Standing, left: u32, right: u32) {
        if let Some(seat) = self.seats.get_mut(left) {
            seat.after = right;
        } else if let Some(line) = self.lines.of(standing) {
            line.first = right;
        }
        if let Some(seat) = self.seats.get_mut(right) {
            seat.before = left;
        } else if let Some(line) = self.lines.of(standing) {
            line.last = left;
        }
    }

    /// Takes a seat out of the line in which it stands.
    fn leave(&mut self, seat: u32) {
        let Some(old) = self.seats.get(seat).copied() else {
            return;
        };
        if let Some(line) = self.lines.of(old.standing) {
            line.len = line.len.wrapping_sub(1);
            self.join(old.standing, old.before, old.after);
        }
    }

    /// Moves a seat to the end of the line for `standing`.
    fn put(&mut self, Number(number): Number, standing: Standing) {
        self.leave(number);
        let mut before = END;
        if let Some(line) = self.lines.of(standing) {
            before = line.last;
            line.last = number;
            line.len = line.len.wrapping_add(1);
            if before == END {
                line.first = number;
            }
        }
        if let Some(seat) = self.seats.get_mut(before) {
            seat.after = number;
        }
        if let Some(seat) = self.seats.get_mut(number) {
            seat.standing = standing;
            seat.before = before;
            seat.after = END;
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State of each Event Dispatcher (EVD) at its Consumer Notification Object (CNO).
//!
//! A wait on a CNO returns an EVD that has events. No such EVD may be forgotten, and none may be
//! returned to two waiters at once.
//!
//! Each EVD has a [`Seat`] at its CNO, which holds its state. The state changes under the CNO's
//! lock only, so an EVD that may have events always has a state that says so:
//!
//! ```text
//!              trigger                   take
//!      Idle ------------> Triggered -------------> Handed
//!        ^                 ^     |                   |
//!        |         trigger |     | emptied           | look, emptied
//!        |  settle         |     v                   |
//!        +------------------- Looked <---------------+
//! ```
//!
//! * *Idle*: the EVD was found empty. Its next event triggers the CNO.
//! * *Triggered*: the EVD has events, and no waiter has been given it yet.
//! * *Handed*: a waiter was given the EVD. It may hold more events than that waiter takes.
//! * *Looked*: a thread is checking whether the EVD has events. The thread enters this state before
//!   it checks (see [`look`]). An event that arrives during the check triggers the CNO, and the
//!   result of the check is discarded.
//!
//! The CNO's lock disables interrupts, and a program chooses the number of EVDs of a CNO. So each
//! function here takes constant time. The seats of a state form a list that is linked through the
//! seats. A CNO that needs more seats gets another [segment](Segments) of them.

pub(crate) mod look;

use super::segments::Segments;
use core::ops::DerefMut;

/// State of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The seat has no EVD.
    Vacant,
    /// The EVD has no events. Its next event triggers.
    Idle,
    /// The EVD has events, and no waiter has been given it.
    Triggered,
    /// A waiter was given the EVD, which may have more events.
    Handed,
    /// A thread is checking whether the EVD has events.
    Looked,
}

/// End of a list: not the number of any seat.
const END: u32 = u32::MAX;

/// State of one EVD at its CNO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    evd: u64,
    /// Previous seat of the list.
    before: u32,
    /// Next seat of the list.
    after: u32,
    standing: Standing,
}

impl Seat {
    /// A seat without an EVD.
    pub(crate) const VACANT: Self = Self {
        evd: 0,
        before: END,
        after: END,
        standing: Standing::Vacant,
    };
}

/// Number of a seat. An EVD stores the number of its seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(u32);

/// Error of [`Roster::attach`]: all seats are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// Number of seats to [add](Roster::grow); `None` if the CNO has the maximum already.
    pub(crate) wanted: Option<usize>,
}

/// A doubly linked list of seats, in the order in which they were appended.
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

/// Lists of the seats of a CNO. Idle seats are in no list.
struct Lines {
    /// Seats whose EVD has left.
    vacant: Line,
    triggered: Line,
    /// Seats whose EVD was handed out or is being checked.
    unclear: Line,
}

impl Lines {
    /// Returns the list for seats in this state; `None` if there is none.
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

/// The EVDs of a CNO, over storage that the caller provides.
pub(crate) struct Roster<S> {
    seats: Segments<S>,
    /// Seats from this index on never had an EVD, and are in no list.
    fresh: u32,
    lines: Lines,
}

impl<S: DerefMut<Target = [Seat]>> Roster<S> {
    /// Creates a roster without EVDs and without seats.
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

    /// Returns the number of EVDs.
    pub(crate) fn evds(&self) -> u32 {
        self.fresh.saturating_sub(self.lines.vacant.len)
    }

    /// Returns the number of EVDs that have triggered.
    pub(crate) fn triggered(&self) -> u32 {
        self.lines.triggered.len
    }

    /// Assigns a seat to an EVD, whose state is idle.
    ///
    /// # Errors
    ///
    /// All seats are taken. The caller allocates more seats, [adds](Roster::grow) them and tries
    /// again.
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

    /// Finds a free seat and removes it from its list.
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
    /// Returns the seats if their number differs from the one that is [wanted](Full::wanted) now,
    /// because another thread has added some. The caller drops them after it has released the lock.
    pub(crate) fn grow(&mut self, seats: S) -> Result<(), S> {
        self.seats.grow(seats)
    }

    /// Releases the seat of an EVD that leaves. Returns `true` if it was the last EVD.
    pub(crate) fn detach(&mut self, seat: Number) -> bool {
        if self.standing(seat) != Standing::Vacant {
            self.put(seat, Standing::Vacant);
        }
        self.evds() == 0
    }

    /// Marks an EVD as having events. Returns `false` if it was marked already.
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

    /// Returns the EVD that triggered first, and marks it as handed out.
    pub(crate) fn take(&mut self) -> Option<u64> {
        let first = self.lines.triggered.first;
        let evd = self.seats.get(first)?.evd;
        self.put(Number(first), Standing::Handed);
        Some(evd)
    }

    /// Returns the EVD that the next [`Roster::take`] will return.
    pub(crate) fn first_triggered(&self) -> Option<u64> {
        Some(self.seats.get(self.lines.triggered.first)?.evd)
    }

    /// Returns the EVD of a seat; 0 if there is no such seat.
    pub(crate) fn evd(&self, seat: Number) -> u64 {
        self.seats.get(seat.0).map_or(0, |seat| seat.evd)
    }

    /// Returns the first EVD that has to be checked for events, and its seat.
    pub(crate) fn unclear(&self) -> Option<(Number, u64)> {
        let first = self.lines.unclear.first;
        Some((Number(first), self.seats.get(first)?.evd))
    }

    /// Marks an EVD as being checked. Returns `false` if no check is needed, because the EVD has
    /// triggered.
    pub(crate) fn look(&mut self, seat: Number) -> bool {
        match self.standing(seat) {
            Standing::Idle | Standing::Handed | Standing::Looked => {
                self.put(seat, Standing::Looked);
                true
            }
            Standing::Triggered | Standing::Vacant => false,
        }
    }

    /// Marks an EVD as being checked after the consumer has found it empty, and withdraws its
    /// trigger. Returns `false` if no check is needed, because it was found empty before and has
    /// not triggered since.
    pub(crate) fn emptied(&mut self, seat: Number) -> bool {
        match self.standing(seat) {
            Standing::Triggered | Standing::Handed | Standing::Looked => {
                self.put(seat, Standing::Looked);
                true
            }
            Standing::Idle | Standing::Vacant => false,
        }
    }

    /// Ends a check that found no events. The EVD becomes idle unless it has triggered since the
    /// check began.
    pub(crate) fn settle(&mut self, seat: Number) {
        if self.standing(seat) == Standing::Looked {
            self.put(seat, Standing::Idle);
        }
    }

    /// Marks an [unclear](Roster::unclear) EVD as idle if it still has this seat. The EVD is being
    /// freed, so no thread can check it.
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

    /// Links two seats of the list for `standing` to each other. [`END`] in place of a seat means
    /// the end of the list.
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

    /// Removes a seat from its list.
    fn leave(&mut self, seat: u32) {
        let Some(old) = self.seats.get(seat).copied() else {
            return;
        };
        if let Some(line) = self.lines.of(old.standing) {
            line.len = line.len.wrapping_sub(1);
            self.join(old.standing, old.before, old.after);
        }
    }

    /// Moves a seat to the end of the list for `standing`.
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

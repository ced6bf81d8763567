// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The event that a consumer takes along while it drains.
//!
//! Who finds the ring empty and drains would push the oldest event into it only to pop it at once. So it
//! holds out a hand. What is put there was the oldest event of the EVD: the ring had none at that moment,
//! and the consumer's lock is held, so that nobody else takes any. What is pushed later comes later.
//!
//! An Endpoint's events keep their order: each of them is pushed, or put into the hand, under the Endpoint's lock.
//! If one was pushed before, ESTABLISHED above all, then the ring is not empty, and this one goes behind it.

use super::{
    event::Record,
    ring::Ring, //
};

/// How far a drain goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To the end of the completion queues, or as far as the ring has room.
    All,
    /// Until there is an event.
    One,
}

/// Where a drain puts the oldest event.
pub(crate) struct Hand<'a> {
    /// The place for it; `None` in a hand that is closed.
    record: Option<&'a mut Record>,
    full: bool,
    reach: Reach,
}

impl<'a> Hand<'a> {
    /// Takes nothing: all events go into the ring.
    pub(crate) fn closed() -> Self {
        Self {
            record: None,
            full: false,
            reach: Reach::All,
        }
    }

    /// Takes one event, if there is any.
    pub(crate) fn open(record: &'a mut Record, reach: Reach) -> Self {
        Self {
            record: Some(record),
            full: false,
            reach,
        }
    }

    /// Whether it has an event.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Whether the drain may go on.
    pub(crate) fn goes_on(&self) -> bool {
        self.reach == Reach::All || !self.full
    }

    /// How many completions to look at at once, of at most so many.
    pub(crate) fn at_once(&self, most: usize) -> usize {
        match self.reach {
            Reach::All => most,
            Reach::One => most.min(1),
        }
    }

    /// Takes an event, unless it has one, or the ring has, which is older. With the locks under which the
    /// ring is popped, and under which the events of this one's Endpoint are pushed.
    pub(crate) fn takes(&mut self, ring: &Ring, record: impl FnOnce() -> Record) -> bool {
        let Some(place) = &mut self.record else {
            return false;
        };
        if self.full || ring.len() != 0 {
            return false;
        }
        **place = record();
        self.full = true;
        true
    }
}

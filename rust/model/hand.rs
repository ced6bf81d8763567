// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The event that a consumer takes along while it drains.
//!
//! Who finds the ring empty and drains would push the oldest event into it only to pop it at once. So it
//! holds out a hand. What is put there was the oldest event of the EVD: the ring had none at that moment,
//! and the consumer's lock is held, so that nobody else takes any. What is pushed later comes later.
//!
//! An Endpoint's events keep their order: each of them is pushed, or put into the hand, under the Endpoint's lock.
//! If one was pushed before, ESTABLISHED above all, then the ring is not empty, and this one goes behind it.
//!
//! A drain holds the consumer's lock, and a completion whose event is suppressed takes no room in the ring.
//! So a hand also has a budget of completions. A drain that has spent it is [cut](Drained::Cut): its caller
//! lets others have the lock, and drains again if it still needs to, as often as its [`Turns`] allow.

use super::{
    event::{
        Event,
        Record, //
    },
    ring::Ring, //
};

/// Where a consumer gets an event.
pub(crate) trait Sink {
    /// Puts an event there that came to the EVD with this handle. With locks: it must neither sleep nor take any.
    fn put(&mut self, evd: u64, event: &Event);

    /// Puts one there that lay in a ring. As [`Sink::put`].
    fn put_record(&mut self, record: &Record);
}

impl Sink for Record {
    fn put(&mut self, evd: u64, event: &Event) {
        *self = event.encode(evd);
    }

    fn put_record(&mut self, record: &Record) {
        *self = *record;
    }
}

/// Completions that a drain looks at, at most, before others have their turn.
pub(crate) const BUDGET: u32 = 256;

/// Why a drain has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Drained {
    /// It came to the end of the completion queues, or as far as it was asked to or had room.
    Done,
    /// Its budget is spent: there may be more.
    Cut,
}

/// How often a drain that was cut goes on.
///
/// Completions may come as fast as they are drained. It is enough to have seen those that lay in the
/// queues at the beginning.
pub(crate) struct Turns(Option<u32>);

impl Turns {
    /// Begins, before the first drain.
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Returns whether to drain once more, if the completion queues hold at most `depth` completions.
    pub(crate) fn another(&mut self, depth: impl FnOnce() -> u32) -> bool {
        let left = self.0.unwrap_or_else(|| depth() / BUDGET);
        self.0 = Some(left.saturating_sub(1));
        left != 0
    }
}

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
    sink: Option<&'a mut dyn Sink>,
    full: bool,
    /// An event was kept out by an older one in the ring.
    refused: bool,
    reach: Reach,
    /// Completions that may still be looked at.
    budget: u32,
}

impl<'a> Hand<'a> {
    /// Takes nothing: all events go into the ring.
    pub(crate) fn closed() -> Self {
        Self {
            sink: None,
            full: false,
            refused: false,
            reach: Reach::All,
            budget: BUDGET,
        }
    }

    /// Takes one event, if there is any. The ring is empty.
    pub(crate) fn open(sink: &'a mut dyn Sink, reach: Reach) -> Self {
        Self {
            sink: Some(sink),
            full: false,
            refused: false,
            reach,
            budget: BUDGET,
        }
    }

    /// Whether it has an event.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Whether the drain may go on.
    pub(crate) fn goes_on(&self) -> bool {
        self.budget != 0 && (self.reach == Reach::All || !self.full)
    }

    /// So many completions were looked at.
    pub(crate) fn spend(&mut self, completions: usize) {
        let completions = u32::try_from(completions).unwrap_or(u32::MAX);
        self.budget = self.budget.saturating_sub(completions);
    }

    /// Returns why the drain has ended.
    pub(crate) fn drained(&self) -> Drained {
        match self.budget {
            0 => Drained::Cut,
            _ => Drained::Done,
        }
    }

    /// Whether it is the next event that goes here, and no other is wanted: none was kept out by one in the
    /// ring, which was empty when the hand was opened.
    pub(crate) fn wants_next(&self) -> bool {
        self.reach == Reach::One && !self.full && !self.refused
    }

    /// How many completions to look at at once, of at most so many.
    pub(crate) fn at_once(&self, most: usize) -> usize {
        match self.reach {
            Reach::All => most.min(usize::try_from(self.budget).unwrap_or(most)),
            Reach::One => most.min(1),
        }
    }

    /// Takes an event of the EVD with this handle, unless it has one, or the ring has, which is older. With the
    /// locks under which the ring is popped, and under which the events of this one's Endpoint are pushed.
    #[inline]
    pub(crate) fn takes(&mut self, ring: &Ring, evd: u64, event: &Event) -> bool {
        let Some(sink) = &mut self.sink else {
            return false;
        };
        if self.full {
            return false;
        }
        if !ring.has_none() {
            self.refused = true;
            return false;
        }
        sink.put(evd, event);
        self.full = true;
        true
    }
}

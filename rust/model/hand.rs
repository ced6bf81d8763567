// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Direct delivery of the oldest event to a consumer that drains.
//!
//! A consumer that finds the ring of its Event Dispatcher (EVD) empty drains the completion queues.
//! Without this file, the drain would push the oldest event into the ring, and the consumer would
//! pop it at once. Instead the drain puts it into a [`Hand`], which refers to the consumer's
//! buffer. Such an event is the oldest of the EVD: the ring was empty at that moment, and the
//! consumers' lock is held, so no other thread takes events. Events that are pushed later are
//! newer.
//!
//! The events of one Endpoint stay in order: each is pushed, or put into the hand, with the
//! Endpoint's lock held. If an earlier one was pushed, above all ESTABLISHED, the ring is not
//! empty, and this one is pushed after it.
//!
//! A drain holds the consumers' lock, and a completion without an event uses no room in the ring.
//! So a hand also limits the number of completions that the drain polls. A drain that reaches the
//! limit is [cut](Drained::Cut). Its caller releases the lock, and drains again if it needs to, as
//! often as its [`Turns`] allow.

use super::{
    event::{
        Event,
        Record, //
    },
    ring::Ring, //
};

/// Destination of an event that a consumer takes.
pub(crate) trait Sink {
    /// Stores an event of the EVD with this handle. Called with locks held: it must not sleep or
    /// take a lock.
    fn put(&mut self, evd: u64, event: &Event);

    /// Stores an event that was queued in a ring. As [`Sink::put`].
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

/// Largest number of completions that a drain polls before its caller releases the lock.
pub(crate) const BUDGET: u32 = 256;

/// Reason why a drain has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Drained {
    /// The completion queues are empty, the ring is full, or the drain has reached its [`Reach`].
    Done,
    /// The budget is used up. More completions may be queued.
    Cut,
}

/// Number of times that a drain is repeated after it was cut.
///
/// Completions may arrive as fast as they are drained. A drain only has to see those that were
/// queued when it started.
pub(crate) struct Turns(Option<u32>);

impl Turns {
    /// Creates the counter, before the first drain.
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Returns whether to drain once more. `depth` returns the number of completions that the
    /// completion queues can hold.
    pub(crate) fn another(&mut self, depth: impl FnOnce() -> u32) -> bool {
        let left = self.0.unwrap_or_else(|| depth() / BUDGET);
        self.0 = Some(left.saturating_sub(1));
        left != 0
    }
}

/// Extent of a drain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Drain until the completion queues are empty or the ring is full.
    All,
    /// Drain until an event is found.
    One,
}

/// Destination of the oldest event of a drain.
pub(crate) struct Hand<'a> {
    /// Buffer for the event; `None` if the hand is closed.
    sink: Option<&'a mut dyn Sink>,
    /// The hand holds an event.
    full: bool,
    /// The ring held an older event, so an event was not put into the hand.
    refused: bool,
    reach: Reach,
    /// Number of completions that may still be polled.
    budget: u32,
}

impl<'a> Hand<'a> {
    /// Creates a hand that takes no event: all events go into the ring.
    pub(crate) fn closed() -> Self {
        Self {
            sink: None,
            full: false,
            refused: false,
            reach: Reach::All,
            budget: BUDGET,
        }
    }

    /// Creates a hand that takes one event. The ring is empty.
    pub(crate) fn open(sink: &'a mut dyn Sink, reach: Reach) -> Self {
        Self {
            sink: Some(sink),
            full: false,
            refused: false,
            reach,
            budget: BUDGET,
        }
    }

    /// Checks whether the hand holds an event.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Checks whether the drain may continue.
    pub(crate) fn goes_on(&self) -> bool {
        self.budget != 0 && (self.reach == Reach::All || !self.full)
    }

    /// Charges polled completions to the budget.
    pub(crate) fn spend(&mut self, completions: usize) {
        let completions = u32::try_from(completions).unwrap_or(u32::MAX);
        self.budget = self.budget.saturating_sub(completions);
    }

    /// Returns the reason why the drain has ended.
    pub(crate) fn drained(&self) -> Drained {
        match self.budget {
            0 => Drained::Cut,
            _ => Drained::Done,
        }
    }

    /// Checks whether the next event goes into the hand and ends the drain: none was refused
    /// because of an event in the ring, which was empty when the hand was opened.
    pub(crate) fn wants_next(&self) -> bool {
        self.reach == Reach::One && !self.full && !self.refused
    }

    /// Returns the number of completions to poll at once, at most `most`.
    pub(crate) fn at_once(&self, most: usize) -> usize {
        match self.reach {
            Reach::All => most.min(usize::try_from(self.budget).unwrap_or(most)),
            Reach::One => most.min(1),
        }
    }

    /// Puts an event of the EVD with this handle into the hand. Returns `false` if the hand is
    /// closed or holds an event, or if the ring holds an older one; the caller then pushes the
    /// event.
    ///
    /// The caller holds the consumers' lock, and the lock under which the events of this Endpoint
    /// are pushed.
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

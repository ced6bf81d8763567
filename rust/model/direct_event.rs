// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Direct delivery of the oldest event to a consumer that drains.
//!
//! A consumer that finds the ring of its Event Dispatcher (EVD) empty drains the completion queues.
//! Without this file, the drain would push the oldest event into the ring, and the consumer would
//! pop it at once. Instead the drain puts it into a [`DirectEvent`], which refers to the consumer's
//! buffer. Such an event is the oldest of the EVD: the ring was empty at that moment, and the
//! consumers' lock is held, so no other thread takes events. Events that are pushed later are
//! newer.
//!
//! The events of one Endpoint stay in order: each is pushed, or delivered directly, with
//! the Endpoint's lock held. If an earlier one was pushed, above all ESTABLISHED, the ring is not
//! empty, and this one is pushed after it.
//!
//! A drain holds the consumers' lock, and a completion without an event uses no room in the ring.
//! So a drain also has a budget of completions, and ends when the budget is
//! [exhausted](DrainEnd::BudgetExhausted). Its caller releases the lock, and drains again if it
//! needs to, as often as its [`DrainRetries`] allow.

use super::{
    event::{
        Event,
        Record, //
    },
    ring::Ring, //
};

/// Destination of an event that a consumer takes.
pub(crate) trait EventSink {
    /// Stores an event of the EVD with this handle. Called with locks held: it must not sleep or
    /// take a lock.
    fn put(&mut self, evd: u64, event: &Event);

    /// Stores an event that was queued in a ring. As [`EventSink::put`].
    fn put_record(&mut self, record: &Record);
}

impl EventSink for Record {
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
pub(crate) enum DrainEnd {
    /// The completion queues are empty, the ring is full, or the drain has reached its
    /// [`DrainLimit`].
    Complete,
    /// The budget is used up. More completions may be queued.
    BudgetExhausted,
}

/// Number of times that a drain is repeated after it has used up its budget.
///
/// Completions may arrive as fast as they are drained. A drain only has to see those that were
/// queued when it started.
pub(crate) struct DrainRetries(Option<u32>);

impl DrainRetries {
    /// Creates the counter, before the first drain.
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Returns whether to drain once more. `depth` returns the number of completions that the
    /// completion queues can hold.
    pub(crate) fn next(&mut self, depth: impl FnOnce() -> u32) -> bool {
        let left = self.0.unwrap_or_else(|| depth() / BUDGET);
        self.0 = Some(left.saturating_sub(1));
        left != 0
    }
}

/// Extent of a drain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrainLimit {
    /// Drain until the completion queues are empty or the ring is full.
    All,
    /// Drain until an event is found.
    One,
}

/// Destination of the oldest event of a drain.
pub(crate) struct DirectEvent<'a> {
    /// Buffer for the event; `None` if all events go into the ring.
    sink: Option<&'a mut dyn EventSink>,
    /// The event was delivered.
    full: bool,
    /// The ring held an older event, so an event was not delivered directly.
    ring_has_older: bool,
    limit: DrainLimit,
    /// Number of completions that may still be polled.
    budget: u32,
}

impl<'a> DirectEvent<'a> {
    /// Delivers no event directly: all events go into the ring.
    pub(crate) fn none() -> Self {
        Self {
            sink: None,
            full: false,
            ring_has_older: false,
            limit: DrainLimit::All,
            budget: BUDGET,
        }
    }

    /// Delivers one event to this sink. The ring is empty.
    pub(crate) fn into_sink(sink: &'a mut dyn EventSink, limit: DrainLimit) -> Self {
        Self {
            sink: Some(sink),
            full: false,
            ring_has_older: false,
            limit,
            budget: BUDGET,
        }
    }

    /// Returns whether an event was delivered.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Returns whether the drain may continue.
    pub(crate) fn may_continue(&self) -> bool {
        self.budget != 0 && (self.limit == DrainLimit::All || !self.full)
    }

    /// Charges polled completions to the budget.
    pub(crate) fn charge(&mut self, completions: usize) {
        let completions = u32::try_from(completions).unwrap_or(u32::MAX);
        self.budget = self.budget.saturating_sub(completions);
    }

    /// Returns the reason why the drain has ended.
    pub(crate) fn drain_end(&self) -> DrainEnd {
        match self.budget {
            0 => DrainEnd::BudgetExhausted,
            _ => DrainEnd::Complete,
        }
    }

    /// Returns whether the next event is delivered directly and ends the drain: none was refused
    /// because of an event in the ring, which was empty when the drain started.
    pub(crate) fn expects_next(&self) -> bool {
        self.limit == DrainLimit::One && !self.full && !self.ring_has_older
    }

    /// Returns the number of completions to poll at once, at most `most`.
    pub(crate) fn batch_size(&self, most: usize) -> usize {
        match self.limit {
            DrainLimit::All => most.min(usize::try_from(self.budget).unwrap_or(most)),
            DrainLimit::One => most.min(1),
        }
    }

    /// Delivers an event of the EVD with this handle to the sink. Returns `false` if there is no
    /// sink, if it has got an event, or if the ring holds an older one; the caller then pushes the
    /// event.
    ///
    /// The caller holds the consumers' lock, and the lock under which the events of this Endpoint
    /// are pushed.
    pub(crate) fn try_put(&mut self, ring: &Ring, evd: u64, event: &Event) -> bool {
        let Some(sink) = &mut self.sink else {
            return false;
        };
        if self.full {
            return false;
        }
        if !ring.is_empty_to_consumer() {
            self.ring_has_older = true;
            return false;
        }
        sink.put(evd, event);
        self.full = true;
        true
    }
}

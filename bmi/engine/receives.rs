// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Count of the receives in a Shared Receive Queue (SRQ).
//!
//! DAT counts a receive until its event is dequeued, a home until it has processed the event. So
//! what DAT counts is completed by the events that are dequeued and not processed yet. Otherwise
//! the home would post receives in their place, find the queue full when it processes the events,
//! and count fewer receives each time.

/// Receives of a home's SRQ.
#[derive(Debug)]
pub(crate) struct SharedReceives {
    /// Receives that the queue can hold.
    limit: usize,
    /// Receives that were posted, and whose events were not processed.
    posted: usize,
}

impl SharedReceives {
    /// Creates the count of an empty queue.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { limit, posted: 0 }
    }

    /// Returns how many receives to post, so that the queue has `wanted`, or is full.
    pub(crate) fn lacking(&self, wanted: usize) -> usize {
        wanted.min(self.limit).saturating_sub(self.posted)
    }

    /// Notes that a receive was posted.
    pub(crate) fn was_posted(&mut self) {
        self.posted = self.posted.saturating_add(1);
    }

    /// Notes that the queue has refused a receive because it is full. That is no error: all
    /// receives are there.
    pub(crate) fn was_refused(&mut self) {
        self.posted = self.limit;
    }

    /// Notes that the event of a receive is processed.
    pub(crate) fn has_ended(&mut self) {
        self.posted = self.posted.saturating_sub(1);
    }

    /// Counts again, since receives may be lost with a connection: those that DAT counts as
    /// `outstanding`, and those whose events are `dequeued` and not processed yet.
    pub(crate) fn recount(&mut self, outstanding: usize, dequeued: usize) {
        self.posted = outstanding.saturating_add(dequeued).min(self.limit);
    }
}

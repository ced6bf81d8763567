// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Counts queued events of receives, by Endpoint.

use super::{
    Consumer,
    Demand,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        event::{
            Event,
            Record, //
        },
        handle::Direction, //
    },
    sys::lock::ContextGuard,
};
use core::ops::Range;
use kernel::sync::atomic::{
    Full,
    Relaxed, //
};

/// Returns the Endpoint whose receive an event reports.
fn receiver(record: &Record) -> Option<u64> {
    match Event::decode(record) {
        Some((Event::Dto { ep, operation, .. }, _)) => {
            (operation.direction() == Direction::Receive).then_some(ep)
        }
        _ => None,
    }
}

/// Number of queued receives of an Endpoint. No call takes an event from the EVD until the drop.
/// Mapped events that a process takes are reported after it.
pub(in crate::dat) struct QueuedReceives<'a> {
    evd: &'a Evd,
    ep: u64,
    consumer: ContextGuard<'a, Consumer>,
    count: u32,
    /// Number of events at the time of the count.
    events: u32,
}

impl QueuedReceives<'_> {
    /// Returns the number.
    pub(in crate::dat) fn count(&self) -> u32 {
        self.count
    }

    /// Returns whether no event was queued since the count. A caller with the Endpoint's lock knows
    /// then that the number does not change before it releases that lock.
    pub(in crate::dat) fn is_current(&self) -> bool {
        self.evd.queue.ring.len() == self.events
    }

    /// Counts the receives that were queued since the last count.
    pub(in crate::dat) fn recount(&mut self) {
        let (ep, events) = (self.ep, self.evd.queue.ring.len());
        let new = self
            .evd
            .count_in(&self.consumer, self.events..events, |other| other == ep);
        self.events = events;
        self.count = self.count.saturating_add(new);
    }
}

/// Reports each receive that the consumer takes to its Endpoint, until the drop. Meanwhile
/// completions are drained as they arrive.
pub(in crate::dat) struct ReceiveReports(Demand);

impl Drop for ReceiveReports {
    fn drop(&mut self) {
        let evd = self.0.evd();
        evd.queue.receive_reports.fetch_sub(1, Full);
    }
}

impl Evd {
    /// Begins to report the receives that the consumer takes.
    pub(in crate::dat) fn report_receives(self: &Arc<Self>) -> ReceiveReports {
        self.queue.receive_reports.fetch_add(1, Full);
        self.update_calls_only();
        ReceiveReports(self.begin_demand())
    }

    /// Reports an event that the consumer takes to its Endpoint, if it is one of a receive. Called
    /// with the consumer's lock held.
    pub(super) fn report_if_receive(&self, record: &Record) {
        if self.queue.receive_reports.load(Relaxed) != 0 {
            self.report_receive_taken(record);
        }
    }

    #[cold]
    fn report_receive_taken(&self, record: &Record) {
        if let Some(ep) = receiver(record) {
            self.context.target.receive_taken(ep);
        }
    }

    /// Returns the number of queued receives of an Endpoint, and keeps the consumer's lock.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn queued_receives(&self, ep: u64) -> QueuedReceives<'_> {
        let mut consumer = self.consumer.lock();
        self.note_taken(&mut consumer);
        let mut queued = QueuedReceives {
            evd: self,
            ep,
            count: self.count_mapped(&consumer, |other| other == ep),
            consumer,
            events: 0,
        };
        queued.recount();
        queued
    }

    /// Returns the number of queued receives of the Endpoints that `is_counted` selects.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn count_receives(&self, is_counted: impl Fn(u64) -> bool) -> u32 {
        let mut consumer = self.consumer.lock();
        self.note_taken(&mut consumer);
        let mapped = self.count_mapped(&consumer, &is_counted);
        let others = self.count_in(&consumer, 0..self.queue.ring.len(), &is_counted);
        mapped.saturating_add(others)
    }

    /// Counts receives among the mapped events.
    fn count_mapped(&self, consumer: &Consumer, is_counted: impl Fn(u64) -> bool) -> u32 {
        let mut count = 0_u32;
        self.for_each_mapped(consumer.known_taken, |record| {
            let counts = receiver(record).is_some_and(&is_counted);
            count = count.saturating_add(counts.into());
        });
        count
    }

    /// Counts receives among the queued events in this range, counted from the oldest one.
    fn count_in(
        &self,
        consumer: &Consumer,
        range: Range<u32>,
        is_counted: impl Fn(u64) -> bool,
    ) -> u32 {
        let mut count = 0_u32;
        self.queue
            .ring
            .for_each_in(&consumer.slots, range, |record| {
                let counts = receiver(record).is_some_and(&is_counted);
                count = count.saturating_add(counts.into());
            });
        count
    }
}

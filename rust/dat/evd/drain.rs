// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Draining: moves completions from the completion queues (CQ) into the ring.
//!
//! A drain polls at most [`BUDGET`](crate::model::direct_event::BUDGET) completions while it holds
//! the consumer's lock. Completions without events never fill the ring. Without the budget, they
//! could occupy the lock and a worker without end.

use super::{
    cqs::EvdCq,
    Consumer,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        completion::WakeMode,
        cq_room::Mark,
        direct_event::{
            DirectEvent,
            DrainEnd,
            DrainRetries, //
        },
        ring_size, //
    },
    rdma::wc::{
        Wc,
        WcBatch, //
    },
};

impl Evd {
    /// Drains completions into the ring, as far as it has room. Other completions stay in their CQ.
    pub(super) fn drain_to_ring(&self, consumer: &mut Consumer) -> DrainEnd {
        self.drain_with_direct(consumer, &mut DirectEvent::none())
    }

    /// As [`Evd::drain_to_ring`]. The oldest event is delivered directly.
    pub(super) fn drain_with_direct(
        &self,
        consumer: &mut Consumer,
        direct: &mut DirectEvent<'_>,
    ) -> DrainEnd {
        if !consumer.cqs.spill.is_empty() && self.drain_spill(&mut consumer.cqs, direct) {
            return direct.drain_end();
        }
        consumer
            .cqs
            .take_turns(|queue| self.drain_cq(queue, direct));
        direct.drain_end()
    }

    /// Drains one CQ. Returns `true` if the drain is over: the ring is full, the event was
    /// delivered directly, or the budget is used up.
    #[inline(always)]
    pub(super) fn drain_cq(&self, queue: &EvdCq, direct: &mut DirectEvent<'_>) -> bool {
        // Fast path: usually the consumer wants one event, and the CQ has at most one completion.
        // Direct delivery needs no room in the ring. A pending event may precede the completion.
        if direct.expects_next() && self.queue.pending.count() == 0 {
            match self.drain_one(queue, direct) {
                Polled::Empty => return false,
                Polled::Taken => return true,
                Polled::Another => {}
            }
        }
        self.drain_batches(queue, direct)
    }

    /// Polls the next completion.
    #[inline(always)]
    fn drain_one(&self, queue: &EvdCq, direct: &mut DirectEvent<'_>) -> Polled {
        let mut batch = WcBatch::<1>::new();
        let [completion] = queue.cq.poll(&mut batch, 1) else {
            self.release_given_up(queue.room.found_empty());
            return Polled::Empty;
        };
        direct.charge(1);
        self.complete(completion, direct);
        self.release_given_up(queue.room.completions_taken(1));
        if direct.is_full() {
            Polled::Taken
        } else {
            Polled::Another
        }
    }

    /// As [`Evd::drain_cq`], for all cases.
    #[inline(never)]
    fn drain_batches(&self, queue: &EvdCq, direct: &mut DirectEvent<'_>) -> bool {
        let mut batch = WcBatch::<{ ring_size::BATCH }>::new();
        while direct.may_continue() {
            // Producers may take this room in the meantime. The completions are then queued beyond
            // the queue length.
            let qlen = self.qlen();
            let most = ring_size::batch(qlen);
            let room = usize::try_from(self.room_within(qlen)).map_or(most, |room| room.min(most));
            if room == 0 {
                if !self.recheck_room() {
                    return true;
                }
                // A process that moves the index to and fro does not prolong the drain.
                direct.charge(1);
                continue;
            }
            let room = direct.batch_size(room);
            let completions = queue.cq.poll(&mut batch, room);
            if !completions.is_empty() {
                let target = &self.context.target;
                target.complete_all(self, completions, direct);
                direct.charge(completions.len());
                let count = u32::try_from(completions.len()).unwrap_or(u32::MAX);
                self.release_given_up(queue.room.completions_taken(count));
            }
            if completions.len() < room {
                self.release_given_up(queue.room.found_empty());
                return false;
            }
        }
        true
    }

    /// Counts the entries of DTOs that were given up, which a CQ has released.
    pub(super) fn release_given_up(&self, count: u32) {
        if count != 0 {
            self.cqs.given_up.sub(count);
        }
    }

    /// Passes a completion to the Endpoint that posted the work request.
    pub(super) fn complete(&self, completion: &Wc, direct: &mut DirectEvent<'_>) {
        self.context.target.complete(self, completion, direct);
    }

    /// Arms the CQs, then drains the completions that arrived before the arming.
    ///
    /// No notification comes for those. If the budget is used up, the pump drains the rest and
    /// notifies.
    pub(super) fn arm_and_drain(self: &Arc<Self>, consumer: &mut Consumer) {
        // The drain finds completions that the arming has missed.
        let _ = consumer.cqs.arm();
        if self.drain_to_ring(consumer) == DrainEnd::BudgetExhausted {
            self.queue_pump_and_notify();
            // The pump cannot recognise solicited completions, so the consumer has to check.
            if self.mode() == WakeMode::Solicited {
                self.notify();
            }
        }
    }

    /// Drains one CQ, as far as the ring has room. Returns whether the mark has passed, or the EVD
    /// takes no more completions.
    ///
    /// Context: process; sleeps.
    pub(super) fn drain_past(&self, queue: &EvdCq, mark: Mark) -> bool {
        let mut retries = DrainRetries::new();
        loop {
            let mut consumer = self.consumer.lock();
            let mut direct = DirectEvent::none();
            if !consumer.cqs.is_open() || queue.room.has_passed(mark) {
                return true;
            }
            let spill_is_left =
                !consumer.cqs.spill.is_empty() && self.drain_spill(&mut consumer.cqs, &mut direct);
            if !spill_is_left {
                self.drain_cq(queue, &mut direct);
            }
            if queue.room.has_passed(mark) {
                return true;
            }
            if direct.drain_end() == DrainEnd::Complete || !retries.next(|| consumer.cqs.depth()) {
                return false;
            }
        }
    }

    /// Drains all completions that are queued by now, as far as the ring has room. Releases the
    /// lock for other threads in between.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn drain_all(&self) {
        let mut retries = DrainRetries::new();
        loop {
            let mut consumer = self.consumer.lock();
            let drained = self.drain_to_ring(&mut consumer);
            if drained == DrainEnd::Complete || !retries.next(|| consumer.cqs.depth()) {
                return;
            }
        }
    }
}

/// Result of a poll for the next completion.
enum Polled {
    /// No completion is queued.
    Empty,
    /// The event was delivered directly.
    Taken,
    /// The completion was processed, and its event was not delivered directly.
    Another,
}

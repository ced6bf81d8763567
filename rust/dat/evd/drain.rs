// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Draining: moves completions from the completion queues to the ring.
//!
//! A drain polls at most [`BUDGET`](crate::model::direct_event::BUDGET) completions while it holds the
//! consumer's lock. So completions without events, which never fill the ring, keep neither the lock
//! nor a worker.

use super::{
    cqs::EvdCq,
    Consumer,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        completion::WakeMode,
        cq_room::GivenUpSnapshot, //
        direct_event::{
            DirectEvent,
            DrainEnd,
            DrainRetries, //
        },
        ring_size,
    },
    rdma::wc::{
        Batch,
        Wc, //
    },
};

impl Evd {
    /// Moves completions into the ring, as far as it has room. What has none stays where it is.
    pub(super) fn drain(&self, consumer: &mut Consumer) -> DrainEnd {
        self.drain_to(consumer, &mut DirectEvent::none())
    }

    /// As [`Evd::drain`], the oldest event delivered directly.
    pub(super) fn drain_to(
        &self,
        consumer: &mut Consumer,
        direct: &mut DirectEvent<'_>,
    ) -> DrainEnd {
        consumer
            .cqs
            .take_turns(|queue| self.drain_queue(queue, direct));
        direct.drain_end()
    }

    /// Says whether that is enough: the ring is full, the event is delivered, or the budget spent.
    #[inline(always)]
    fn drain_queue(&self, queue: &EvdCq, direct: &mut DirectEvent<'_>) -> bool {
        // Nearly always one is wanted, and there is one or none. Delivered directly it takes no room of the ring.
        if direct.expects_next() && self.queue.pending.count() == 0 {
            match self.drain_next(queue, direct) {
                Polled::Empty => return false,
                Polled::Taken => return true,
                Polled::Another => {}
            }
        }
        self.drain_on(queue, direct)
    }

    /// Looks at the next completion.
    #[inline(always)]
    fn drain_next(&self, queue: &EvdCq, direct: &mut DirectEvent<'_>) -> Polled {
        let snapshot = queue.room.begin_poll();
        let mut batch = Batch::<1>::new();
        let [completion] = queue.cq.poll(&mut batch, 1) else {
            self.end_poll_empty(queue, snapshot);
            return Polled::Empty;
        };
        direct.charge(1);
        self.complete(completion, direct);
        if direct.is_full() {
            Polled::Taken
        } else {
            Polled::Another
        }
    }

    /// As [`Evd::drain_queue`], whatever is wanted.
    #[inline(never)]
    fn drain_on(&self, queue: &EvdCq, direct: &mut DirectEvent<'_>) -> bool {
        // Before the first poll: by now their queue pairs are destroyed, and all that those have
        // left lies here.
        let snapshot = queue.room.begin_poll();
        let mut batch = Batch::<{ ring_size::BATCH }>::new();
        while direct.may_continue() {
            // What is posted meanwhile may take this room. Then they are queued beyond the queue length.
            let most = ring_size::batch(self.qlen());
            let room = usize::try_from(self.room()).map_or(most, |room| room.min(most));
            if room == 0 {
                return true;
            }
            let room = direct.batch_size(room);
            let completions = queue.cq.poll(&mut batch, room);
            for completion in completions {
                self.complete(completion, direct);
            }
            direct.charge(completions.len());
            if completions.len() < room {
                self.end_poll_empty(queue, snapshot);
                return false;
            }
        }
        true
    }

    /// A poll has found the end of a completion queue.
    fn end_poll_empty(&self, queue: &EvdCq, snapshot: GivenUpSnapshot) {
        if let Some(count) = queue.room.end_poll_empty(snapshot) {
            self.cqs.given_up.sub(count);
        }
    }

    /// Passes a completion to the Endpoint that posted the work request.
    fn complete(&self, completion: &Wc, direct: &mut DirectEvent<'_>) {
        self.domain.endpoints.complete(self, completion, direct);
    }

    /// Arms, and drains what came before that. If the budget is exhausted, the pump goes on, and tells of what it finds:
    /// no notification will come of that.
    pub(super) fn arm_and_drain(self: &Arc<Self>, consumer: &mut Consumer) {
        // What they have missed the drain finds.
        let _ = consumer.cqs.arm(false);
        if self.drain(consumer) == DrainEnd::BudgetExhausted {
            self.run_pump_and_notify();
            // What is solicited the pump does not recognise: the consumer is to look.
            if self.mode() == WakeMode::Solicited {
                self.notify();
            }
        }
    }

    /// Drains all that lies in the completion queues by now, as far as there is room. Others have the lock
    /// in between.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn drain_now(&self) {
        let mut retries = DrainRetries::new();
        loop {
            let mut consumer = self.consumer.lock();
            let drained = self.drain(&mut consumer);
            if drained == DrainEnd::Complete || !retries.next(|| consumer.cqs.depth()) {
                return;
            }
        }
    }
}

/// Result of a poll for the next completion.
enum Polled {
    /// There is none.
    Empty,
    /// Its event was delivered directly.
    Taken,
    /// It had no event to deliver.
    Another,
}

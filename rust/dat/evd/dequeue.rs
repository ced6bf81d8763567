// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Taking events: what every consumer does in the end.

use super::{
    Consumer,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::direct_event::{
        DirectEvent,
        DrainEnd,
        DrainLimit,
        DrainRetries, //
        EventSink,
    },
};

/// Result of taking an event.
#[must_use]
pub(super) enum TakeResult {
    /// An event, and whether there may be more in the completion queues.
    Event(DrainEnd),
    /// None.
    Nothing,
    /// None so far: the drain has used up its budget.
    BudgetExhausted,
}

impl TakeResult {
    pub(super) fn is_event(&self) -> bool {
        matches!(self, Self::Event(_))
    }
}

impl Evd {
    /// Takes the oldest event, if there is one. If the ring has none, it drains as far as `limit` says.
    #[inline(always)]
    pub(super) fn pop(
        self: &Arc<Self>,
        consumer: &mut Consumer,
        limit: DrainLimit,
        sink: &mut dyn EventSink,
    ) -> TakeResult {
        if !self.queue.ring.is_empty_to_consumer() {
            let taken = self.pop_queued(consumer, sink);
            // Who posts one for each that is taken never empties the ring: completions have their turn,
            // as long as there is the room of what was taken.
            consumer.passed_by = !consumer.passed_by;
            if consumer.passed_by {
                return Self::found(taken, DrainEnd::Complete);
            }
            return Self::found(taken, self.drain(consumer));
        }
        consumer.passed_by = false;
        let mut direct = DirectEvent::into_sink(&mut *sink, limit);
        let drained = self.drain_to(consumer, &mut direct);
        if direct.is_full() {
            // The ring was empty: nothing that is taken here makes room for the pump.
            return TakeResult::Event(drained);
        }
        // Also what a drain has pushed, and what was pushed meanwhile.
        let taken = !self.queue.ring.is_empty_to_consumer() && self.pop_queued(consumer, sink);
        Self::found(taken, drained)
    }

    #[inline(always)]
    fn found(taken: bool, end: DrainEnd) -> TakeResult {
        match (taken, end) {
            (true, end) => TakeResult::Event(end),
            (false, DrainEnd::Complete) => TakeResult::Nothing,
            (false, DrainEnd::BudgetExhausted) => TakeResult::BudgetExhausted,
        }
    }

    /// Takes the oldest event of the ring.
    #[inline(never)]
    pub(super) fn pop_queued(
        self: &Arc<Self>,
        consumer: &mut Consumer,
        sink: &mut dyn EventSink,
    ) -> bool {
        let Some(popped) = self.queue.ring.pop(&mut consumer.slots) else {
            return false;
        };
        sink.put_record(&popped);
        // The pump stops when the ring is full; now there is room.
        self.pump_again();
        true
    }

    /// `dat_evd_dequeue`. Takes the oldest event and returns how many are [left](Evd::left), those in the
    /// completion queues counted if the ring was empty.
    ///
    /// # Errors
    ///
    /// QUEUE_EMPTY.
    pub(crate) fn dequeue(
        self: &Arc<Self>,
        limit: DrainLimit,
        sink: &mut dyn EventSink,
    ) -> DatResult<u32> {
        let mut retries = DrainRetries::new();
        loop {
            let mut consumer = self.consumer.lock();
            match self.pop(&mut consumer, limit, sink) {
                TakeResult::Event(drained) => {
                    drop(consumer);
                    return Ok(self.left(limit, drained));
                }
                // An event may follow those that were looked at. Others have the lock in between.
                TakeResult::BudgetExhausted if retries.next(|| consumer.cqs.depth()) => {}
                TakeResult::BudgetExhausted | TakeResult::Nothing => {
                    let late = self.check_and_pop(&mut consumer);
                    drop(consumer);
                    sink.put_record(&late.ok_or(Kind::QueueEmpty)?);
                    return Ok(self.left(limit, DrainEnd::Complete));
                }
            }
        }
    }

    /// Returns how many events are left in the ring, after the rest of a drain that used up its budget; nobody asks
    /// whose limit is [`DrainLimit::One`]. Without the consumer's lock.
    #[inline(always)]
    pub(super) fn left(&self, limit: DrainLimit, drained: DrainEnd) -> u32 {
        if limit == DrainLimit::One {
            return 0;
        }
        if drained == DrainEnd::BudgetExhausted {
            self.drain_now();
        }
        self.queue.ring.len()
    }

    /// Takes the oldest event if there are at least `threshold`, those in the completion queues counted.
    #[inline(always)]
    pub(super) fn take(
        self: &Arc<Self>,
        consumer: &mut Consumer,
        threshold: u32,
        limit: DrainLimit,
        sink: &mut dyn EventSink,
    ) -> TakeResult {
        // With a threshold of 1, taking one drains an empty ring. What lies behind that nobody asks for may wait.
        if threshold > 1 || (limit == DrainLimit::All && !self.queue.ring.is_empty_to_consumer()) {
            let drained = self.drain(consumer);
            if self.queue.ring.len() < threshold {
                return Self::found(false, drained);
            }
        }
        self.pop(consumer, limit, sink)
    }
}

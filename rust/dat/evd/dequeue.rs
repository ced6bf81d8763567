// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Taking events from an Event Dispatcher (EVD): `dat_evd_dequeue`, and the common part of all
//! consumers.

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
        DrainRetries,
        EventSink, //
    },
};

/// Result of taking an event.
#[must_use]
pub(super) enum TakeResult {
    /// An event was taken. The value says why its drain has ended.
    Event(DrainEnd),
    /// No event is queued.
    Nothing,
    /// No event was found before the drain used up its budget. More completions may be queued.
    BudgetExhausted,
}

impl TakeResult {
    pub(super) fn is_event(&self) -> bool {
        matches!(self, Self::Event(_))
    }
}

impl Evd {
    /// Takes the oldest event. If the ring is empty, drains completions as far as `limit` allows.
    #[inline(always)]
    pub(super) fn pop(
        self: &Arc<Self>,
        consumer: &mut Consumer,
        limit: DrainLimit,
        sink: &mut dyn EventSink,
    ) -> TakeResult {
        if let Some(oldest) = self.pop_handed_over(consumer) {
            sink.put_record(&oldest);
            self.queue_pump_if_needed();
            return TakeResult::Event(DrainEnd::Complete);
        }
        if !self.queue.ring.is_empty_to_consumer() {
            let taken = self.pop_from_ring(consumer, sink);
            // Every second event from the ring is followed by a drain, as far as there is room.
            // Otherwise completions would starve if a producer posts an event for each one that is
            // taken, so that the ring never becomes empty.
            consumer.skipped_drain = !consumer.skipped_drain;
            if consumer.skipped_drain {
                return Self::found(taken, DrainEnd::Complete);
            }
            return Self::found(taken, self.drain_to_ring(consumer));
        }
        consumer.skipped_drain = false;
        let mut direct = DirectEvent::into_sink(&mut *sink, limit);
        let drained = self.drain_with_direct(consumer, &mut direct);
        if direct.is_full() {
            // The ring was empty, so that this event leaves no new room for the pump.
            return TakeResult::Event(drained);
        }
        // The drain, or a producer in the meantime, may have pushed events.
        let taken = !self.queue.ring.is_empty_to_consumer() && self.pop_from_ring(consumer, sink);
        Self::found(taken, drained)
    }

    fn found(taken: bool, end: DrainEnd) -> TakeResult {
        if taken {
            TakeResult::Event(end)
        } else {
            Self::found_nothing(end)
        }
    }

    fn found_nothing(end: DrainEnd) -> TakeResult {
        match end {
            DrainEnd::Complete => TakeResult::Nothing,
            DrainEnd::BudgetExhausted => TakeResult::BudgetExhausted,
        }
    }

    /// Takes the oldest event of the ring. Returns `false` if the ring is empty.
    #[inline(never)]
    pub(super) fn pop_from_ring(
        self: &Arc<Self>,
        consumer: &mut Consumer,
        sink: &mut dyn EventSink,
    ) -> bool {
        let Some(popped) = self.queue.ring.pop(&mut consumer.slots) else {
            return false;
        };
        self.report_if_receive(&popped);
        sink.put_record(&popped);
        // The pump stops when the ring is full. Now the ring has room.
        self.queue_pump_if_needed();
        true
    }

    /// Takes the oldest event: `dat_evd_dequeue`. Returns the number of events that are
    /// [left](Evd::count_left). If the ring was empty, that includes those of queued completions.
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
                    return Ok(self.count_left(limit, drained));
                }
                // An event may follow the completions that were polled. Release the lock for other
                // threads in between.
                TakeResult::BudgetExhausted if retries.next(|| consumer.cqs.depth()) => {}
                TakeResult::BudgetExhausted | TakeResult::Nothing => {
                    let late = self.check_and_pop(&mut consumer);
                    drop(consumer);
                    sink.put_record(&late.ok_or(Kind::QueueEmpty)?);
                    return Ok(self.count_left(limit, DrainEnd::Complete));
                }
            }
        }
    }

    /// Takes events that are queued, the oldest first, up to `most`. Then drains completions to the
    /// ring, once for all. Returns the number of events taken, and the number of those that are
    /// [left](Evd::count_left).
    pub(crate) fn dequeue_queued(
        self: &Arc<Self>,
        most: u32,
        sink: &mut dyn EventSink,
    ) -> (u32, u32) {
        let mut consumer = self.consumer.lock();
        let mut taken = 0_u32;
        while taken < most && self.pop_queued(&mut consumer, sink) {
            taken = taken.wrapping_add(1);
        }
        let drained = self.drain_to_ring(&mut consumer);
        drop(consumer);
        (taken, self.count_left(DrainLimit::All, drained))
    }

    /// Takes the oldest event, unless it is a completion that was not drained. Returns `false` if
    /// there is none.
    fn pop_queued(self: &Arc<Self>, consumer: &mut Consumer, sink: &mut dyn EventSink) -> bool {
        if let Some(oldest) = self.pop_handed_over(consumer) {
            sink.put_record(&oldest);
            self.queue_pump_if_needed();
            return true;
        }
        !self.queue.ring.is_empty_to_consumer() && self.pop_from_ring(consumer, sink)
    }

    /// Returns the number of events that are left. If the last drain has used up its budget,
    /// drains the rest first. Returns 0 for [`DrainLimit::One`], whose caller does not use the
    /// number.
    ///
    /// Called without the consumer's lock.
    #[inline(always)]
    pub(super) fn count_left(&self, limit: DrainLimit, drained: DrainEnd) -> u32 {
        if limit == DrainLimit::One {
            return 0;
        }
        if drained == DrainEnd::BudgetExhausted {
            self.drain_all();
        }
        self.queued()
    }

    /// Takes the oldest event if at least `threshold` events are queued. Queued completions count
    /// too.
    #[inline(always)]
    pub(super) fn pop_at_threshold(
        self: &Arc<Self>,
        consumer: &mut Consumer,
        threshold: u32,
        limit: DrainLimit,
        sink: &mut dyn EventSink,
    ) -> TakeResult {
        // With a threshold of 1, `pop` drains if the ring is empty. Later completions may stay
        // queued, unless the caller needs the number of events.
        if threshold > 1 || (limit == DrainLimit::All && !self.queue.ring.is_empty_to_consumer()) {
            let drained = self.drain_to_ring(consumer);
            if self.queued() < threshold {
                return Self::found_nothing(drained);
            }
        }
        self.pop(consumer, limit, sink)
    }
}

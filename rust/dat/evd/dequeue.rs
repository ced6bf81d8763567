// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Taking events: what every consumer does in the end.

use super::{
    Consumer,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::hand::{
        Drained,
        Hand,
        Reach,
        Sink,
        Turns, //
    },
};

/// What a look for an event has found.
#[must_use]
pub(super) enum Found {
    /// An event, and whether there may be more in the completion queues.
    Event(Drained),
    /// None.
    Nothing,
    /// None so far: the drain was cut.
    Cut,
}

impl Found {
    pub(super) fn is_event(&self) -> bool {
        matches!(self, Self::Event(_))
    }
}

impl Evd {
    /// Takes the oldest event, if there is one. If the ring has none, it drains as far as `reach` says.
    #[inline(always)]
    pub(super) fn pop(
        self: &Arc<Self>,
        consumer: &mut Consumer,
        reach: Reach,
        sink: &mut dyn Sink,
    ) -> Found {
        if !self.queue.ring.has_none() {
            let taken = self.pop_queued(consumer, sink);
            // Who posts one for each that is taken never empties the ring: completions have their turn,
            // as long as there is the room of what was taken.
            consumer.passed_by = !consumer.passed_by;
            if consumer.passed_by {
                return Self::found(taken, Drained::Done);
            }
            return Self::found(taken, self.drain(consumer));
        }
        consumer.passed_by = false;
        let mut hand = Hand::open(&mut *sink, reach);
        let drained = self.drain_to(consumer, &mut hand);
        if hand.is_full() {
            // The ring was empty: nothing that is taken here makes room for the pump.
            return Found::Event(drained);
        }
        // Also what a drain has pushed, and what was pushed meanwhile.
        let taken = !self.queue.ring.has_none() && self.pop_queued(consumer, sink);
        Self::found(taken, drained)
    }

    #[inline(always)]
    fn found(taken: bool, drained: Drained) -> Found {
        match (taken, drained) {
            (true, drained) => Found::Event(drained),
            (false, Drained::Done) => Found::Nothing,
            (false, Drained::Cut) => Found::Cut,
        }
    }

    /// Takes the oldest event of the ring.
    #[inline(never)]
    pub(super) fn pop_queued(
        self: &Arc<Self>,
        consumer: &mut Consumer,
        sink: &mut dyn Sink,
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
    pub(crate) fn dequeue(self: &Arc<Self>, reach: Reach, sink: &mut dyn Sink) -> DatResult<u32> {
        let mut turns = Turns::new();
        loop {
            let mut consumer = self.consumer.lock();
            match self.pop(&mut consumer, reach, sink) {
                Found::Event(drained) => {
                    drop(consumer);
                    return Ok(self.left(reach, drained));
                }
                // An event may follow those that were looked at. Others have the lock in between.
                Found::Cut if turns.another(|| consumer.cqs.depth()) => {}
                Found::Cut | Found::Nothing => {
                    let late = self.pop_or_settle(&mut consumer);
                    drop(consumer);
                    sink.put_record(&late.ok_or(Kind::QueueEmpty)?);
                    return Ok(self.left(reach, Drained::Done));
                }
            }
        }
    }

    /// Returns how many events are left in the ring, after the rest of a drain that was cut; nobody asks
    /// whose reach is [`Reach::One`]. Without the consumer's lock.
    #[inline(always)]
    pub(super) fn left(&self, reach: Reach, drained: Drained) -> u32 {
        if reach == Reach::One {
            return 0;
        }
        if drained == Drained::Cut {
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
        reach: Reach,
        sink: &mut dyn Sink,
    ) -> Found {
        // With a threshold of 1, taking one drains an empty ring. What lies behind that nobody asks for may wait.
        if threshold > 1 || (reach == Reach::All && !self.queue.ring.has_none()) {
            let drained = self.drain(consumer);
            if self.queue.ring.len() < threshold {
                return Self::found(false, drained);
            }
        }
        self.pop(consumer, reach, sink)
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Taking events: what every consumer does in the end.

use super::{
    Consumer,
    Evd, //
};
use crate::model::{
    code::{
        DatResult,
        Kind, //
    },
    hand::{
        Hand,
        Reach,
        Sink, //
    },
};
use kernel::sync::Arc;

impl Evd {
    /// Takes the oldest event, if there is one. If the ring has none, it drains as far as `reach` says.
    #[inline(always)]
    pub(super) fn pop(
        this: &Arc<Self>,
        consumer: &mut Consumer,
        reach: Reach,
        sink: &mut dyn Sink,
    ) -> bool {
        if !this.ring.has_none() {
            let taken = Self::pop_queued(this, consumer, sink);
            // Who posts one for each that is taken never empties the ring: completions have their turn,
            // as long as there is the room of what was taken.
            consumer.passed_by = !consumer.passed_by;
            if !consumer.passed_by {
                this.drain(consumer);
            }
            return taken;
        }
        consumer.passed_by = false;
        let mut hand = Hand::open(&mut *sink, reach);
        this.drain_to(consumer, &mut hand);
        if hand.is_full() {
            // The ring was empty: nothing that is taken here makes room for the pump.
            return true;
        }
        // Also what a drain has pushed, and what was pushed meanwhile.
        !this.ring.has_none() && Self::pop_queued(this, consumer, sink)
    }

    /// Takes the oldest event of the ring.
    #[inline(never)]
    pub(super) fn pop_queued(
        this: &Arc<Self>,
        consumer: &mut Consumer,
        sink: &mut dyn Sink,
    ) -> bool {
        let Some(popped) = this.ring.pop(&mut consumer.slots) else {
            return false;
        };
        sink.put_record(&popped);
        // The pump stops when the ring is full; now there is room.
        this.pump_again();
        true
    }

    /// `dat_evd_dequeue`. Takes the oldest event and returns how many are [left](Evd::left), those in the
    /// completion queues counted if the ring was empty.
    ///
    /// # Errors
    ///
    /// QUEUE_EMPTY.
    pub(crate) fn dequeue(this: &Arc<Self>, reach: Reach, sink: &mut dyn Sink) -> DatResult<u32> {
        let mut consumer = this.consumer.lock();
        if !Self::pop(this, &mut consumer, reach, sink) {
            let late = Self::pop_or_settle(this, &mut consumer).ok_or(Kind::QueueEmpty)?;
            sink.put_record(&late);
        }
        Ok(this.left(reach))
    }

    /// How many events are left in the ring; nobody asks whose reach is [`Reach::One`].
    #[inline(always)]
    fn left(&self, reach: Reach) -> u32 {
        match reach {
            Reach::All => self.ring.len(),
            Reach::One => 0,
        }
    }

    /// Takes the oldest event if there are at least `threshold`, those in the completion queues counted;
    /// and says how many are [left](Evd::left).
    #[inline(always)]
    pub(super) fn take(
        this: &Arc<Self>,
        consumer: &mut Consumer,
        threshold: u32,
        reach: Reach,
        sink: &mut dyn Sink,
    ) -> Option<u32> {
        // With a threshold of 1, taking one drains an empty ring. What lies behind that nobody asks for may wait.
        if threshold > 1 || (reach == Reach::All && !this.ring.has_none()) {
            this.drain(consumer);
            if this.ring.len() < threshold {
                return None;
            }
        }
        Self::pop(this, consumer, reach, sink).then(|| this.left(reach))
    }
}

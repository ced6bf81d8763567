// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What pushes events into the ring.
//!
//! There is room for as many as the queue length says. What cannot be refused any more may fill the
//! ring beyond [that](crate::model::ring_size), and what must not be lost has had its [`EventReservation`] set aside before.

use super::{
    resize::Words,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        atomic::AtomicU32,
        direct_event::DirectEvent,
        event::{
            AsyncEvent,
            Event,
            Record, //
        },
        ring::{
            self,
            Ring, //
        },
        ring_size::PendingEvents,
    },
    sys::lock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
};

/// What the producer side of an EVD owns.
pub(super) struct Producer {
    pub(super) slots: ring::RingProducer<Words>,
    /// Slots that are set aside: they and the queued events never are more than the ring's slots.
    pub(super) reserved: u32,
}

/// DAT's reason of an asynchronous EVD event: overflow.
const REASON_OVERFLOW: u32 = 0;

/// The queued events of an EVD.
#[pin_data]
pub(super) struct Queue {
    /// [Longer](crate::model::ring_size) than the queue length, so that drained completions and
    /// connection events find room after other events have filled the queue.
    pub(super) ring: Ring,
    /// The right to push.
    #[pin]
    pub(super) producer: SpinLockIrq<Producer>,
    /// Limit on the events that a consumer lets queue up. Changes with both locks held.
    pub(super) qlen: AtomicU32,
    /// Number of events that are not queued yet but have their room: events of drained completions
    /// that an Endpoint holds back, and those for which there is an [`EventReservation`].
    pub(super) pending: PendingEvents,
}

impl Queue {
    /// Creates an empty queue.
    pub(super) fn new(
        qlen: u32,
        ring: Ring,
        producer: ring::RingProducer<Words>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            ring,
            producer <- new_spinlock_irq!(Producer::new(producer), "Evd::producer"),
            qlen: AtomicU32::new(qlen),
            pending: PendingEvents::none(),
        })
    }
}

/// How far an event may fill the ring.
#[derive(Clone, Copy)]
enum Limit {
    /// As the queue length says.
    Queue,
    /// To the last slot.
    Ring,
}

/// An EVD has no room for what is asked of it.
pub(in crate::dat) fn no_room() -> DatError {
    DatError::new(Kind::InsufficientResources, Subtype::ResourceTevd)
}

impl Producer {
    /// Of an empty ring.
    pub(super) fn new(slots: ring::RingProducer<Words>) -> Self {
        Self { slots, reserved: 0 }
    }
}

impl Evd {
    /// Queues an event, unless as many lie here as the queue length allows.
    ///
    /// Context: any, including hard IRQ.
    ///
    /// # Errors
    ///
    /// QUEUE_FULL.
    pub(in crate::dat) fn post(&self, event: &Event) -> DatResult {
        self.push(event, Limit::Queue)
    }

    /// As [`Evd::post`], for events that nobody can be told of who could post them again: they may
    /// fill the ring beyond the queue length. If even that is full the event is lost, and the
    /// asynchronous EVD says so.
    pub(in crate::dat) fn report(&self, event: &Event) {
        if self.push(event, Limit::Ring).is_err() {
            self.overflowed();
        }
    }

    /// Sets room for one event aside.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (EVD) if as many lie here as the queue length allows.
    pub(in crate::dat) fn reserve(self: &Arc<Self>) -> DatResult<EventReservation> {
        let mut producer = self.queue.producer.lock();
        if !self.fits(&producer, Limit::Queue) {
            return Err(no_room());
        }
        producer.reserved = producer.reserved.saturating_add(1);
        self.reserve_pending();
        drop(producer);
        Ok(EventReservation(Some(self.clone())))
    }

    /// As [`Evd::report`], for the completion that whoever drains has at hand: the CNO is not told.
    pub(in crate::dat) fn report_drained(&self, event: &Event) {
        match self.enqueue(event, Limit::Ring) {
            Ok(queued) => self.wake(queued),
            Err(_) => self.overflowed(),
        }
    }

    /// Delivers the event of a completion directly to the consumer that drains, if it is the oldest.
    #[inline]
    pub(in crate::dat) fn put_direct(&self, direct: &mut DirectEvent<'_>, event: &Event) -> bool {
        direct.try_put(&self.queue.ring, self.handle, event)
    }

    /// As [`Evd::report`], within the queue length: beyond it is the room of what happens to connections.
    pub(in crate::dat) fn report_within(&self, event: &Event) {
        if self.post(event).is_err() {
            self.overflowed();
        }
    }

    /// As [`Evd::report_drained`], for an event that wakes nobody.
    pub(in crate::dat) fn report_quietly(&self, event: &Event) {
        if self
            .push_with(event, Limit::Ring, Ring::push_quiet)
            .is_err()
        {
            self.overflowed();
        }
    }

    /// Whether there is room for one more event.
    fn fits(&self, producer: &Producer, limit: Limit) -> bool {
        match limit {
            Limit::Queue => self.queued_or_pending() < self.qlen(),
            Limit::Ring => {
                self.queue.ring.len().saturating_add(producer.reserved) < producer.slots.capacity()
            }
        }
    }

    /// Queues an event unless so many are queued or expected already, and tells of it.
    fn push(&self, event: &Event, limit: Limit) -> DatResult {
        let queued = self.enqueue(event, limit)?;
        self.announce(queued);
        Ok(())
    }

    /// Queues an event unless so many are queued or expected already. Returns how many are queued.
    fn enqueue(&self, event: &Event, limit: Limit) -> DatResult<u32> {
        self.push_with(event, limit, Ring::push)
            .map_err(|ring::RingFull| Kind::QueueFull.into())
    }

    /// Puts an event into the ring as `push` does it, unless so many are queued or expected already.
    fn push_with<T>(
        &self,
        event: &Event,
        limit: Limit,
        push: impl FnOnce(&Ring, &mut ring::RingProducer<Words>, &Record) -> Result<T, ring::RingFull>,
    ) -> Result<T, ring::RingFull> {
        let record = event.encode(self.handle);
        let mut producer = self.queue.producer.lock();
        if !self.fits(&producer, limit) {
            return Err(ring::RingFull);
        }
        push(&self.queue.ring, &mut producer.slots, &record)
    }

    /// Queues an event into a slot that was set aside.
    fn push_reserved(&self, record: &Record) {
        let pushed = {
            let mut producer = self.queue.producer.lock();
            let pushed = self.queue.ring.push(&mut producer.slots, record);
            self.give_back(&mut producer);
            pushed
        };
        // Never an error: the slot is there.
        if let Ok(queued) = pushed {
            self.announce(queued);
        }
    }

    /// A slot that was set aside is taken, or for others again.
    fn give_back(&self, producer: &mut Producer) {
        producer.reserved = producer.reserved.saturating_sub(1);
        self.release_pending();
    }

    /// Whether as many events lie here as may: nothing is drained before the consumer takes some.
    pub(in crate::dat) fn is_full(&self) -> bool {
        self.queue.ring.len() >= self.qlen()
    }

    /// How many events lie here, or are to find room.
    pub(super) fn queued_or_pending(&self) -> u32 {
        self.queue.pending.total_with(&self.queue.ring)
    }

    /// How many events the queue length leaves room for.
    pub(super) fn room(&self) -> u32 {
        self.qlen().saturating_sub(self.queued_or_pending())
    }

    /// One more event is to find room here, until [`Evd::release_pending`].
    pub(in crate::dat) fn reserve_pending(&self) {
        self.queue.pending.reserve();
    }

    /// One event less: it was reported, or will never be. The caller [makes up](Evd::run_pump_and_notify) for room that
    /// nobody learns of.
    pub(in crate::dat) fn release_pending(&self) {
        self.queue.pending.release();
    }

    /// Events were lost: says so on the asynchronous EVD.
    ///
    /// Context: any, including hard IRQ.
    pub(super) fn overflowed(&self) {
        let event = Event::Async {
            cause: AsyncEvent::EvdOverflow,
            object: self.handle,
            reason: REASON_OVERFLOW,
        };
        // If that is full as well, or is the one that overflowed, there is nobody left to tell.
        let _ = self.domain.async_evd.as_ref().map(|evd| evd.post(&event));
    }
}

/// Room for one event, given back by the drop.
pub(in crate::dat) struct EventReservation(Option<Arc<Evd>>);

impl EventReservation {
    /// Queues the event. Context: any.
    pub(in crate::dat) fn post(mut self, event: &Event) {
        if let Some(evd) = self.0.take() {
            evd.push_reserved(&event.encode(evd.handle));
            evd.pump_again();
        }
    }
}

impl Drop for EventReservation {
    fn drop(&mut self) {
        if let Some(evd) = &self.0 {
            evd.give_back(&mut evd.queue.producer.lock());
            evd.run_pump_and_notify();
        }
    }
}

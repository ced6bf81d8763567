// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Event queue of an Event Dispatcher (EVD): reserves room, and pushes events into the ring.
//!
//! Events whose producer can be refused stay within the queue length. Events that cannot be refused
//! may use the [rest of the ring](crate::model::ring_size). An event that must not be lost gets an
//! [`EventReservation`] before it occurs.

use super::{
    mapped::Mapped,
    resize::Words,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        atomic::{
            AtomicBool,
            AtomicU32, //
        },
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
use kernel::sync::atomic::Atomic;

/// Right to push events into the ring.
type RingProducer = ring::RingProducer<Words>;

/// Fields of [`EventQueue`] for the producers, protected by their lock.
pub(super) struct Producer {
    pub(super) slots: RingProducer,
    /// Number of slots that are reserved. Together with the queued events they fit into the ring.
    pub(super) reserved: u32,
}

/// Number of slots that the asynchronous EVD reserves for IA_CATASTROPHIC when it is created.
pub(super) const FOR_REMOVAL: u32 = 1;

/// Reason of an asynchronous event of an EVD in DAT: overflow.
const REASON_OVERFLOW: u32 = 0;

/// Queued events of an EVD, and the room for more.
#[pin_data]
pub(super) struct EventQueue {
    /// Ring of events. It is [longer](crate::model::ring_size) than the queue length, so that
    /// drained completions and connection events find room after other events have filled the
    /// queue.
    pub(super) ring: Ring,
    /// Right to push events into the ring.
    #[pin]
    pub(super) producer: SpinLockIrq<Producer>,
    /// Queue length: limit on the events that a consumer lets queue up. Written with the consumer's
    /// and the producers' lock held.
    pub(super) qlen: AtomicU32,
    /// Number of pending events, which are not queued yet but have their room reserved. These are
    /// events of drained completions that an Endpoint holds back, and those with an
    /// [`EventReservation`].
    pub(super) pending: PendingEvents,
    /// Events that a process takes without a call, once it has mapped them. They precede those of
    /// the ring.
    pub(super) mapped: Mapped,
    /// Number of [`ReceiveReports`](super::ReceiveReports).
    pub(super) receive_reports: Atomic<i32>,
    /// Completions in the spill may have lost their events: an Endpoint was freed or reset.
    pub(super) has_ended_lives: AtomicBool,
}

impl EventQueue {
    /// Creates an empty queue.
    pub(super) fn new(qlen: u32, ring: Ring, producer: Producer) -> impl PinInit<Self> {
        pin_init!(Self {
            ring,
            producer <- new_spinlock_irq!(producer, "Evd::producer"),
            qlen: AtomicU32::new(qlen),
            pending: PendingEvents::none(),
            mapped: Mapped::new(),
            receive_reports: Atomic::new(0),
            has_ended_lives: AtomicBool::new(false),
        })
    }
}

/// Part of the ring that an event may use.
#[derive(Clone, Copy)]
enum Limit {
    /// Up to the queue length.
    Queue,
    /// Up to the last slot.
    Ring,
}

/// Returns the error of an EVD that has too little room: INSUFFICIENT_RESOURCES (EVD).
pub(in crate::dat) fn no_room() -> DatError {
    DatError::new(Kind::InsufficientResources, Subtype::ResourceTevd)
}

impl Producer {
    /// Creates the producers' side of an empty ring, `reserved` of whose slots have a use.
    pub(super) fn new(slots: RingProducer, reserved: u32) -> Self {
        Self { slots, reserved }
    }

    /// Releases the reservation of a slot.
    fn release_slot(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }
}

impl Evd {
    /// Queues an event within the queue length, and announces it.
    ///
    /// Context: any, including hard IRQ.
    ///
    /// # Errors
    ///
    /// QUEUE_FULL.
    pub(in crate::dat) fn post(&self, event: &Event) -> DatResult {
        self.push(event, Limit::Queue)
    }

    /// As [`Evd::post`], for an event whose producer cannot be refused. The event may use the whole
    /// ring. If that is full, the event is lost and an overflow is reported to the asynchronous
    /// EVD.
    pub(in crate::dat) fn report(&self, event: &Event) {
        if self.push(event, Limit::Ring).is_err() {
            self.overflowed();
        }
    }

    /// Reserves room for one event.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (EVD) if queued and pending events use up the queue length.
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

    /// As [`Evd::report`], for a completion that the caller drains. The waiter is woken, but the
    /// CNO is not triggered.
    pub(in crate::dat) fn report_drained(&self, event: &Event) {
        match self.enqueue(event, Limit::Ring) {
            Ok(queued) => self.wake(queued),
            Err(_) => self.overflowed(),
        }
    }

    /// Delivers the event of a completion directly to the consumer that drains. Returns `false` if
    /// the event is not the oldest one, or no event is wanted.
    pub(in crate::dat) fn put_direct(&self, direct: &mut DirectEvent<'_>, event: &Event) -> bool {
        direct.try_put(&self.queue.ring, self.handle, event)
    }

    /// Queues the event of the removal of the device, which finds its [slot](FOR_REMOVAL) however
    /// many events are queued. Called once, on the asynchronous EVD.
    pub(in crate::dat) fn report_removal(&self, event: &Event) {
        self.push_reserved(&event.encode(self.handle), |_, producer| {
            producer.release_slot();
        });
    }

    /// As [`Evd::report`], within the queue length. The rest of the ring is for connection events.
    pub(in crate::dat) fn report_within_qlen(&self, event: &Event) {
        if self.post(event).is_err() {
            self.overflowed();
        }
    }

    /// As [`Evd::report_drained`], for an event that wakes no waiter.
    pub(in crate::dat) fn report_quietly(&self, event: &Event) {
        if self
            .push_with(event, Limit::Ring, Ring::push_quiet)
            .is_err()
        {
            self.overflowed();
        }
    }

    /// Returns whether there is room for one more event.
    fn fits(&self, producer: &Producer, limit: Limit) -> bool {
        match limit {
            Limit::Queue => self.queued_or_pending() < self.qlen(),
            Limit::Ring => {
                self.queue.ring.len().saturating_add(producer.reserved) < producer.slots.capacity()
            }
        }
    }

    /// Queues an event if there is room, and announces it.
    fn push(&self, event: &Event, limit: Limit) -> DatResult {
        let queued = self.enqueue(event, limit)?;
        self.announce(queued);
        Ok(())
    }

    /// Queues an event if there is room. Returns the number of queued events.
    fn enqueue(&self, event: &Event, limit: Limit) -> DatResult<u32> {
        self.push_with(event, limit, Ring::push)
            .map_err(|ring::RingFull| Kind::QueueFull.into())
    }

    /// Pushes an event into the ring with the function `push`, if there is room. The sink discards
    /// it.
    fn push_with<T: Default>(
        &self,
        event: &Event,
        limit: Limit,
        push: impl FnOnce(&Ring, &mut RingProducer, &Record) -> Result<T, ring::RingFull>,
    ) -> Result<T, ring::RingFull> {
        if self.discards() {
            return Ok(T::default());
        }
        let record = event.encode(self.handle);
        let pushed = {
            let mut producer = self.queue.producer.lock();
            if !self.fits(&producer, limit) {
                return Err(ring::RingFull);
            }
            push(&self.queue.ring, &mut producer.slots, &record)?
        };
        self.retract_empty();
        Ok(pushed)
    }

    /// Queues an event into a reserved slot. `release` ends the reservation.
    fn push_reserved(&self, record: &Record, release: impl FnOnce(&Self, &mut Producer)) {
        let pushed = {
            let mut producer = self.queue.producer.lock();
            let pushed = self.queue.ring.push(&mut producer.slots, record);
            release(self, &mut producer);
            pushed
        };
        // Does not fail: the slot is reserved.
        if let Ok(queued) = pushed {
            self.retract_empty();
            self.announce(queued);
        }
    }

    /// Releases the reservation of a slot, which was used or is not needed any more.
    fn give_back(&self, producer: &mut Producer) {
        producer.release_slot();
        self.release_pending();
    }

    /// Returns whether the queue length is used up. No completion is drained then until the
    /// consumer takes an event.
    pub(in crate::dat) fn is_full(&self) -> bool {
        self.queued() >= self.qlen()
    }

    /// Returns the number of queued and pending events.
    pub(super) fn queued_or_pending(&self) -> u32 {
        self.queue
            .pending
            .total_with(&self.queue.ring)
            .saturating_add(self.handed_over())
    }

    /// Returns the number of events for which there is room within the queue length.
    pub(super) fn room(&self) -> u32 {
        self.room_within(self.qlen())
    }

    /// As [`Evd::room`], for a caller that knows the queue length.
    #[inline]
    pub(super) fn room_within(&self, qlen: u32) -> u32 {
        qlen.saturating_sub(self.queued_or_pending())
    }

    /// Reserves room for one event, until [`Evd::release_pending`].
    pub(in crate::dat) fn reserve_pending(&self) {
        self.queue.pending.reserve();
    }

    /// Releases the room for one event, which was queued or never will be. The caller then [runs
    /// the pump](Evd::queue_pump_and_notify), because completions may have waited for this room.
    pub(in crate::dat) fn release_pending(&self) {
        self.queue.pending.release();
    }

    /// Reports the loss of events to the asynchronous EVD.
    ///
    /// Context: any, including hard IRQ.
    pub(super) fn overflowed(&self) {
        let event = Event::Async {
            cause: AsyncEvent::EvdOverflow,
            object: self.handle,
            reason: REASON_OVERFLOW,
        };
        // The report is lost if the asynchronous EVD is full, or is itself the EVD that overflowed.
        let _ = self.context.async_evd.as_ref().map(|evd| evd.post(&event));
    }
}

/// Reserved room for one event. Released by the drop.
pub(in crate::dat) struct EventReservation(Option<Arc<Evd>>);

impl EventReservation {
    /// Queues the event, and announces it. Context: any.
    pub(in crate::dat) fn post(mut self, event: &Event) {
        if let Some(evd) = self.0.take() {
            evd.push_reserved(&event.encode(evd.handle), Evd::give_back);
            evd.queue_pump_if_needed();
        }
    }
}

impl Drop for EventReservation {
    fn drop(&mut self) {
        if let Some(evd) = &self.0 {
            evd.give_back(&mut evd.queue.producer.lock());
            evd.queue_pump_and_notify();
        }
    }
}

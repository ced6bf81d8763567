// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `dat_evd_resize`: replaces the slots of the ring while events are queued and taken.
//!
//! The completion queues stay as they are, because queue pairs are bound to them.

use super::{
    queue_length,
    Consumer,
    Evd, //
};
use crate::{
    dat::{
        base::IaAttr,
        prelude::*, //
    },
    model::{
        atomic::AtomicU64,
        ring::{
            self,
            resize::{
                BeginError,
                OldSlots,
                Resize, //
            },
        },
        ring_size,
    },
    sys::user::{
        ChargedArray,
        User, //
    },
};
use core::ops::Deref;

/// Largest number of events that a resize copies while it holds the producers' lock. The lock
/// disables interrupts.
const LATE: u32 = 16;

/// Memory of a ring.
#[derive(Clone)]
pub(super) struct Words(Arc<ChargedArray<AtomicU64>>);

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl Words {
    /// Allocates the ring of an EVD with this queue length, for which `user` is charged. Returns it
    /// with its number of slots.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory, or above the user's limit.
    pub(super) fn for_queue(user: &User, qlen: u32) -> DatResult<(Self, u32)> {
        let length = ring_size::slots(qlen).ok_or(DatError::memory())?;
        let count = ring::words_for(length).ok_or(DatError::memory())?;
        let words = ChargedArray::filled(user, count, GFP_KERNEL_ACCOUNT, || AtomicU64::new(0))?;
        Ok((Self(Arc::new(words, GFP_KERNEL_ACCOUNT)?), length))
    }
}

impl Evd {
    /// Changes the queue length to at least `qlen`, and returns it: `dat_evd_resize`. Queued events
    /// stay queued, in their order.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// Nothing changes in these cases:
    ///
    /// * INVALID_PARAMETER (queue length) below 1 or above the adapter's maximum;
    /// * INVALID_STATE if more events are queued or pending than the new queue length allows;
    /// * INVALID_STATE (EVD waiter) if a thread waits for more events than that;
    /// * INSUFFICIENT_RESOURCES (memory) without memory, or above the user's limit.
    pub(crate) fn resize(self: &Arc<Self>, ia: &IaAttr, qlen: i32) -> DatResult<u32> {
        let qlen = queue_length(qlen, ia.max_evd_qlen)?;
        let (storage, length) = Words::for_queue(&self.context.user, qlen)?;
        // Freed after the lock is released, also if the resize fails.
        let _storage = storage.clone();
        let mut consumer = self.consumer.lock();
        if !self.wakeup.threshold.is_met_by(qlen) {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateEvdWaiter,
            ));
        }
        let mut resize = Resize::begin(&self.queue.ring, &consumer.slots, storage, length)
            .map_err(|error| match error {
                BeginError::Storage => DatError::internal(),
                BeginError::Full => too_many(),
            })?;
        let old = loop {
            match self.give_slots(resize, &mut consumer, qlen)? {
                Handover::Done(old) => break old,
                Handover::Late(late) => resize = late,
            }
            resize
                .catch_up(&self.queue.ring, &consumer.slots)
                .map_err(|ring::RingFull| too_many())?;
        };
        drop(consumer);
        drop(old);
        self.was_resized();
        Ok(qlen)
    }

    /// Gives the new slots to the producers and the consumer, unless too many events were queued
    /// since the last copy.
    ///
    /// Arguments are dropped after the lock is released.
    ///
    /// # Errors
    ///
    /// INVALID_STATE if more events are queued or pending than the new queue length.
    fn give_slots(
        &self,
        resize: Resize<Words>,
        consumer: &mut Consumer,
        qlen: u32,
    ) -> DatResult<Handover> {
        let mut producer = self.queue.producer.lock();
        if self.queued_or_pending() > qlen {
            return Err(Kind::InvalidState.into());
        }
        let slots = &mut consumer.slots;
        match resize.finish(&self.queue.ring, &mut producer.slots, slots, LATE) {
            Ok(old) => {
                self.queue.qlen.store_release(qlen);
                Ok(Handover::Done(old))
            }
            Err(resize) => Ok(Handover::Late(resize)),
        }
    }
}

/// Outcome of giving new slots to the producers and the consumer.
enum Handover {
    /// The new slots are in use.
    Done(OldSlots<Words>),
    /// More than [`LATE`] events were queued since the last copy.
    Late(Resize<Words>),
}

/// Returns the error of a queue length that is too short for the queued events.
fn too_many() -> DatError {
    Kind::InvalidState.into()
}

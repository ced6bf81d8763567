// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `dat_evd_resize`: the ring gets other slots while events come and go.
//!
//! The completion queues stay: queue pairs are bound to them.

use super::{
    queue_length,
    Consumer,
    Evd, //
};
use crate::{
    dat::{
        base::Attr,
        prelude::*, //
    },
    model::{
        atomic::AtomicU64,
        ring::{
            self,
            OldSlots, //
            Resize,
        },
        ring_size,
    },
};
use core::ops::Deref;

/// Events that a resize copies with the producers kept out, at most: interrupts are off meanwhile.
const LATE: u32 = 16;

/// The words of a ring.
#[derive(Clone)]
pub(super) struct Words(Arc<KVVec<AtomicU64>>);

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl Words {
    /// For the ring of an EVD with that queue length; returns its length as well.
    pub(super) fn for_queue(qlen: u32) -> DatResult<(Self, u32)> {
        let length = ring_size::slots(qlen).ok_or(DatError::memory())?;
        let count = ring::words_for(length).ok_or(DatError::memory())?;
        let mut words = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;
        for _ in 0..count {
            words
                .push_within_capacity(AtomicU64::new(0))
                .map_err(|_| DatError::memory())?;
        }
        Ok((Self(Arc::new(words, GFP_KERNEL_ACCOUNT)?), length))
    }
}

impl Evd {
    /// `dat_evd_resize`: gives it room for `qlen` events at least, and returns for how many. Events
    /// that lie here stay, in their order. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (argument 2) for a queue length below 1 or above the adapter's maximum,
    /// INVALID_STATE if more lie here, or (EVD waiter) a waiter waits for more, than that. Nothing has
    /// changed then.
    pub(crate) fn resize(self: &Arc<Self>, ia: &Attr, qlen: i32) -> DatResult<u32> {
        let qlen = queue_length(qlen, ia.max_evd_qlen)?;
        let (storage, length) = Words::for_queue(qlen)?;
        let mut consumer = self.consumer.lock();
        if !self.wakeup.threshold.is_met_by(qlen) {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateEvdWaiter,
            ));
        }
        let mut resize = Resize::begin(&self.queue.ring, &consumer.slots, storage, length)
            .ok_or(DatError::internal())?
            .map_err(too_many)?;
        let old = loop {
            match self.give_slots(resize, &mut consumer, qlen)? {
                Ok(old) => break old,
                Err(behind) => resize = behind,
            }
            resize
                .catch_up(&self.queue.ring, &consumer.slots)
                .map_err(too_many)?;
        };
        drop(consumer);
        drop(old);
        self.was_resized();
        Ok(qlen)
    }

    /// Gives both sides the new slots; the move comes back if too many events came since it copied the
    /// last one. What is dropped here is dropped after the lock.
    ///
    /// # Errors
    ///
    /// INVALID_STATE if more events lie here than the new queue length.
    fn give_slots(
        &self,
        resize: Resize<Words>,
        consumer: &mut Consumer,
        qlen: u32,
    ) -> DatResult<Result<OldSlots<Words>, Resize<Words>>> {
        let mut producer = self.queue.producer.lock();
        if self.queued_or_pending() > qlen {
            return Err(Kind::InvalidState.into());
        }
        let slots = &mut consumer.slots;
        let moved = resize.finish(&self.queue.ring, &mut producer.slots, slots, LATE);
        if moved.is_ok() {
            self.queue.qlen.store_release(qlen);
        }
        Ok(moved)
    }
}

/// More events lie here than are to find room.
fn too_many(_: ring::RingFull) -> DatError {
    Kind::InvalidState.into()
}

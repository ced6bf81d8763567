// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Resize of an event ring: its slots are replaced while producers push.
//!
//! 1. [`Resize::begin`] copies the queued records while producers continue to push.
//! 2. [`Resize::finish`] copies the records that were pushed since, with the producers' lock held,
//!    and replaces the slots. Interrupts are disabled for that, so it copies a limited number.
//! 3. If there are more, the caller releases the producers' lock, copies them with
//!    [`Resize::catch_up`], and tries again. No record is popped during the resize, so producers
//!    soon find the ring full, and the loop ends.
//!
//! The indices do not change.

use super::{
    super::atomic::AtomicU64,
    RecordStorage,
    Ring,
    RingConsumer,
    RingFull,
    RingProducer, //
};
use core::{
    mem,
    ops::Deref, //
};

/// New slots for a ring, into which the queued records are being copied.
pub(crate) struct Resize<S> {
    new: RecordStorage<S>,
    /// Records before this index are copied.
    copied: u32,
}

/// Reason why a resize did not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BeginError {
    /// There is no such ring, or the storage has fewer words than [`words_for`] returns.
    ///
    /// [`words_for`]: super::words_for
    Storage,
    /// More records are queued than the new slots can hold.
    Full,
}

impl From<RingFull> for BeginError {
    fn from(_: RingFull) -> Self {
        Self::Full
    }
}

/// The former slots of a ring, for the caller to free.
pub(crate) struct OldSlots<S> {
    _of_producer: RingProducer<S>,
    _of_consumer: RingConsumer<S>,
}

impl<S: Deref<Target = [AtomicU64]> + Clone> Resize<S> {
    /// Starts a resize, and copies the queued records. No record may be popped until the end of the
    /// resize: the caller keeps the consumers' lock. Producers may push.
    ///
    /// # Errors
    ///
    /// [`BeginError`].
    pub(crate) fn begin(
        ring: &Ring,
        consumer: &RingConsumer<S>,
        storage: S,
        qlen: u32,
    ) -> Result<Self, BeginError> {
        let mut this = Self {
            new: RecordStorage::new(storage, qlen).ok_or(BeginError::Storage)?,
            copied: ring.head.load(),
        };
        this.catch_up(ring, consumer)?;
        Ok(this)
    }

    /// Copies the records that were pushed since the last copy. Producers may push.
    ///
    /// # Errors
    ///
    /// [`RingFull`]: more records are queued than the new slots can hold.
    pub(crate) fn catch_up(
        &mut self,
        ring: &Ring,
        consumer: &RingConsumer<S>,
    ) -> Result<(), RingFull> {
        let (head, tail) = (ring.head.load(), ring.tail.load_acquire());
        if tail.wrapping_sub(head) > self.new.capacity() {
            return Err(RingFull);
        }
        self.new.copy_from(&consumer.0, self.copied, tail);
        self.copied = tail;
        Ok(())
    }

    /// Copies the last records, `late` at most, and replaces the slots. The caller holds both
    /// locks.
    ///
    /// Returns the old slots, so that the caller can free them after it has released the producers'
    /// lock.
    ///
    /// # Errors
    ///
    /// Returns the resize if more than `late` records were pushed since the last copy, or if the
    /// new slots cannot hold all records. Nothing has changed. The caller releases the producers'
    /// lock, [catches up](Resize::catch_up) and tries again.
    pub(crate) fn finish(
        self,
        ring: &Ring,
        producer: &mut RingProducer<S>,
        consumer: &mut RingConsumer<S>,
        late: u32,
    ) -> Result<OldSlots<S>, Self> {
        let (head, tail) = (ring.head.load(), ring.tail.load());
        let is_full = tail.wrapping_sub(head) > self.new.capacity();
        if is_full || tail.wrapping_sub(self.copied) > late {
            return Err(self);
        }
        let Self { new, copied } = self;
        new.copy_from(&producer.0, copied, tail);
        Ok(OldSlots {
            _of_producer: mem::replace(producer, RingProducer(new.clone())),
            _of_consumer: mem::replace(consumer, RingConsumer(new)),
        })
    }
}

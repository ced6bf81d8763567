// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The event ring of an EVD.
//!
//! ```text
//!        head (consumer)            tail (producer)
//!          v                          v
//!   ... | read | oldest |  ...  | newest | free | ...      index & mask = slot
//! ```
//!
//! The indices run freely and wrap at 2^32; their difference is the number of queued events, so
//! that a ring can be full to the last slot. One consumer goes without a lock against the
//! producers, who have to be one at a time: whoever pushes shows the ring's [`ProducerKey`], which
//! lies in what the producers' lock protects.
//!
//! A record is plain words. What orders them are the indices: the producer writes a record and then
//! releases the tail, the consumer acquires the tail and then reads; the consumer reads and then
//! releases the head, the producer acquires the head and then overwrites.

use super::{
    atomic::{
        AtomicU32,
        AtomicU64, //
    },
    event::Record,
};
use core::{
    array,
    ops::Deref, //
};

/// Words of a record.
const RECORD_WORDS: usize = size_of::<Record>() / size_of::<u64>();

/// The longest ring: half of what the indices count to is plenty.
const MAX_CAPACITY: u32 = 1 << 31;

/// The right to push into a ring: one for each ring, kept under the producers' lock.
#[derive(Debug)]
pub(crate) struct ProducerKey(());

impl ProducerKey {
    /// Makes the key of a ring.
    pub(crate) const fn new() -> Self {
        Self(())
    }
}

/// The ring has no free slot; the event was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A bounded queue of event records over caller-provided words.
pub(crate) struct Ring<S> {
    /// Index of the oldest queued record; the consumer's.
    head: AtomicU32,
    /// Index behind the newest queued record; the producer's.
    tail: AtomicU32,
    /// Capacity minus one.
    mask: u32,
    storage: S,
}

/// The capacity of a ring that was asked to hold `qlen` records: the next power of two.
const fn capacity_for(qlen: u32) -> Option<u32> {
    match qlen {
        1..=MAX_CAPACITY => qlen.checked_next_power_of_two(),
        _ => None,
    }
}

/// The words that a ring needs as storage to hold at least `qlen` records.
///
/// `None` if there is no such ring: `qlen` is 0 or above 2^31.
pub(crate) fn words_for(qlen: u32) -> Option<usize> {
    usize::try_from(capacity_for(qlen)?)
        .ok()?
        .checked_mul(RECORD_WORDS)
}

impl<S: Deref<Target = [AtomicU64]>> Ring<S> {
    /// Makes an empty ring that holds at least `qlen` records.
    ///
    /// `None` if there is no such ring, or `storage` has fewer words than [`words_for`] says.
    pub(crate) fn new(storage: S, qlen: u32) -> Option<Self> {
        Self::starting_at(storage, qlen, 0)
    }

    /// [`Ring::new`], with the indices somewhere on their way.
    pub(crate) fn starting_at(storage: S, qlen: u32, index: u32) -> Option<Self> {
        if storage.len() < words_for(qlen)? {
            return None;
        }
        Some(Self {
            head: AtomicU32::new(index),
            tail: AtomicU32::new(index),
            mask: capacity_for(qlen)?.checked_sub(1)?,
            storage,
        })
    }

    /// How many records the ring can hold.
    pub(crate) fn capacity(&self) -> u32 {
        self.mask.wrapping_add(1)
    }

    /// How many records are queued.
    ///
    /// The consumer gets a number that only grows until it pops; to others it is a snapshot.
    pub(crate) fn len(&self) -> u32 {
        // The head first: it can only fall behind the tail, so the difference is never negative.
        let head = self.head.load_acquire();
        let tail = self.tail.load_acquire();
        tail.wrapping_sub(head).min(self.capacity())
    }

    /// The slot of an index.
    fn slot(&self, index: u32) -> Option<&[AtomicU64]> {
        let slot = usize::try_from(index & self.mask).ok()?;
        self.storage.chunks_exact(RECORD_WORDS).nth(slot)
    }

    /// Queues a record, and says how many are queued now.
    ///
    /// # Errors
    ///
    /// [`Full`]: there is no free slot.
    pub(crate) fn push(&self, _: &mut ProducerKey, record: &Record) -> Result<u32, Full> {
        let tail = self.tail.load();
        let queued = tail.wrapping_sub(self.head.load_acquire());
        if queued >= self.capacity() {
            return Err(Full);
        }
        for (cell, word) in self.slot(tail).ok_or(Full)?.iter().zip(record) {
            cell.store(*word);
        }
        self.tail.store_release(tail.wrapping_add(1));
        Ok(queued.wrapping_add(1))
    }

    /// Takes the oldest record.
    ///
    /// There is one consumer at a time: the caller serialises those who pop.
    pub(crate) fn pop(&self) -> Option<Record> {
        let head = self.head.load();
        if self.tail.load_acquire() == head {
            return None;
        }
        let mut cells = self.slot(head)?.iter();
        let record = array::from_fn(|_| cells.next().map_or(0, AtomicU64::load));
        self.head.store_release(head.wrapping_add(1));
        Some(record)
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Event ring of an Event Dispatcher (EVD).
//!
//! ```text
//!        head (consumer)            tail (producer)
//!          v                          v
//!   ... | read | oldest |  ...  | newest | free | ...      index & mask = slot
//! ```
//!
//! The indices count up and wrap at 2^32. Their difference is the number of queued events, so a
//! full ring uses every slot. One consumer and one producer may work at the same time without a
//! common lock. Several producers, or several consumers, exclude each other: pushing requires the
//! ring's [`RingProducer`], which the producers' lock protects, and popping its [`RingConsumer`],
//! which the consumers' lock protects.
//!
//! Both hold a reference to the slots. A caller that holds both locks can replace the slots: see
//! [`resize`].
//!
//! A record is stored in plain words. The indices order the accesses to them. The producer writes a
//! record and then releases the tail; the consumer acquires the tail and then reads the record. The
//! consumer reads a record and then releases the head; the producer acquires the head and then
//! overwrites the record.
//!
//! A record may be *quiet*: it is queued, but wakes no waiter. The producer keeps the index after
//! the newest record that is not quiet (`last_waking`), so that a ring with quiet records only can
//! be recognized.

pub(crate) mod resize;

use super::{
    atomic::{
        AtomicU32,
        AtomicU64, //
    },
    event::Record,
};
use core::{
    array,
    ops::{
        Deref,
        Range, //
    },
};

/// Number of words of a record.
pub(super) const RECORD_WORDS: usize = size_of::<Record>() / size_of::<u64>();

/// Largest capacity. Half of the range of the indices, so that their order is well defined.
const MAX_CAPACITY: u32 = 1 << 31;

/// Error: the ring has no free slot, and the event was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingFull;

/// Returns the capacity of a ring for at least `qlen` records: the next power of two.
const fn capacity_for(qlen: u32) -> Option<u32> {
    match qlen {
        1..=MAX_CAPACITY => qlen.checked_next_power_of_two(),
        _ => None,
    }
}

/// Returns the number of words of storage that a ring for at least `qlen` records needs.
///
/// `None` if there is no such ring: `qlen` is 0 or above 2^31.
pub(crate) fn words_for(qlen: u32) -> Option<usize> {
    usize::try_from(capacity_for(qlen)?)
        .ok()?
        .checked_mul(RECORD_WORDS)
}

/// Storage of the records, which the producer and the consumer share.
#[derive(Clone)]
struct RecordStorage<S> {
    /// Capacity minus one.
    mask: u32,
    storage: S,
}

impl<S: Deref<Target = [AtomicU64]>> RecordStorage<S> {
    /// Creates the slots over `storage`. `None` if there is no such ring, or if `storage` has fewer
    /// words than [`words_for`] returns.
    fn new(storage: S, qlen: u32) -> Option<Self> {
        if storage.len() < words_for(qlen)? {
            return None;
        }
        Some(Self {
            mask: capacity_for(qlen)?.checked_sub(1)?,
            storage,
        })
    }

    fn capacity(&self) -> u32 {
        self.mask.wrapping_add(1)
    }

    /// Returns the slot of an index.
    fn slot(&self, index: u32) -> Option<&[AtomicU64]> {
        let slot = usize::try_from(index & self.mask).ok()?;
        self.storage.chunks_exact(RECORD_WORDS).nth(slot)
    }

    /// Reads the record with this index.
    fn read(&self, index: u32) -> Option<Record> {
        let mut cells = self.slot(index)?.iter();
        Some(array::from_fn(|_| cells.next().map_or(0, AtomicU64::load)))
    }

    /// Writes the record with this index.
    fn write(&self, index: u32, record: &Record) -> Option<()> {
        for (cell, word) in self.slot(index)?.iter().zip(record) {
            cell.store(*word);
        }
        Some(())
    }

    /// Copies the records with the indices `from` (included) to `to` (excluded).
    fn copy_from(&self, other: &Self, from: u32, to: u32) {
        let mut index = from;
        while index != to {
            let _ = other
                .read(index)
                .and_then(|record| self.write(index, &record));
            index = index.wrapping_add(1);
        }
    }
}

/// Permission to push into a ring. Each ring has one, which the producers' lock protects.
pub(crate) struct RingProducer<S>(RecordStorage<S>);

impl<S: Deref<Target = [AtomicU64]>> RingProducer<S> {
    /// Returns the number of records that the ring can hold.
    pub(crate) fn capacity(&self) -> u32 {
        self.0.capacity()
    }
}

/// Permission to pop from a ring. Each ring has one, which the consumers' lock protects.
pub(crate) struct RingConsumer<S>(RecordStorage<S>);

/// A bounded queue of event records.
pub(crate) struct Ring {
    /// Index of the oldest queued record. The consumer advances it.
    head: AtomicU32,
    /// Index after the newest queued record. The producer advances it.
    tail: AtomicU32,
    /// Index after the newest record that is not quiet, or some index up to the head if there is
    /// none. The producer advances it.
    last_waking: AtomicU32,
}

impl Ring {
    /// Creates an empty ring for at least `qlen` records.
    ///
    /// `None` if there is no such ring, or if `storage` has fewer words than [`words_for`] returns.
    pub(crate) fn new<S>(storage: S, qlen: u32) -> Option<(Self, RingProducer<S>, RingConsumer<S>)>
    where
        S: Deref<Target = [AtomicU64]> + Clone,
    {
        Self::with_start_index(storage, qlen, 0)
    }

    /// As [`Ring::new`], with the indices starting at `index`.
    pub(crate) fn with_start_index<S>(
        storage: S,
        qlen: u32,
        index: u32,
    ) -> Option<(Self, RingProducer<S>, RingConsumer<S>)>
    where
        S: Deref<Target = [AtomicU64]> + Clone,
    {
        let slots = RecordStorage::new(storage, qlen)?;
        let ring = Self {
            head: AtomicU32::new(index),
            tail: AtomicU32::new(index),
            last_waking: AtomicU32::new(index),
        };
        Some((ring, RingProducer(slots.clone()), RingConsumer(slots)))
    }

    /// Returns the number of queued records.
    ///
    /// For the consumer, the number only grows until it pops. For other threads it is a snapshot,
    /// which may include records that are popped during the call.
    pub(crate) fn len(&self) -> u32 {
        // The head first: it never passes the tail, so the difference is never negative.
        let head = self.head.load_acquire();
        self.tail.load_acquire().wrapping_sub(head)
    }

    /// Returns whether the ring is empty. For the consumer, which owns the head.
    pub(crate) fn is_empty_to_consumer(&self) -> bool {
        self.tail.load_acquire() == self.head.load()
    }

    /// Returns whether a record is queued that is not quiet. The result is as exact as
    /// [`Ring::len`].
    pub(crate) fn has_waking(&self) -> bool {
        let head = self.head.load_acquire();
        is_after(self.last_waking.load_acquire(), head)
    }

    /// Returns an identifier of the newest record that is not quiet. It differs between such
    /// records until the indices wrap.
    pub(crate) fn last_waking_index(&self) -> u32 {
        self.last_waking.load_acquire()
    }

    /// Queues a record, and returns the number of queued records.
    ///
    /// # Errors
    ///
    /// [`RingFull`]: the ring has no free slot.
    pub(crate) fn push<S>(
        &self,
        producer: &mut RingProducer<S>,
        record: &Record,
    ) -> Result<u32, RingFull>
    where
        S: Deref<Target = [AtomicU64]>,
    {
        let (head, tail) = self.write(producer, record)?;
        let next = tail.wrapping_add(1);
        // Before the tail, so that a consumer that sees the record also sees that it is not quiet.
        self.last_waking.store_release(next);
        self.tail.store_release(next);
        Ok(next.wrapping_sub(head))
    }

    /// Queues a quiet record.
    ///
    /// # Errors
    ///
    /// [`RingFull`]: the ring has no free slot.
    pub(crate) fn push_quiet<S>(
        &self,
        producer: &mut RingProducer<S>,
        record: &Record,
    ) -> Result<(), RingFull>
    where
        S: Deref<Target = [AtomicU64]>,
    {
        let (head, tail) = self.write(producer, record)?;
        // All records that are not quiet were popped. Advance `last_waking` to the head: if the
        // head were 2^31 ahead of it, `last_waking` would compare as after the head.
        if !is_after(self.last_waking.load(), head) {
            self.last_waking.store_release(head);
        }
        self.tail.store_release(tail.wrapping_add(1));
        Ok(())
    }

    /// Writes a record into the next slot. Returns the head and the tail.
    fn write<S>(
        &self,
        producer: &mut RingProducer<S>,
        record: &Record,
    ) -> Result<(u32, u32), RingFull>
    where
        S: Deref<Target = [AtomicU64]>,
    {
        let RingProducer(slots) = producer;
        let (tail, head) = (self.tail.load(), self.head.load_acquire());
        if tail.wrapping_sub(head) >= slots.capacity() {
            return Err(RingFull);
        }
        slots.write(tail, record).ok_or(RingFull)?;
        Ok((head, tail))
    }

    /// Removes and returns the oldest record.
    pub(crate) fn pop<S>(&self, consumer: &mut RingConsumer<S>) -> Option<Record>
    where
        S: Deref<Target = [AtomicU64]>,
    {
        let head = self.head.load();
        if self.tail.load_acquire() == head {
            return None;
        }
        let record = consumer.0.read(head)?;
        self.head.store_release(head.wrapping_add(1));
        Some(record)
    }

    /// Copies the oldest records to `records`, as many as fit, and takes none. Returns the index of
    /// the oldest one, and their number.
    pub(crate) fn peek<S>(&self, consumer: &RingConsumer<S>, records: &mut [Record]) -> (u32, usize)
    where
        S: Deref<Target = [AtomicU64]>,
    {
        let head = self.head.load();
        let most = u32::try_from(records.len()).unwrap_or(u32::MAX);
        let mut room = records.iter_mut();
        let mut count = 0_usize;
        self.for_each_in(consumer, 0..most, |record| {
            if let Some(slot) = room.next() {
                *slot = *record;
                count = count.saturating_add(1);
            }
        });
        (head, count)
    }

    /// Takes the oldest `count` records, if the oldest one still has this index. Returns whether
    /// they were taken. A [peek](Ring::peek) has found as many.
    ///
    /// The indices wrap. Between the peek and this call, less than 2^32 records are taken.
    pub(crate) fn take_from<S>(
        &self,
        _consumer: &mut RingConsumer<S>,
        index: u32,
        count: u32,
    ) -> bool {
        let head = self.head.load();
        let is_oldest = head == index && count <= self.tail.load_acquire().wrapping_sub(head);
        if is_oldest {
            self.head.store_release(head.wrapping_add(count));
        }
        is_oldest
    }

    /// Calls `visit` for the queued records in this range, counted from the oldest one. None is
    /// taken.
    pub(crate) fn for_each_in<S>(
        &self,
        consumer: &RingConsumer<S>,
        range: Range<u32>,
        mut visit: impl FnMut(&Record),
    ) where
        S: Deref<Target = [AtomicU64]>,
    {
        let (head, tail) = (self.head.load(), self.tail.load_acquire());
        for offset in range.start..range.end.min(tail.wrapping_sub(head)) {
            if let Some(record) = consumer.0.read(head.wrapping_add(offset)) {
                visit(&record);
            }
        }
    }
}

/// Returns whether `index` comes after `other`. The indices wrap; two that are compared are never
/// more than 2^31 apart.
const fn is_after(index: u32, other: u32) -> bool {
    index != other && index.wrapping_sub(other) <= MAX_CAPACITY
}

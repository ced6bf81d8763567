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
//! producers, who have to be one at a time: whoever pushes has the ring's [`Producer`], which lies in
//! what the producers' lock protects, and whoever pops its [`Consumer`].
//!
//! Both know where the slots are. Whoever has both gives the ring others: a [`Move`] copies what is
//! queued while the producers still push, and then, with them kept out, the little that came in the
//! meantime. Interrupts are off for that. So if more has come it is copied with the producers let in
//! again. Nothing is popped during a move, so they soon find the ring full: it has an end. The indices
//! stay, so that the two sides need not be told of anything else.
//!
//! A record is plain words. What orders them are the indices: the producer writes a record and then
//! releases the tail, the consumer acquires the tail and then reads; the consumer reads and then
//! releases the head, the producer acquires the head and then overwrites.
//!
//! A record may be *quiet*: it is there for who looks, and nobody is woken for it. So that one can tell
//! a ring of such from one with a record that somebody is to be told of, the producer keeps the index
//! behind the newest of the latter.

use super::{
    atomic::{
        AtomicU32,
        AtomicU64, //
    },
    event::Record,
};
use core::{
    array,
    mem,
    ops::Deref, //
};

/// Words of a record.
const RECORD_WORDS: usize = size_of::<Record>() / size_of::<u64>();

/// The longest ring: half of what the indices count to is plenty.
const MAX_CAPACITY: u32 = 1 << 31;

/// The ring has no free slot; the event was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

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

/// Where the records lie: caller-provided words, shared by both sides.
#[derive(Clone)]
struct Slots<S> {
    /// Capacity minus one.
    mask: u32,
    storage: S,
}

impl<S: Deref<Target = [AtomicU64]>> Slots<S> {
    /// `None` if there is no such ring, or `storage` has fewer words than [`words_for`] says.
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

    /// The slot of an index.
    fn slot(&self, index: u32) -> Option<&[AtomicU64]> {
        let slot = usize::try_from(index & self.mask).ok()?;
        self.storage.chunks_exact(RECORD_WORDS).nth(slot)
    }

    fn read(&self, index: u32) -> Option<Record> {
        let mut cells = self.slot(index)?.iter();
        Some(array::from_fn(|_| cells.next().map_or(0, AtomicU64::load)))
    }

    fn write(&self, index: u32, record: &Record) -> Option<()> {
        for (cell, word) in self.slot(index)?.iter().zip(record) {
            cell.store(*word);
        }
        Some(())
    }

    /// Copies the records from one index up to another.
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

/// The right to push into a ring: one for each ring, kept under the producers' lock.
pub(crate) struct Producer<S>(Slots<S>);

impl<S: Deref<Target = [AtomicU64]>> Producer<S> {
    /// How many records the ring can hold.
    pub(crate) fn capacity(&self) -> u32 {
        self.0.capacity()
    }
}

/// The right to pop from a ring: one for each ring, kept under the consumers' lock.
pub(crate) struct Consumer<S>(Slots<S>);

/// A bounded queue of event records.
pub(crate) struct Ring {
    /// Index of the oldest queued record; the consumer's.
    head: AtomicU32,
    /// Index behind the newest queued record; the producer's.
    tail: AtomicU32,
    /// Index behind the newest record that is not quiet, or anything before the head; the producer's.
    loud: AtomicU32,
}

impl Ring {
    /// Makes an empty ring that holds at least `qlen` records.
    ///
    /// `None` if there is no such ring, or `storage` has fewer words than [`words_for`] says.
    pub(crate) fn new<S>(storage: S, qlen: u32) -> Option<(Self, Producer<S>, Consumer<S>)>
    where
        S: Deref<Target = [AtomicU64]> + Clone,
    {
        Self::starting_at(storage, qlen, 0)
    }

    /// [`Ring::new`], with the indices somewhere on their way.
    pub(crate) fn starting_at<S>(
        storage: S,
        qlen: u32,
        index: u32,
    ) -> Option<(Self, Producer<S>, Consumer<S>)>
    where
        S: Deref<Target = [AtomicU64]> + Clone,
    {
        let slots = Slots::new(storage, qlen)?;
        let ring = Self {
            head: AtomicU32::new(index),
            tail: AtomicU32::new(index),
            loud: AtomicU32::new(index),
        };
        Some((ring, Producer(slots.clone()), Consumer(slots)))
    }

    /// How many records are queued.
    ///
    /// The consumer gets a number that only grows until it pops. To others it is a snapshot, which may
    /// count what was popped while they looked.
    pub(crate) fn len(&self) -> u32 {
        // The head first: it can only fall behind the tail, so the difference is never negative.
        let head = self.head.load_acquire();
        self.tail.load_acquire().wrapping_sub(head)
    }

    /// Whether nothing is queued, as the consumer sees it: the head is its own.
    pub(crate) fn has_none(&self) -> bool {
        self.tail.load_acquire() == self.head.load()
    }

    /// Whether a record is queued that is not quiet. As exact as [`Ring::len`].
    pub(crate) fn has_loud(&self) -> bool {
        let head = self.head.load_acquire();
        is_behind(self.loud.load_acquire(), head)
    }

    /// Which was the newest that is not quiet: another number for each, for a long time.
    pub(crate) fn newest_loud(&self) -> u32 {
        self.loud.load_acquire()
    }

    /// Queues a record, and says how many are queued now.
    ///
    /// # Errors
    ///
    /// [`Full`]: there is no free slot.
    pub(crate) fn push<S>(&self, producer: &mut Producer<S>, record: &Record) -> Result<u32, Full>
    where
        S: Deref<Target = [AtomicU64]>,
    {
        let (head, tail) = self.write(producer, record)?;
        let behind = tail.wrapping_add(1);
        // Before the tail: who sees the record sees that it is not quiet.
        self.loud.store_release(behind);
        self.tail.store_release(behind);
        Ok(behind.wrapping_sub(head))
    }

    /// Queues a quiet record.
    ///
    /// # Errors
    ///
    /// [`Full`]: there is no free slot.
    pub(crate) fn push_quiet<S>(
        &self,
        producer: &mut Producer<S>,
        record: &Record,
    ) -> Result<(), Full>
    where
        S: Deref<Target = [AtomicU64]>,
    {
        let (head, tail) = self.write(producer, record)?;
        // What is not quiet was taken long ago: it does not fall behind so far that it seems to be
        // ahead.
        if !is_behind(self.loud.load(), head) {
            self.loud.store_release(head);
        }
        self.tail.store_release(tail.wrapping_add(1));
        Ok(())
    }

    /// Writes a record into the next slot. Returns head and tail.
    fn write<S>(&self, producer: &mut Producer<S>, record: &Record) -> Result<(u32, u32), Full>
    where
        S: Deref<Target = [AtomicU64]>,
    {
        let Producer(slots) = producer;
        let (tail, head) = (self.tail.load(), self.head.load_acquire());
        if tail.wrapping_sub(head) >= slots.capacity() {
            return Err(Full);
        }
        slots.write(tail, record).ok_or(Full)?;
        Ok((head, tail))
    }

    /// Takes the oldest record.
    pub(crate) fn pop<S>(&self, consumer: &mut Consumer<S>) -> Option<Record>
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
}

/// Whether an index lies behind another, as they go round: there are never 2^31 between them.
const fn is_behind(index: u32, other: u32) -> bool {
    index != other && index.wrapping_sub(other) <= MAX_CAPACITY
}

/// New slots for a ring, on the way there.
pub(crate) struct Move<S> {
    new: Slots<S>,
    /// What is queued before this index is copied.
    copied: u32,
}

/// Slots that a ring no longer has.
pub(crate) struct Old<S> {
    _of_producer: Producer<S>,
    _of_consumer: Consumer<S>,
}

impl<S: Deref<Target = [AtomicU64]> + Clone> Move<S> {
    /// Copies what is queued. Nothing is popped until the end of the move: the caller keeps what it
    /// shows. The producers may go on.
    ///
    /// `None` if there is no such ring, or `storage` has fewer words than [`words_for`] says.
    ///
    /// # Errors
    ///
    /// [`Full`]: more is queued than the new slots hold.
    pub(crate) fn begin(
        ring: &Ring,
        consumer: &Consumer<S>,
        storage: S,
        qlen: u32,
    ) -> Option<Result<Self, Full>> {
        let mut this = Self {
            new: Slots::new(storage, qlen)?,
            copied: ring.head.load(),
        };
        Some(this.catch_up(ring, consumer).map(|()| this))
    }

    /// Copies what came since. The producers may go on.
    ///
    /// # Errors
    ///
    /// [`Full`]: more is queued than the new slots hold.
    pub(crate) fn catch_up(&mut self, ring: &Ring, consumer: &Consumer<S>) -> Result<(), Full> {
        let (head, tail) = (ring.head.load(), ring.tail.load_acquire());
        if tail.wrapping_sub(head) > self.new.capacity() {
            return Err(Full);
        }
        self.new.copy_from(&consumer.0, self.copied, tail);
        self.copied = tail;
        Ok(())
    }

    /// Copies the last `late` records at most, and gives the new slots to both sides. The old ones come
    /// back, so that they need not be freed under the producers' lock.
    ///
    /// # Errors
    ///
    /// More came, and nothing has changed: the caller lets the producers in, [catches up](Move::catch_up)
    /// and tries again.
    pub(crate) fn finish(
        self,
        ring: &Ring,
        producer: &mut Producer<S>,
        consumer: &mut Consumer<S>,
        late: u32,
    ) -> Result<Old<S>, Self> {
        let (head, tail) = (ring.head.load(), ring.tail.load());
        let is_full = tail.wrapping_sub(head) > self.new.capacity();
        if is_full || tail.wrapping_sub(self.copied) > late {
            return Err(self);
        }
        let Self { new, copied } = self;
        new.copy_from(&producer.0, copied, tail);
        Ok(Old {
            _of_producer: mem::replace(producer, Producer(new.clone())),
            _of_consumer: mem::replace(consumer, Consumer(new)),
        })
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ring of events that a process maps, and takes without a system call.
//!
//! ```text
//!            head (a page that the process writes)     tail (a page that it only reads)
//!              v                                         v
//!   ... | taken | oldest |        ...         | newest | free | ...    index & mask = slot
//! ```
//!
//! The kernel hands events of an Event Dispatcher (EVD) over to this ring, oldest first. So they
//! precede the events that are left in the EVD's own [ring](super::ring). Each taker copies the
//! record at the head, and then advances the head with a compare-and-exchange. If that fails,
//! another taker has got the record. The takers are threads of the process, and the kernel for a
//! call. One thread of the kernel at a time hands over or takes: it holds the EVD's consumer lock.
//!
//! The process may write anything to the head. So the kernel keeps the tail, and looks at the head
//! anew each time. A head that is not within one ring's length before the tail is invalid: the ring
//! then has neither events nor room. The process has lost these events, and nothing else.
//!
//! A process that finds the ring empty makes a call, since events may be left in the EVD's own ring
//! or in a completion queue. The kernel spares it that call with a [claim](MappedRing::claim_empty)
//! that there are none. A producer [retracts](MappedRing::retract_empty) the claim after it has
//! queued an event.

use super::{
    atomic::{
        AtomicU32,
        AtomicU64, //
    },
    event::Record,
    ring::RECORD_WORDS, //
};
use core::array;

/// Value of [`SharedWords::empty`]: the kernel may have events outside of the ring.
const NOT_EMPTY: u32 = 0;
/// Value of [`SharedWords::empty`]: the kernel claims that it has none (`KDAPL_MAPPED_EMPTY`).
pub(crate) const EMPTY: u32 = 1;
/// Value of [`SharedWords::empty`]: the kernel is checking. A process treats it as [`NOT_EMPTY`].
const CHECKING: u32 = 2;

/// Words that the kernel and a process share.
pub(crate) struct SharedWords<'a> {
    /// Index of the oldest record. The takers advance it.
    pub(crate) head: &'a AtomicU32,
    /// Index after the newest record, for the process.
    pub(crate) tail: &'a AtomicU32,
    /// Not 0 while the process has to take events by calls, and to call after it has taken one.
    pub(crate) calls_only: &'a AtomicU32,
    /// [`EMPTY`] while the kernel claims that it has no further events.
    pub(crate) empty: &'a AtomicU32,
    /// The records. The process cannot write them.
    pub(crate) records: &'a [AtomicU64],
}

/// Memory that the kernel and a process share.
pub(crate) trait SharedMemory {
    /// Returns the shared words: always the same.
    fn words(&self) -> SharedWords<'_>;
}

/// Error: the ring has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// A bounded queue of event records, whose consumer is not trusted.
pub(crate) struct MappedRing<M> {
    memory: M,
    /// Number of slots: a power of two.
    slots: u32,
    /// Index after the newest record.
    tail: AtomicU32,
}

impl<M: SharedMemory> MappedRing<M> {
    /// Creates an empty ring of at most `most` slots. `memory` is zeroed. `None` if the memory has
    /// no room for a record, or `most` is 0.
    pub(crate) fn new(memory: M, most: u32) -> Option<Self> {
        let room = memory.words().records.len() / RECORD_WORDS;
        let slots = u32::try_from(room).unwrap_or(u32::MAX).min(most);
        Some(Self {
            memory,
            slots: 1_u32.checked_shl(slots.checked_ilog2()?)?,
            tail: AtomicU32::new(0),
        })
    }

    /// Returns the memory.
    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// Returns the number of slots.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the number of records; `None` if the head is invalid.
    fn checked_len(&self) -> Option<u32> {
        let head = self.memory.words().head.load_acquire();
        let len = self.tail.load_acquire().wrapping_sub(head);
        (len <= self.slots).then_some(len)
    }

    /// Returns the number of records. It is 0 if the head is invalid.
    ///
    /// Context: any. The takers may change it at any time.
    pub(crate) fn len(&self) -> u32 {
        self.checked_len().unwrap_or(0)
    }

    /// Returns whether there is room for a record. The process may end that at any time, by an
    /// invalid head.
    pub(crate) fn has_room(&self) -> bool {
        self.checked_len().is_some_and(|len| len < self.slots)
    }

    /// Hands a record over. The caller holds the EVD's consumer lock.
    ///
    /// # Errors
    ///
    /// [`NoRoom`] if the ring is full, or its head invalid.
    pub(crate) fn push(&self, record: &Record) -> Result<(), NoRoom> {
        if !self.has_room() {
            return Err(NoRoom);
        }
        let (words, tail) = (self.memory.words(), self.tail.load());
        let slot = self.slot(&words, tail).ok_or(NoRoom)?;
        for (cell, word) in slot.iter().zip(record) {
            cell.store(*word);
        }
        let next = tail.wrapping_add(1);
        self.tail.store_release(next);
        words.tail.store_release(next);
        Ok(())
    }

    /// Moves records from a queue until there is no room, or no record: one for each slot at most,
    /// even if a process takes the records meanwhile and other threads add more. The caller holds
    /// the EVD's consumer lock.
    ///
    /// A record is removed from the queue after it was pushed, so it is never in neither of the
    /// two. It stays in the queue if the process makes the head invalid meanwhile.
    pub(crate) fn fill<Q>(
        &self,
        queue: &mut Q,
        oldest: impl Fn(&Q) -> Option<Record>,
        remove: impl Fn(&mut Q),
    ) {
        for _ in 0..self.slots {
            if !self.has_room() {
                break;
            }
            match oldest(queue).map(|record| self.push(&record)) {
                Some(Ok(())) => remove(queue),
                Some(Err(NoRoom)) | None => break,
            }
        }
    }

    /// Takes the oldest record, for a call. The caller holds the EVD's consumer lock.
    pub(crate) fn pop(&self) -> Option<Record> {
        let words = self.memory.words();
        let tail = self.tail.load();
        // No record is pushed meanwhile, so each failure leaves one record less.
        for _ in 0..=self.slots {
            let head = words.head.load_acquire();
            if !(1..=self.slots).contains(&tail.wrapping_sub(head)) {
                return None;
            }
            let record = self.read(head)?;
            if words.head.exchange_if(head, head.wrapping_add(1)).is_ok() {
                return Some(record);
            }
        }
        None
    }

    /// Copies the oldest records to `records`, as many as fit, and takes none. Returns the index of
    /// the oldest one, and their number. The caller holds the EVD's consumer lock.
    pub(crate) fn peek(&self, records: &mut [Record]) -> (u32, usize) {
        let head = self.memory.words().head.load_acquire();
        let len = self.tail.load().wrapping_sub(head);
        if len > self.slots {
            return (head, 0);
        }
        let mut count = 0_usize;
        for (index, slot) in (0..len).zip(records) {
            let Some(record) = self.read(head.wrapping_add(index)) else {
                break;
            };
            *slot = record;
            count = count.saturating_add(1);
        }
        (head, count)
    }

    /// Takes the oldest `count` records, if the oldest one still has this index. Returns whether
    /// they were taken. A [peek](MappedRing::peek) has found as many. The caller holds the EVD's
    /// consumer lock.
    pub(crate) fn take_from(&self, index: u32, count: u32) -> bool {
        let len = self.tail.load().wrapping_sub(index);
        let next = index.wrapping_add(count);
        (count..=self.slots).contains(&len)
            && self.memory.words().head.exchange_if(index, next).is_ok()
    }

    /// Sets or clears the flag by which the process takes events by calls, and calls after it has
    /// taken one.
    ///
    /// Fully ordered: a process that takes an event at the same time reads the new value after it
    /// has advanced the head, or the caller reads the new head after this.
    ///
    /// `must_call` is called again after the flag is stored, since another thread may have stored
    /// it meanwhile, by a value that is older.
    pub(crate) fn update_calls_only(&self, must_call: impl Fn() -> bool) {
        let flag = self.memory.words().calls_only;
        let mut value = must_call();
        loop {
            flag.swap(value.into());
            let now = must_call();
            if now == value {
                break;
            }
            value = now;
        }
    }

    /// Claims that the kernel has no events but those of the ring, if `is_empty` returns `true`.
    /// The process then need not call if it finds the ring empty.
    ///
    /// `is_empty` is called after the check was announced, and before the claim. So it sees an
    /// event, or another reason against the claim, that appeared before the announcement. One that
    /// appears later [retracts](Self::retract_empty) the announcement or the claim. The caller
    /// holds the EVD's consumer lock.
    pub(crate) fn claim_empty(&self, is_empty: impl FnOnce() -> bool) {
        let empty = self.memory.words().empty;
        empty.swap(CHECKING);
        if is_empty() {
            // Fails if the announcement was retracted.
            let _ = empty.exchange_if(CHECKING, EMPTY);
        }
    }

    /// Retracts the claim that there are no other events. The caller has queued an event before, or
    /// has changed state so that the process must call.
    ///
    /// An exchange, because a store would not be enough. If two producers retract, the thread that
    /// checks may read the value of the second one only. An exchange of the second one reads the
    /// first one's value, so that the check sees the events of both.
    ///
    /// Context: any, including hard IRQ.
    pub(crate) fn retract_empty(&self) {
        self.memory.words().empty.swap(NOT_EMPTY);
    }

    /// Returns the index of the oldest record, or `None` if the head is invalid.
    pub(crate) fn head(&self) -> Option<u32> {
        let len = self.checked_len()?;
        Some(self.tail.load().wrapping_sub(len))
    }

    /// Calls `visit` for all records from an index on, also for those that the process takes
    /// meanwhile. The index is a former [head](Self::head), and no record was pushed since then.
    /// Visits none if the head is invalid. The caller holds the EVD's consumer lock.
    pub(crate) fn for_each_from(&self, first: u32, visit: impl FnMut(&Record)) {
        if self.head().is_some() {
            let count = self.tail.load().wrapping_sub(first);
            self.for_each_in(first, count.min(self.slots), visit);
        }
    }

    /// Calls `visit` for `count` records from the index `first` on. Their slots were not reused.
    /// The caller holds the EVD's consumer lock.
    pub(crate) fn for_each_in(&self, first: u32, count: u32, mut visit: impl FnMut(&Record)) {
        for offset in 0..count {
            let record = self.read(first.wrapping_add(offset));
            record.iter().for_each(&mut visit);
        }
    }

    /// Returns the record with this index.
    fn read(&self, index: u32) -> Option<Record> {
        let mut cells = self.slot(&self.memory.words(), index)?.iter();
        Some(array::from_fn(|_| cells.next().map_or(0, AtomicU64::load)))
    }

    /// Returns the slot of an index.
    fn slot<'a>(&self, words: &SharedWords<'a>, index: u32) -> Option<&'a [AtomicU64]> {
        let slot = usize::try_from(index & self.slots.wrapping_sub(1)).ok()?;
        words.records.chunks_exact(RECORD_WORDS).nth(slot)
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Accounting of the entries of a completion queue (CQ), so that it never overflows.
//!
//! An Endpoint [takes](CqReservation) an entry for each Data Transfer Operation (DTO) that it may
//! ever have in flight. It does so when its queue pair is created, and returns the entries when the
//! queue pair is destroyed. Completions of a destroyed queue pair may still be queued in the CQ.
//! Their entries are *given up*: no Endpoint owns them any more, but they stay reserved until these
//! completions were taken.
//!
//! ```text
//!   reserved:  | for queue pairs ........... | given up |        | depth
//! ```
//!
//! A CQ that is always refilled is never found empty. But completions are taken in their order, and
//! no more than the depth are queued. So a [`Mark`] has passed, which means that all completions of
//! its time were taken, once as many were taken since or the CQ was found empty.

use super::atomic::{
    AtomicBool,
    AtomicU32,
    AtomicU64, //
};

/// Reservations of the entries of one CQ.
///
/// The owner of the CQ serialises all calls except [`CqRoom::depth`], and [`CqReservation::end`] if
/// nothing was given up.
pub(crate) struct CqRoom {
    depth: u32,
    /// Entries that are reserved, given up ones included.
    taken: AtomicU32,
    /// Number of completions that were taken. It also advances by the depth each time that the CQ
    /// is found empty.
    progress: AtomicU64,
    /// Entries that are released when the mark `release_at` has passed.
    leaving: AtomicU32,
    release_at: AtomicU64,
    /// Entries that were given up after that mark was set. They leave next.
    later: AtomicU32,
}

/// A point in the order of the completions of a CQ: all that were queued when it was
/// [set](CqRoom::mark) precede it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl CqRoom {
    /// Creates the account of a CQ with `depth` entries.
    pub(crate) fn new(depth: u32) -> Self {
        Self {
            depth,
            taken: AtomicU32::new(0),
            progress: AtomicU64::new(0),
            leaving: AtomicU32::new(0),
            release_at: AtomicU64::new(0),
            later: AtomicU32::new(0),
        }
    }

    /// Returns the number of entries of the CQ.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Reserves entries. Returns `false`, and reserves nothing, if too few are left.
    pub(crate) fn take(&self, entries: u32) -> bool {
        let fits = self
            .taken
            .load_acquire()
            .checked_add(entries)
            .is_some_and(|sum| sum <= self.depth);
        if fits {
            self.taken.add(entries);
        }
        fits
    }

    /// Releases reserved entries. No completion that they were reserved for is queued in the CQ.
    ///
    /// Context: any.
    fn give_back(&self, entries: u32) {
        self.taken.sub(entries);
    }

    /// Marks reserved entries as given up. The queue pair is destroyed, and its completions may
    /// still be queued in the CQ.
    fn give_up(&self, entries: u32) {
        if entries == 0 {
            return;
        }
        if self.has_given_up() {
            self.later.add(entries);
        } else {
            self.begin_release(entries);
        }
    }

    /// Whether entries are given up.
    pub(crate) fn has_given_up(&self) -> bool {
        self.leaving.load() != 0
    }

    /// Sets a mark after the completions that are queued now.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.progress.load().saturating_add(self.depth.into()))
    }

    /// Returns whether all completions that were queued when the mark was set were taken.
    pub(crate) fn has_passed(&self, Mark(mark): Mark) -> bool {
        self.progress.load() >= mark
    }

    /// Records that completions were taken, in their order. Returns the number of given up entries
    /// that are released.
    pub(crate) fn completions_taken(&self, count: u32) -> u32 {
        let progress = self.progress.load().saturating_add(count.into());
        self.progress.store(progress);
        if self.has_given_up() && self.has_passed(Mark(self.release_at.load())) {
            self.release()
        } else {
            0
        }
    }

    /// Records that no completion is queued. Returns the number of given up entries that are
    /// released.
    pub(crate) fn found_empty(&self) -> u32 {
        self.progress.store(self.mark().0);
        if self.has_given_up() {
            // The later ones were given up before the poll, too.
            self.release().saturating_add(self.release())
        } else {
            0
        }
    }

    /// Releases the leaving entries, and sets the mark for the later ones.
    #[cold]
    fn release(&self) -> u32 {
        let released = self.leaving.load();
        let later = self.later.load();
        self.taken.sub(released);
        self.later.sub(later);
        self.begin_release(later);
        released
    }

    /// Lets entries leave when all completions that are queued now were taken.
    fn begin_release(&self, entries: u32) {
        let Mark(mark) = self.mark();
        self.release_at.store(mark);
        self.leaving.store_release(entries);
    }
}

/// Entries of a CQ that one queue pair has reserved, until it is destroyed.
///
/// Its Endpoint may release the queue pair before. Then no Endpoint owns the completions any more,
/// but they are queued until the queue pair is destroyed.
pub(crate) struct CqReservation {
    entries: AtomicU32,
    given_up: AtomicU32,
    /// The queue pair cannot be destroyed, so the entries stay reserved.
    stays: AtomicBool,
}

impl CqReservation {
    /// Takes charge of entries that were reserved.
    pub(crate) fn new(entries: u32) -> Self {
        Self {
            entries: AtomicU32::new(entries),
            given_up: AtomicU32::new(0),
            stays: AtomicBool::new(false),
        }
    }

    /// Splits off a number of entries. None is given up so far.
    pub(crate) fn split(&mut self, entries: u32) -> Self {
        let entries = entries.min(self.entries());
        self.entries.sub(entries);
        Self::new(entries)
    }

    /// Returns the number of entries.
    pub(crate) fn entries(&self) -> u32 {
        self.entries.load()
    }

    /// Takes charge of further entries that were reserved. One caller at a time.
    pub(crate) fn lengthen(&self, entries: u32) {
        self.entries.add(entries);
    }

    /// Gives entries up. Returns how many were not given up before. One caller at a time.
    pub(crate) fn give_up(&self, count: u32) -> u32 {
        let count = count.min(self.entries().saturating_sub(self.given_up.load()));
        self.given_up.add(count);
        count
    }

    /// Returns whether entries were given up.
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up.load_acquire() != 0
    }

    /// Reserves the entries for as long as there is the CQ. The queue pair cannot be destroyed.
    pub(crate) fn stay(&self) {
        self.stays.swap(true);
    }

    /// Returns whether the entries stay reserved for as long as there is the CQ.
    pub(crate) fn stays(&self) -> bool {
        self.stays.load_acquire()
    }

    /// Returns the entries after the queue pair was destroyed, unless they stay. Called once.
    pub(crate) fn end(&self, room: &CqRoom) {
        if self.stays() {
            return;
        }
        let given_up = self.given_up.load_acquire();
        room.give_up(given_up);
        room.give_back(self.entries().saturating_sub(given_up));
    }
}

/// Returns the depth of an additional CQ for `needed` completions. `last` is the depth of the last
/// one, and `max` the device's limit.
///
/// The CQ is at least four times as deep as the last one if the device allows that, so that an
/// Event Dispatcher has few. `None` if `needed` exceeds the device's limit.
pub(crate) fn next_depth(last: u32, needed: u32, max: u32) -> Option<u32> {
    (needed <= max).then(|| needed.max(last.saturating_mul(4)).min(max))
}

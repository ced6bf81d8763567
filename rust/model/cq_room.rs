// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Accounting of the entries of a completion queue (CQ), so that it never overflows.
//!
//! An Endpoint [takes](Taken) an entry for each Data Transfer Operation (DTO) that it may ever have
//! in flight. It does so when its queue pair is created, and returns the entries when the queue
//! pair is destroyed. Completions of a destroyed queue pair may still be queued in the CQ. Their
//! entries are *given up*: no Endpoint owns them any more, but they stay reserved until a poll has
//! found the CQ empty.
//!
//! ```text
//!   reserved:  | for queue pairs ........... | given up |        | depth
//! ```

use super::atomic::AtomicU32;

/// Reservations of the entries of one CQ.
pub(crate) struct CqRoom {
    depth: u32,
    /// Entries that are reserved, given up ones included.
    taken: AtomicU32,
    given_up: AtomicU32,
}

/// Number of entries that were given up before a poll of the CQ.
pub(crate) struct GivenUpSnapshot(u32);

impl CqRoom {
    /// Creates the account of a CQ with `depth` entries.
    pub(crate) fn new(depth: u32) -> Self {
        Self {
            depth,
            taken: AtomicU32::new(0),
            given_up: AtomicU32::new(0),
        }
    }

    /// Returns the number of entries of the CQ.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Reserves entries. Returns `false`, and reserves nothing, if too few are left.
    ///
    /// The caller serializes calls of this function. [`CqRoom::give_back`] may run at the same
    /// time.
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
    /// still be queued in the CQ. [`CqRoom::end_poll_empty`] releases the entries.
    fn give_up(&self, entries: u32) {
        self.given_up.add(entries);
    }

    /// Whether entries are given up.
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up.load_acquire() != 0
    }

    /// Starts a poll. Completions of entries that are given up by now are queued in the CQ already,
    /// or were polled before.
    pub(crate) fn begin_poll(&self) -> GivenUpSnapshot {
        GivenUpSnapshot(self.given_up.load_acquire())
    }

    /// Releases the entries that were given up before the poll, which has found the CQ empty.
    /// Returns their number; `None` if there are none.
    pub(crate) fn end_poll_empty(&self, GivenUpSnapshot(entries): GivenUpSnapshot) -> Option<u32> {
        if entries == 0 {
            return None;
        }
        self.given_up.sub(entries);
        self.taken.sub(entries);
        Some(entries)
    }
}

/// Entries of a CQ that one queue pair has reserved, until it is destroyed.
///
/// Its Endpoint may release the queue pair before. Then no Endpoint owns the completions any more,
/// but they are queued until the queue pair is destroyed.
pub(crate) struct Taken {
    entries: u32,
    given_up: AtomicU32,
}

impl Taken {
    /// Takes charge of entries that were reserved.
    pub(crate) fn new(entries: u32) -> Self {
        Self {
            entries,
            given_up: AtomicU32::new(0),
        }
    }

    /// Splits off a number of entries. None is given up so far.
    pub(crate) fn split(&mut self, entries: u32) -> Self {
        let entries = entries.min(self.entries);
        self.entries = self.entries.saturating_sub(entries);
        Self::new(entries)
    }

    /// Gives entries up. Returns how many were not given up before. One caller at a time.
    pub(crate) fn give_up(&self, count: u32) -> u32 {
        let count = count.min(self.entries.saturating_sub(self.given_up.load()));
        self.given_up.add(count);
        count
    }

    /// Returns the entries after the queue pair was destroyed. Called once.
    pub(crate) fn end(&self, room: &CqRoom) {
        let given_up = self.given_up.load_acquire();
        room.give_up(given_up);
        room.give_back(self.entries.saturating_sub(given_up));
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

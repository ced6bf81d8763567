// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Bell: announces to any number of threads that something has changed.
//!
//! The [`Doorbell`](super::wait::Doorbell) of an Event Dispatcher (EVD) belongs to its only waiter,
//! which clears it. Threads that read a file of the EVD are many, and none may clear a flag that
//! others sleep on. So a bell counts, and each thread remembers the count that it has heard:
//!
//! ```text
//!   reader                           producer of an event
//!   hear: remember the count         (the event is in the queue)
//!   arm                              ring: count + 1
//!   poll; an event? take, return     wake a reader
//!   sleep until the count differs
//! ```
//!
//! The count wraps. A thread that was woken compares at once, so it does not miss 2^32 rings.

use super::atomic::AtomicU32;

/// Counter that is advanced with each announcement.
pub(crate) struct Bell(AtomicU32);

/// Count of a bell that a thread has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BellCount(u32);

impl Bell {
    /// Creates a bell.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Rings the bell, after the change. The caller wakes the sleepers afterwards, with a full
    /// barrier before the check whether there are any.
    ///
    /// An addition, because a store would not be enough: a thread that reads the second of two
    /// rings must see the changes of both.
    ///
    /// Context: any, including hard IRQ.
    pub(crate) fn ring(&self) {
        self.0.add(1);
    }

    /// Returns the count. The caller then checks for the changes that were announced until now.
    pub(crate) fn read(&self) -> BellCount {
        BellCount(self.0.load_acquire())
    }

    /// Returns whether the bell was rung since then. This is the condition of a sleep.
    pub(crate) fn has_rung_since(&self, seen: BellCount) -> bool {
        self.read() != seen
    }
}

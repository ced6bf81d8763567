// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Length of the ring of an Event Dispatcher (EVD), and the use of its slots.
//!
//! ```text
//!   |          queue length            | batch |       connection events       |
//!   0                                                                        slots
//! ```
//!
//! Events whose producer can be refused, such as software events, stay within the queue length.
//! Completions are polled only while there is room within it. They are polled in batches, and a
//! producer may use up their room in the meantime. In that case a batch is queued beyond the queue
//! length. The rest of the ring is for events that can neither be refused nor delayed, above all
//! the event that ends a connection.
//!
//! A slot of the asynchronous EVD is reserved for the last event of all, IA_CATASTROPHIC.
//!
//! An event that is expected ([`PendingEvents`]) uses the same room as a queued one.

use super::{
    atomic::AtomicU32,
    ring::Ring, //
};

/// Largest number of completions that are polled between two checks for room.
pub(crate) const BATCH: usize = 8;

/// Smallest number of slots. It leaves room for one batch and for two connection events, those that
/// begin and end a connection, beyond the shortest queue length.
const MIN_SLOTS: u32 = 8;

/// A batch is a quarter of the queue length, at least one completion. The connection events have
/// the rest of the slots beyond the queue length. With a batch of one completion, a drain that
/// finds one polls again, to find that there is no other.
const BATCH_DIVISOR: u32 = 4;

/// Shortest queue length whose batches are of [`BATCH`] completions.
pub(crate) const LONGEST_BATCH_QLEN: u32 = 32;

const _: () = assert!(LONGEST_BATCH_QLEN / BATCH_DIVISOR == BATCH as u32);

/// Returns the number of slots in the ring of an EVD with this queue length; `None` on overflow.
pub(crate) fn slots(qlen: u32) -> Option<u32> {
    Some(qlen.checked_mul(2)?.max(MIN_SLOTS))
}

/// Returns the largest number of completions to poll between two checks for room: 1 .. [`BATCH`].
pub(crate) fn batch(qlen: u32) -> usize {
    usize::try_from(qlen / BATCH_DIVISOR).map_or(BATCH, |batch| batch.clamp(1, BATCH))
}

/// Number of expected events: room in the ring is reserved for them, but they are not queued yet.
pub(crate) struct PendingEvents(AtomicU32);

impl PendingEvents {
    /// Creates a count of zero.
    pub(crate) fn none() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Reserves room for one event. Context: any.
    pub(crate) fn reserve(&self) {
        self.0.add(1);
    }

    /// Releases the room for one event, which was queued or will never be. Context: any.
    pub(crate) fn release(&self) {
        self.0.sub(1);
    }

    /// Returns the number of expected events.
    pub(crate) fn count(&self) -> u32 {
        self.0.load_acquire()
    }

    /// Returns the number of queued and expected events.
    ///
    /// An event that is just being queued counts once or twice, never zero times. It counts once if
    /// the caller holds the producers' lock.
    pub(crate) fn total_with(&self, ring: &Ring) -> u32 {
        // The expected events first: an event that is no longer counted here is queued by now.
        let pending = self.count();
        ring.len().saturating_add(pending)
    }
}

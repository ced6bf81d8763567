// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How far an EVD's ring is filled, and with what.
//!
//! ```text
//!   |          queue length            | batch |  what happens to connections  |
//!   0                                                                        slots
//! ```
//!
//! What a poster can be told of to try again stays within the queue length; completions are looked at
//! only while there is room within it. But they are looked at some at a time, and a poster may take
//! their room meanwhile: then they are queued beyond. Behind them there has to be room for what can
//! neither be refused nor wait, the end of a connection above all.
//!
//! What is [`Due`] has its room as if it lay there.

use super::{
    atomic::AtomicU32,
    ring::Ring, //
};

/// Completions that are looked at between two looks at the room, at most.
pub(crate) const BATCH: usize = 8;

/// The shortest queues have room for a beginning and an end beyond their length and a batch of one.
const LEAST_SLOTS: u32 = 8;

/// A batch leaves seven eighths of the slots beyond the queue length to connections, or all but one.
const SHARE: u32 = 8;

/// How many slots the ring has of an EVD of that queue length; `None` if there is no such number.
pub(crate) fn slots(qlen: u32) -> Option<u32> {
    Some(qlen.checked_mul(2)?.max(LEAST_SLOTS))
}

/// Completions that may be looked at between two looks at the room: 1 .. [`BATCH`].
pub(crate) fn batch(qlen: u32) -> usize {
    usize::try_from(qlen / SHARE).map_or(BATCH, |batch| batch.clamp(1, BATCH))
}

/// How many events are to find room in a ring that are not queued yet.
pub(crate) struct Due(AtomicU32);

impl Due {
    /// None.
    pub(crate) fn none() -> Self {
        Self(AtomicU32::new(0))
    }

    /// One more. Context: any.
    pub(crate) fn begin(&self) {
        self.0.add(1);
    }

    /// One less: by now it is queued, or it never will be. Context: any.
    pub(crate) fn end(&self) {
        self.0.sub(1);
    }

    /// How many.
    pub(crate) fn count(&self) -> u32 {
        self.0.load_acquire()
    }

    /// How many lie in the ring or are to find room there. One that is being queued counts once, or as both,
    /// but never as neither; for who keeps the producers out, once.
    pub(crate) fn or_queued(&self, ring: &Ring) -> u32 {
        // In this order: what is due no more is queued by now.
        let due = self.count();
        ring.len().saturating_add(due)
    }
}

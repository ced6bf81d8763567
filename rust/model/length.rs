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

/// Completions that are looked at between two looks at the room, at most.
pub(crate) const BATCH: usize = 8;

/// The shortest queues have room for a beginning and an end beyond their length and a batch of one.
const LEAST_SLOTS: u32 = 8;

/// A batch leaves seven eighths of the slots beyond the queue length to connections, or all but one.
const SHARE: u32 = 8;

/// How many slots the ring has of an EVD of that queue length; `None` if there is no such number.
pub(crate) const fn slots(qlen: u32) -> Option<u32> {
    match qlen.checked_mul(2) {
        Some(slots) if slots < LEAST_SLOTS => Some(LEAST_SLOTS),
        slots => slots,
    }
}

/// Completions that may be looked at between two looks at the room: 1 .. [`BATCH`].
pub(crate) fn batch(qlen: u32) -> usize {
    usize::try_from(qlen / SHARE).map_or(BATCH, |batch| batch.clamp(1, BATCH))
}

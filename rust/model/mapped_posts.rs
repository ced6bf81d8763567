// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ring of data transfer operations (DTOs) that a process writes, and that the kernel posts without
//! a call for each.
//!
//! ```text
//!            head (private to the kernel)        tail (a page that the process writes)
//!              v                                   v
//!   ... | posted | oldest |      ...      | newest | free | ...    index & mask = slot
//! ```
//!
//! The process may write requests while the kernel *promises* to post them soon. A promise has a
//! number, and room for some requests: those that surely find a slot of the Endpoint. The kernel
//! withdraws the promise, and then posts the DTOs that are in the ring.
//!
//! Receives are not mapped. A process that has posted a receive may tell its peer, so the device
//! must have the receive at once: over iWARP a message that finds none ends the connection.
//!
//! The process writes the DTO, advances the tail, and then reads the promise again. If the promise
//! was withdrawn meanwhile, the kernel may have missed the DTO, so the process makes a call, which
//! posts it. A full barrier separates write and read on either side. So at least one side sees the
//! other's write.
//!
//! The process may write anything at any time. The kernel reads each word once, and treats a DTO as
//! it treats that of a call. A tail that is more than one ring's length after the head is invalid:
//! all DTOs before it are dropped.

use super::{
    atomic::{
        full_barrier,
        AtomicU32,
        AtomicU64, //
    },
    event::Operation, //
};
use core::array;

/// Number of words of 64 bits of a DTO.
pub(crate) const DTO_WORDS: usize = 8;

/// Value of [`PostWords::promise`]: the process has to call.
const NO_PROMISE: u32 = 0;

/// Words that the kernel and a process share.
pub(crate) struct PostWords<'a> {
    /// Index after the newest DTO. The process writes it.
    pub(crate) tail: &'a AtomicU32,
    /// Number of the promise, or [`NO_PROMISE`].
    pub(crate) promise: &'a AtomicU32,
    /// Number of DTOs that the process may write under the promise.
    pub(crate) room: &'a AtomicU32,
    /// The DTOs. The process writes them.
    pub(crate) dtos: &'a [AtomicU64],
}

/// Memory that the kernel and a process share.
pub(crate) trait PostMemory {
    /// Returns the shared words: always the same.
    fn words(&self) -> PostWords<'_>;
}

/// A DTO that a process has mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedDto {
    /// Operation. `None` if a process cannot map such a DTO.
    pub(crate) operation: Option<Operation>,
    /// `DAT_COMPLETION_FLAGS`.
    pub(crate) flags: u32,
    /// Consumer's value, which the completion returns.
    pub(crate) cookie: u64,
    /// Local segment: address, length and context.
    pub(crate) local: MappedSegment,
    /// The peer's segment.
    pub(crate) remote: MappedSegment,
}

/// A segment of a mapped DTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedSegment {
    pub(crate) address: u64,
    pub(crate) length: u32,
    pub(crate) context: u32,
}

/// Splits a word into its first and its second 32 bits in memory.
const fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
    )
}

impl MappedSegment {
    const fn decode(address: u64, word: u64) -> Self {
        let (length, context) = halves(word);
        Self {
            address,
            length,
            context,
        }
    }
}

impl MappedDto {
    /// Decodes `struct kdapl_mapped_dto`. Ignores the reserved words.
    pub(crate) const fn decode(words: [u64; DTO_WORDS]) -> Self {
        let [kind, cookie, address, length, remote_address, remote_length, _, _] = words;
        let (operation, flags) = halves(kind);
        let operation = match Operation::from_number(operation) {
            Some(operation @ (Operation::Send | Operation::RdmaWrite | Operation::RdmaRead)) => {
                Some(operation)
            }
            _ => None,
        };
        Self {
            operation,
            flags,
            cookie,
            local: MappedSegment::decode(address, length),
            remote: MappedSegment::decode(remote_address, remote_length),
        }
    }
}

/// Kernel's side of the ring. One thread at a time uses it.
pub(crate) struct MappedPosts<M> {
    memory: M,
    /// Number of slots: a power of two.
    slots: u32,
    /// Index of the oldest DTO that was not taken.
    head: u32,
    /// Number of the last promise.
    last_promise: u32,
    is_promised: bool,
}

impl<M: PostMemory> MappedPosts<M> {
    /// Creates an empty ring without a promise. `memory` is zeroed. `None` if it has no room for a
    /// DTO.
    pub(crate) fn new(memory: M) -> Option<Self> {
        Self::numbered_after(memory, NO_PROMISE)
    }

    /// As [`MappedPosts::new`]. The number of the first promise follows `last`.
    pub(crate) fn numbered_after(memory: M, last: u32) -> Option<Self> {
        let room = memory.words().dtos.len() / DTO_WORDS;
        let slots = u32::try_from(room).unwrap_or(u32::MAX);
        Some(Self {
            slots: 1_u32.checked_shl(slots.checked_ilog2()?)?,
            memory,
            head: 0,
            last_promise: last,
            is_promised: false,
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

    /// Withdraws the promise, if there is one. The caller then takes the DTOs.
    pub(crate) fn withdraw(&mut self) {
        if core::mem::take(&mut self.is_promised) {
            self.memory.words().promise.store_release(NO_PROMISE);
            // Before the tail is read.
            full_barrier();
        }
    }

    /// Promises to post DTOs that the process maps from now on: at most `room`, and no more than
    /// there are slots. The ring is empty.
    pub(crate) fn promise(&mut self, room: u32) {
        let words = self.memory.words();
        words.room.store_release(room.min(self.slots));
        let next = self.last_promise.wrapping_add(1);
        self.last_promise = if next == NO_PROMISE { 1 } else { next };
        words.promise.store_release(self.last_promise);
        self.is_promised = true;
    }

    /// Returns the number of DTOs that the process has written and the kernel has not taken. All
    /// are dropped if the tail is invalid.
    pub(crate) fn count(&mut self) -> u32 {
        let tail = self.memory.words().tail.load_acquire();
        let count = tail.wrapping_sub(self.head);
        if count > self.slots {
            self.head = tail;
            return 0;
        }
        count
    }

    /// Takes the oldest DTO. The caller has [counted](MappedPosts::count) it.
    pub(crate) fn take(&mut self) -> MappedDto {
        let slot = usize::try_from(self.head & self.slots.wrapping_sub(1)).unwrap_or(0);
        self.head = self.head.wrapping_add(1);
        let words = self.memory.words();
        let slot = words.dtos.chunks_exact(DTO_WORDS).nth(slot);
        let mut cells = slot.unwrap_or_default().iter();
        MappedDto::decode(array::from_fn(|_| cells.next().map_or(0, AtomicU64::load)))
    }
}

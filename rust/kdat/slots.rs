// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Data transfer operations (DTOs) that are outstanding, and their buffers.
//!
//! The cookie of a DTO names its slot. An event that comes when the slot was emptied, after the
//! free of an Endpoint or the close of the adapter, finds another generation there. So slots are
//! kept until the adapter is dropped: a post that is refused after the close has none of the
//! cookies that a thread may have dequeued before.
//!
//! Posts and events may be in any context, also in interrupts. So they take no lock and allocate
//! nothing: objects reserve slots when they are created (`reserved.rs`). A slot belongs to one
//! context at a time:
//!
//! ```text
//!   free list --pop--> insert() --set FULL--> a DTO --clear FULL--> take() --push--> free list
//! ```

use crate::{
    adapter::Handle,
    error::Result,
    free_list::{
        self,
        FreeList,
        Word, //
    },
    memory::Buffer,
    shared::Part,
    transfer::Memory, //
};
use core::cell::UnsafeCell;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        SetOnce, //
    }, //
};

/// Bits of the cookie that are the index of the slot. The others are the generation, so that the
/// same cookie comes again after 2^40 DTOs in one slot.
const INDEX_BITS: u32 = free_list::BITS;

/// Generations, from 0 on.
const LAST_GENERATION: u64 = u64::MAX >> INDEX_BITS;

/// Slots of the first chunk. Each of the others is twice as long as the one before.
const FIRST: usize = 64;

/// Number of chunks. Their slots have indices below [`free_list::NONE`].
const CHUNKS: usize = 18;

/// Bit of a slot's state: it has a DTO. The bits above are the generation.
const FULL: u64 = 1;

/// Memory that a post has given to the device.
#[derive(Default)]
pub(crate) struct Posted {
    pub(crate) buffer: Option<Buffer>,
    /// Buffers of further segments.
    pub(crate) more: KVec<Buffer>,
    /// Parts of memory that this side shares with its peers.
    pub(crate) parts: KVec<Part>,
    /// LMR of an invalidation, and position of the registration that it ends.
    pub(crate) invalidates: (Handle, u64),
    /// Memory of the consumer.
    pub(crate) memory: Option<KBox<dyn Memory>>,
    /// Number of the consumer.
    pub(crate) context: u64,
}

/// Slot of one DTO.
///
/// # Invariants
///
/// `posted` is accessed by one context at a time: the one that took the slot from the free list,
/// until it sets [`FULL`]; then the one that clears that bit, until it returns the slot to the
/// list.
struct Slot {
    state: Atomic<u64>,
    /// Owner of the DTO, which is valid while the state does not change.
    owner: Atomic<usize>,
    next_free: Atomic<u32>,
    posted: UnsafeCell<Option<Posted>>,
}

// The size that `docs/kernel-api/rust.md` states.
const _: () = assert!(size_of::<Slot>() <= 144);

// SAFETY: By the type invariant one context at a time accesses `posted`, which may be sent.
unsafe impl Sync for Slot {}

impl Word for Atomic<u64> {
    fn load_acquire(&self) -> u64 {
        self.load(Acquire)
    }

    fn exchange(&self, old: u64, new: u64) -> bool {
        self.cmpxchg(old, new, Full).is_ok()
    }
}

/// Slots that were allocated, and are not in use yet.
pub(crate) struct Chunk(KVVec<Slot>);

/// Slots of an adapter.
pub(crate) struct Slots {
    chunks: [SetOnce<KVVec<Slot>>; CHUNKS],
    /// Numbers of slots of each chunk that a search has to see: those that were ever in use. The
    /// free list hands out the slots of a chunk in their order, and returned ones first.
    used: [Atomic<u32>; CHUNKS],
    free: FreeList<Atomic<u64>>,
}

/// Returns the chunk of an index.
fn chunk_of(index: u32) -> usize {
    (index as usize / FIRST + 1).ilog2() as usize
}

/// Returns the first index of a chunk.
fn start(chunk: usize) -> usize {
    FIRST * ((1 << chunk) - 1)
}

impl Slots {
    pub(crate) fn new() -> Self {
        Self {
            chunks: [const { SetOnce::new() }; CHUNKS],
            used: [const { Atomic::new(0) }; CHUNKS],
            free: FreeList::new(Atomic::new(FreeList::<Atomic<u64>>::EMPTY)),
        }
    }

    /// Allocates the chunk after the first `chunks`. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory), also if there can be no further chunk.
    pub(crate) fn chunk(chunks: usize) -> Result<Chunk> {
        if chunks >= CHUNKS {
            return Err(crate::Error::MEMORY);
        }
        let (first, length) = (start(chunks) as u32, FIRST << chunks);
        let mut chunk = KVVec::with_capacity(length, GFP_KERNEL)?;
        for index in 0..length as u32 {
            let slot = Slot {
                state: Atomic::new(0),
                owner: Atomic::new(0),
                next_free: Atomic::new(first + index + 1),
                posted: UnsafeCell::new(None),
            };
            chunk.push(slot, GFP_KERNEL)?;
        }
        Ok(Chunk(chunk))
    }

    /// Adds the chunk after the first `chunks`, which was allocated for that place, and returns its
    /// length. One thread at a time.
    pub(crate) fn add(&self, chunks: usize, Chunk(chunk): Chunk) -> Result<usize> {
        let place = self.chunks.get(chunks).ok_or(crate::Error::MEMORY)?;
        let (first, length) = (start(chunks) as u32, chunk.len());
        place.populate(chunk);
        let last = place.as_ref().and_then(|chunk| chunk.last());
        let last = last.ok_or(crate::Error::MEMORY)?;
        self.free
            .push(first, |next| last.next_free.store(next, Relaxed));
        Ok(length)
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        let chunk = chunk_of(index);
        let slots = self.chunks.get(chunk)?.as_ref()?;
        slots.get(index as usize - start(chunk))
    }

    /// Stores what `posted` returns, and returns the cookie.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) if no slot is free. `posted` is not called then.
    #[inline]
    pub(crate) fn insert(&self, owner: Handle, posted: impl FnOnce() -> Posted) -> Result<u64> {
        let link = |index| Some(self.slot(index)?.next_free.load(Relaxed));
        let popped = self.free.pop(link);
        let slot = popped.and_then(|index| Some((index, self.slot(index)?)));
        let (index, slot) = slot.ok_or(crate::Error::MEMORY)?;
        slot.owner.store(owner.raw().addr(), Relaxed);
        // SAFETY: By the type invariant: the slot was taken from the free list, and is empty.
        unsafe { slot.posted.get().write(Some(posted())) };
        let state = slot.state.load(Relaxed);
        if state == 0 {
            self.first_use(index);
        }
        slot.state.store(state | FULL, Release);
        Ok(cookie(state, index))
    }

    /// Lets searches see a slot.
    #[cold]
    fn first_use(&self, index: u32) {
        let chunk = chunk_of(index);
        let Some(used) = self.used.get(chunk) else {
            return;
        };
        let number = index + 1 - start(chunk) as u32;
        let mut old = used.load(Relaxed);
        while let Err(now) = used.cmpxchg(old, number.max(old), Relaxed) {
            old = now;
        }
    }

    /// Takes what was posted with a cookie. Returns `None` if it was taken before.
    pub(crate) fn take(&self, cookie: u64) -> Option<Posted> {
        let index = cookie as u32 & free_list::NONE;
        let slot = self.slot(index)?;
        let generation = cookie >> INDEX_BITS;
        let next = (generation + 1) & LAST_GENERATION;
        let cleared = slot.state.cmpxchg(generation << 1 | FULL, next << 1, Full);
        cleared.ok()?;
        // SAFETY: By the type invariant: this context has cleared `FULL`.
        let posted = unsafe { (*slot.posted.get()).take() };
        let link = |next| slot.next_free.store(next, Relaxed);
        self.free.push(index, link);
        posted
    }

    /// Returns the cookie of the next DTO that the Endpoint or Shared Receive Queue `owner` has
    /// posted, or anyone for `None`, at or after the slot `index`. Advances `index` beyond it.
    pub(crate) fn next_of(&self, owner: Option<Handle>, index: &mut u32) -> Option<u64> {
        loop {
            let chunk = chunk_of(*index);
            let used = self.used.get(chunk)?.load(Relaxed);
            let this = *index;
            if this as usize >= start(chunk) + used as usize {
                *index = start(chunk + 1) as u32;
                continue;
            }
            *index += 1;
            let slot = self.slot(this)?;
            let state = slot.state.load(Acquire);
            let is_its = owner.is_none_or(|owner| owner.raw().addr() == slot.owner.load(Relaxed));
            if state & FULL != 0 && is_its {
                return Some(cookie(state, this));
            }
        }
    }
}

/// Returns the cookie of a slot in a state.
fn cookie(state: u64, index: u32) -> u64 {
    state >> 1 << INDEX_BITS | u64::from(index)
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Data transfer operations (DTOs) that are outstanding, and their buffers.
//!
//! The cookie of a DTO names its slot. An event that comes when the slot was emptied, after the
//! free of an Endpoint or the close of the adapter, finds another generation there. So slots are
//! kept until the adapter is dropped: a post that is refused after the close has none of the
//! cookies that a thread may have dequeued before.

use crate::{
    adapter::Handle,
    error::Result,
    memory::Buffer,
    shared::Part,
    transfer::Memory, //
};
use kernel::prelude::*;

/// Bits of the cookie that are the index of the slot. The others are the generation, so that the
/// same cookie comes again after 2^40 DTOs in one slot.
const INDEX_BITS: u32 = 24;

/// Memory that a post has given to the device.
#[derive(Default)]
pub(crate) struct Posted {
    /// Endpoint or Shared Receive Queue of the post.
    pub(crate) owner: Handle,
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

struct Slot {
    generation: u64,
    posted: Option<Posted>,
    next_free: Option<u32>,
}

/// Slots of an adapter.
pub(crate) struct Slots {
    slots: KVVec<Slot>,
    free: Option<u32>,
}

impl Slots {
    pub(crate) fn new() -> Self {
        Self {
            slots: KVVec::new(),
            free: None,
        }
    }

    /// Returns the index of a free slot, which stays in the list of free slots.
    fn free_index(&mut self) -> Result<u32> {
        if let Some(index) = self.free {
            return Ok(index);
        }
        let too_many = crate::Error::MEMORY;
        let index = u32::try_from(self.slots.len()).map_err(|_| too_many)?;
        if index >> INDEX_BITS != 0 {
            return Err(too_many);
        }
        let slot = Slot {
            generation: 0,
            posted: None,
            next_free: None,
        };
        self.slots.push(slot, GFP_KERNEL)?;
        self.free = Some(index);
        Ok(index)
    }

    /// Stores what is to be posted, and returns the cookie. On an error it is returned.
    pub(crate) fn insert(&mut self, posted: Posted) -> Result<u64, (crate::Error, Posted)> {
        let index = match self.free_index() {
            Ok(index) => index,
            Err(error) => return Err((error, posted)),
        };
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return Err((crate::Error::MEMORY, posted));
        };
        self.free = slot.next_free.take();
        slot.posted = Some(posted);
        Ok(slot.generation << INDEX_BITS | u64::from(index))
    }

    /// Takes what was posted with a cookie. Returns `None` if it was taken before.
    pub(crate) fn take(&mut self, cookie: u64) -> Option<Posted> {
        let index = (cookie & ((1 << INDEX_BITS) - 1)) as u32;
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation != cookie >> INDEX_BITS {
            return None;
        }
        let posted = slot.posted.take()?;
        slot.generation = (slot.generation + 1) & (u64::MAX >> INDEX_BITS);
        slot.next_free = self.free.replace(index);
        Some(posted)
    }

    /// Takes the next DTO that the Endpoint or Shared Receive Queue `owner` has posted, or anyone
    /// for `None`, at or after the slot `index`. Advances `index`.
    pub(crate) fn take_of(&mut self, owner: Option<Handle>, index: &mut usize) -> Option<Posted> {
        let is_its = |slot: &Slot| {
            let mut posted = slot.posted.iter();
            posted.any(|posted| owner.is_none_or(|owner| posted.owner == owner))
        };
        let found = self.slots.iter().skip(*index).position(is_its)?;
        *index += found;
        let generation = self.slots.get(*index)?.generation;
        self.take(generation << INDEX_BITS | *index as u64)
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Slots of the Data Transfer Operations (DTOs) in flight on one queue of an Endpoint.
//!
//! A work request carries the number of a slot. The slot stores the consumer's cookie and the other
//! data that the completion needs. Posting and completing take constant time: the free slots form a
//! list that is linked through the slots. Slots that were never used are not in the list. They
//! start at the index `next_unused`, so that new storage needs no set-up.

mod scan;

pub(crate) use self::scan::{
    Scan,
    ScanPart, //
};

use super::{
    completion::CompletionFlags,
    event::{
        DtoStatus,
        Event,
        Operation, //
    },
    handle::MAX_SLOTS, //
};
use core::ops::DerefMut;

/// When a DTO was posted. Each queue records this in one way: as a time, or as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PostMark(u64);

impl PostMark {
    /// Not recorded.
    pub(crate) const NONE: Self = Self(0);

    /// Records the time, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) const fn at(time_ns: u64) -> Self {
        Self(time_ns)
    }

    /// Returns the time; 0 if it was not recorded.
    pub(crate) const fn time_ns(self) -> u64 {
        self.0
    }

    /// Records the number of the post among those of its queue, from 1 on.
    pub(super) const fn numbered(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub(super) const fn number(self) -> u64 {
        self.0
    }
}

/// A posted DTO: the data that its completion needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dto {
    /// The consumer's cookie.
    pub(crate) cookie: u64,
    /// Type of the DTO.
    pub(crate) operation: Operation,
    /// Completion flags, which decide whether the completion produces an event and wakes the
    /// waiter.
    pub(crate) flags: CompletionFlags,
    /// Bytes to transfer, since the completion of a request does not report a length. For a bind:
    /// the handle of the RMR.
    pub(crate) length: u64,
    /// Time of the post while the Endpoint is traced. In a
    /// [Shared Receive Queue](super::shared_receives::SharedReceives): number of the post.
    pub(crate) posted: PostMark,
}

// An Endpoint has a slot for each DTO that may be in flight.
const _: () = assert!(size_of::<Dto>() == 32 && size_of::<Slot>() == 40);

/// Result of a DTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DtoResult {
    /// Completion status.
    pub(crate) status: DtoStatus,
    /// Bytes transferred.
    pub(crate) length: u64,
    /// Four bytes that came with a message or RDMA write of the peer, or 0: the RMR context that it
    /// invalidated for [`Operation::ReceiveWithInvalidate`], otherwise immediate data.
    pub(crate) extra: u32,
}

impl Dto {
    /// Returns the handle of the RMR of a bind.
    const fn rmr(&self) -> Option<u64> {
        match self.operation {
            Operation::BindMw => Some(self.length),
            _ => None,
        }
    }

    /// Returns the completion event of this DTO on the Endpoint with handle `ep`.
    pub(crate) const fn event(&self, ep: u64, result: DtoResult) -> Event {
        if let Some(rmr) = self.rmr() {
            let status = match result.status {
                DtoStatus::Success | DtoStatus::Flushed => result.status,
                _ => DtoStatus::RmrOperationFailed,
            };
            return Event::RmrBind {
                rmr,
                cookie: self.cookie,
                status,
            };
        }
        let (rmr_context, immed_data) = match self.operation {
            Operation::ReceiveWithInvalidate => (result.extra, 0),
            _ => (0, result.extra),
        };
        Event::Dto {
            ep,
            cookie: self.cookie,
            status: result.status,
            operation: self.operation.reported(),
            length: result.length,
            rmr_context,
            immed_data,
        }
    }

    /// Returns a marker: a request of kDAPL, whose completion shows that the requests before it
    /// have completed.
    pub(crate) const fn marker() -> Self {
        Self {
            cookie: 0,
            operation: Operation::RdmaWrite,
            flags: CompletionFlags::MARKER,
            length: 0,
            posted: PostMark::NONE,
        }
    }

    /// Returns the completion event of a DTO that was flushed.
    pub(crate) const fn flushed(&self, ep: u64) -> Event {
        let result = DtoResult {
            status: DtoStatus::Flushed,
            length: 0,
            extra: 0,
        };
        self.event(ep, result)
    }
}

/// Position of a request in the order of posts, which [`Requests`](super::requests::Requests)
/// keeps. Receives have none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PostPosition {
    /// Number of the request.
    pub(super) number: u32,
    /// The unsignalled requests that were posted before and after this one, if it is unsignalled.
    pub(super) previous: Neighbour,
    pub(super) next: Neighbour,
}

/// Slot of a neighbour in a list, or none.
///
/// A slot is stored in 16 bits, which keeps a [`PostPosition`] small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour(u16);

// Each slot differs from the value for none.
const _: () = assert!(MAX_SLOTS <= u16::MAX as u32);

impl Neighbour {
    /// No neighbour.
    pub(super) const NONE: Self = Self(u16::MAX);

    /// Converts a slot.
    pub(super) const fn new(slot: Option<u32>) -> Self {
        match slot {
            Some(slot) if slot < MAX_SLOTS => Self(slot as u16),
            Some(_) | None => Self::NONE,
        }
    }

    /// Returns the slot.
    pub(super) const fn slot(self) -> Option<u32> {
        match self {
            Self::NONE => None,
            // A widening cast; `u32::from` is not `const`.
            Self(slot) => Some(slot as u32),
        }
    }
}

impl Default for Neighbour {
    fn default() -> Self {
        Self::NONE
    }
}

/// Storage for one DTO.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    /// No DTO is in flight. Links to the next free slot of the list.
    Free(Option<u32>),
    /// A DTO is in flight.
    Busy(Dto, PostPosition),
}

impl Slot {
    /// Returns the value that new storage is filled with.
    pub(crate) const fn vacant() -> Self {
        Self::Free(None)
    }
}

/// Largest number of slots that one [`DtoSlots::find_busy`] examines.
const SCAN: u32 = 256;

/// Slots of one queue, over storage that the caller provides.
pub(crate) struct DtoSlots<S> {
    /// First slot of the free list.
    free: Option<u32>,
    /// Slots from this index on were never used.
    next_unused: u32,
    /// Number of DTOs in flight.
    busy: u32,
    /// Number of those that were posted after the end of the connection.
    late: u32,
    storage: S,
}

impl<S: DerefMut<Target = [Slot]>> DtoSlots<S> {
    /// Creates the slots over `storage`, whose elements are all [`Slot::vacant`].
    pub(crate) const fn new(storage: S) -> Self {
        Self {
            free: None,
            next_unused: 0,
            busy: 0,
            late: 0,
            storage,
        }
    }

    /// Returns the largest number of DTOs that can be in flight at once.
    pub(crate) fn capacity(&self) -> u32 {
        u32::try_from(self.storage.len()).map_or(MAX_SLOTS, |len| len.min(MAX_SLOTS))
    }

    /// Moves the DTOs into other storage, whose elements are all [`Slot::vacant`]. Each keeps its
    /// slot. Returns the shorter storage, which is not needed.
    pub(crate) fn grow(&mut self, mut storage: S) -> S {
        if storage.len() < self.storage.len() {
            return storage;
        }
        // The slots from `next_unused` on were never used.
        let used = usize::try_from(self.next_unused).unwrap_or(usize::MAX);
        for (new, old) in storage.iter_mut().zip(self.storage.iter()).take(used) {
            *new = *old;
        }
        core::mem::replace(&mut self.storage, storage)
    }

    /// Returns the number of DTOs in flight.
    pub(crate) fn outstanding(&self) -> u32 {
        self.busy
    }

    /// Returns the number of DTOs in flight that were posted after the end of the connection.
    pub(crate) fn posted_after_end(&self) -> u32 {
        self.late
    }

    /// Allocates a slot for a DTO; `None` if all are busy.
    pub(crate) fn post(&mut self, dto: Dto) -> Option<u32> {
        self.post_in_order(dto, PostPosition::default())
    }

    /// Allocates a slot for a DTO with this position in the order of posts.
    #[inline(always)]
    pub(super) fn post_in_order(&mut self, dto: Dto, position: PostPosition) -> Option<u32> {
        let index = match self.free {
            Some(index) => index,
            None if self.next_unused < self.capacity() => self.next_unused,
            None => return None,
        };
        let slot = self.storage.get_mut(usize::try_from(index).ok()?)?;
        match *slot {
            Slot::Free(next) => self.free = next,
            // No list contains a busy slot. The check keeps the slot's DTO if one did.
            Slot::Busy(..) => return None,
        }
        *slot = Slot::Busy(dto, position);
        if index == self.next_unused {
            self.next_unused = index.wrapping_add(1);
        }
        self.busy = self.busy.wrapping_add(1);
        if dto.flags.has(CompletionFlags::AFTER_END) {
            self.late = self.late.wrapping_add(1);
        }
        Some(index)
    }

    /// Frees the slot of a DTO whose work request could not be posted.
    pub(crate) fn cancel(&mut self, slot: u32) {
        self.complete(slot);
    }

    /// Allocates the slot of a completed DTO once more for that DTO. Returns `false` if this is not
    /// the slot that was freed last.
    pub(crate) fn undo_complete(&mut self, slot: u32, dto: Dto) -> bool {
        // The slot that was freed last is the first one to be allocated.
        self.free == Some(slot) && self.post(dto) == Some(slot)
    }

    /// Stores the time of the post of the DTO in flight in a slot.
    pub(crate) fn set_post_time(&mut self, slot: u32, time_ns: u64) {
        let slot = usize::try_from(slot).ok();
        if let Some(Slot::Busy(dto, _)) = slot.and_then(|slot| self.storage.get_mut(slot)) {
            dto.posted = PostMark::at(time_ns);
        }
    }

    /// Returns the DTO in flight in a slot; `None` if there is none.
    pub(crate) fn get(&self, slot: u32) -> Option<&Dto> {
        match self.storage.get(usize::try_from(slot).ok()?)? {
            Slot::Busy(dto, _) => Some(dto),
            Slot::Free(_) => None,
        }
    }

    /// Returns the position of the request in flight in a slot; `None` if there is none.
    pub(super) fn position(&self, slot: u32) -> Option<PostPosition> {
        match self.storage.get(usize::try_from(slot).ok()?)? {
            Slot::Busy(_, position) => Some(*position),
            Slot::Free(_) => None,
        }
    }

    /// Returns the position of the request in flight in a slot, to change it.
    pub(super) fn position_mut(&mut self, slot: u32) -> Option<&mut PostPosition> {
        match self.storage.get_mut(usize::try_from(slot).ok()?)? {
            Slot::Busy(_, position) => Some(position),
            Slot::Free(_) => None,
        }
    }

    /// Searches for a DTO in flight in the slots from `from` on. Examines a limited number of them.
    pub(crate) fn find_busy(&self, from: u32) -> Scan {
        // The slots from `next_unused` on were never used.
        let end = self.next_unused.min(from.saturating_add(SCAN));
        for index in from..end {
            let slot = usize::try_from(index).map(|index| self.storage.get(index));
            if let Ok(Some(Slot::Busy(dto, _))) = slot {
                return Scan {
                    found: Some((index, *dto)),
                    next: Some(index.saturating_add(1)),
                };
            }
        }
        Scan {
            found: None,
            next: (end < self.next_unused).then_some(end),
        }
    }

    /// Frees the slot of a completed DTO. Returns the DTO; `None` if no DTO is in flight in the
    /// slot.
    pub(crate) fn complete(&mut self, slot: u32) -> Option<Dto> {
        let entry = self.storage.get_mut(usize::try_from(slot).ok()?)?;
        match *entry {
            Slot::Free(_) => None,
            Slot::Busy(dto, _) => {
                *entry = Slot::Free(self.free);
                self.free = Some(slot);
                self.busy = self.busy.wrapping_sub(1);
                if dto.flags.has(CompletionFlags::AFTER_END) {
                    self.late = self.late.wrapping_sub(1);
                }
                Some(dto)
            }
        }
    }
}

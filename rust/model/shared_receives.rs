// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receives of a Shared Receive Queue (SRQ).
//!
//! A receive keeps its slot until its completion is taken from a completion queue. So all
//! completions that are queued for the SRQ fit into as many entries as the SRQ has slots, however
//! many Endpoints take receives from it.
//!
//! The driver of soft-RoCE loses a receive if a connection ends amid its message: it never
//! completes. It takes receives in the order of their posts. So when a receive has completed, all
//! earlier ones were taken, too. A queue pair that was created later, or that has completed a later
//! receive, cannot have them. A receive that no existing queue pair can have is lost.
//!
//! If every connection ends amid its message, none completes. Then the queue is shortened to one
//! receive for a moment. The driver refuses that if the queue holds more. If it does not refuse,
//! all receives but the newest were taken.

use super::dto::{
    Dto,
    DtoSlots,
    PostMark,
    Scan,
    Slot, //
};
use core::ops::DerefMut;

/// Receives of a Shared Receive Queue, over storage that the caller provides.
pub(crate) struct SharedReceives<S> {
    slots: DtoSlots<S>,
    /// Largest number of receives. The storage may have more slots after the queue was shortened.
    limit: u32,
    /// Receives that were taken, and whose events are not reported yet: see
    /// [`SharedReceives::hold`].
    held: u32,
    /// Number of receives that were posted.
    posts: u64,
    /// Number of the newest receive that has completed.
    newest: u64,
}

impl<S: DerefMut<Target = [Slot]>> SharedReceives<S> {
    /// Creates an empty queue over `storage`, whose elements are all [`Slot::vacant`].
    pub(crate) fn new(storage: S) -> Self {
        let slots = DtoSlots::new(storage);
        let limit = slots.capacity();
        Self {
            slots,
            limit,
            held: 0,
            posts: 0,
            newest: 0,
        }
    }

    /// Returns the largest number of receives.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the number of slots, which is at least the limit.
    pub(crate) fn capacity(&self) -> u32 {
        self.slots.capacity()
    }

    /// Returns the number of receives whose completion has not been taken.
    pub(crate) fn posted(&self) -> u32 {
        self.slots.outstanding()
    }

    /// Searches for a receive in the slots from `from` on: see [`DtoSlots::find_busy`].
    pub(crate) fn find_busy(&self, from: u32) -> Scan {
        self.slots.find_busy(from)
    }

    /// Returns the number of receives that were taken, and whose events are not reported yet.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// Counts a receive that was taken, and whose event is held back. It leaves no room for
    /// another: so an Endpoint never holds back more receives than the queue may have.
    pub(crate) fn hold(&mut self) {
        self.held = self.held.saturating_add(1);
    }

    /// Subtracts held receives.
    pub(crate) fn release(&mut self, count: u32) {
        self.held = self.held.saturating_sub(count);
    }

    /// Returns the number of receives that leave no room for others.
    fn in_use(&self) -> u32 {
        self.posted().saturating_add(self.held)
    }

    /// Allocates a slot for a receive; `None` at the limit.
    pub(crate) fn post(&mut self, dto: Dto) -> Option<u32> {
        if self.in_use() >= self.limit {
            return None;
        }
        let posts = self.posts.saturating_add(1);
        let slot = self.slots.post(Dto {
            posted: PostMark::numbered(posts),
            ..dto
        })?;
        self.posts = posts;
        Some(slot)
    }

    /// Frees the slot of a receive that could not be posted.
    pub(crate) fn cancel(&mut self, slot: u32) {
        self.slots.complete(slot);
    }

    /// Frees the slot of a receive that has completed. Returns the receive and its number; `None`
    /// if the slot has none.
    pub(crate) fn complete(&mut self, slot: u32) -> Option<(Dto, u64)> {
        let dto = self.slots.complete(slot)?;
        let number = dto.posted.number();
        self.newest = self.newest.max(number);
        Some((
            Dto {
                posted: PostMark::NONE,
                ..dto
            },
            number,
        ))
    }

    /// Returns the number of the receive that was posted last.
    pub(crate) fn posts(&self) -> u64 {
        self.posts
    }

    /// Records that all receives before this number were taken, as if it had completed.
    pub(crate) fn all_taken_before(&mut self, number: u64) {
        self.newest = self.newest.max(number);
    }

    /// Returns the number of the newest receive that has completed.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Frees the slot of a lost receive, at `from` or later: one with a number below `number`,
    /// which no present queue pair can have. Returns where to continue; `None` at the end.
    pub(crate) fn drop_lost(&mut self, from: u32, number: u64) -> Option<u32> {
        let Scan { found, next } = self.slots.find_busy(from);
        if let Some((slot, _)) = found.filter(|(_, dto)| dto.posted.number() < number) {
            self.slots.complete(slot);
        }
        next
    }

    /// Changes the limit within the storage. Returns `false`, and changes nothing, if the storage
    /// has fewer slots or more receives are posted or held.
    pub(crate) fn set_limit(&mut self, limit: u32) -> bool {
        let fits = limit <= self.capacity() && self.in_use() <= limit;
        if fits {
            self.limit = limit;
        }
        fits
    }

    /// Moves the receives into larger storage, whose elements are all [`Slot::vacant`]. Each keeps
    /// its slot. Returns the shorter storage, which is not needed.
    pub(crate) fn grow(&mut self, storage: S) -> S {
        self.slots.grow(storage)
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receives of a Shared Receive Queue (SRQ).
//!
//! A receive keeps its slot until its completion is taken from a completion queue. So all
//! completions that are queued for the SRQ fit into as many entries as the SRQ has slots, however
//! many Endpoints take receives from it.

use super::dto::{
    Dto,
    DtoSlots,
    Slot, //
};
use core::ops::DerefMut;

/// Receives of a Shared Receive Queue, over storage that the caller provides.
pub(crate) struct SharedReceives<S> {
    slots: DtoSlots<S>,
    /// Largest number of receives. The storage may have more slots after the queue was shortened.
    limit: u32,
}

impl<S: DerefMut<Target = [Slot]>> SharedReceives<S> {
    /// Creates an empty queue over `storage`, whose elements are all [`Slot::vacant`].
    pub(crate) fn new(storage: S) -> Self {
        let slots = DtoSlots::new(storage);
        let limit = slots.capacity();
        Self { slots, limit }
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

    /// Allocates a slot for a receive; `None` at the limit.
    pub(crate) fn post(&mut self, dto: Dto) -> Option<u32> {
        if self.posted() >= self.limit {
            return None;
        }
        self.slots.post(dto)
    }

    /// Frees the slot of a receive that has completed, or could not be posted. Returns the receive;
    /// `None` if the slot has none.
    pub(crate) fn complete(&mut self, slot: u32) -> Option<Dto> {
        self.slots.complete(slot)
    }

    /// Changes the limit within the storage. Returns `false`, and changes nothing, if the storage
    /// has fewer slots or more receives are posted.
    pub(crate) fn set_limit(&mut self, limit: u32) -> bool {
        let fits = limit <= self.capacity() && self.posted() <= limit;
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

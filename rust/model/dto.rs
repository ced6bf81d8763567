// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The DTOs in flight on one direction of an Endpoint.
//!
//! The work request carries the number of a slot, the slot remembers the consumer's cookie. Both
//! ends are O(1): free slots are a list through the slots themselves, never used ones lie behind
//! a mark, so that nothing has to be set up.

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

/// A posted DTO, as far as its completion has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dto {
    /// The consumer's cookie.
    pub(crate) cookie: u64,
    /// What it does.
    pub(crate) operation: Operation,
    /// What becomes of its completion.
    pub(crate) flags: CompletionFlags,
    /// Bytes to transfer, for providers that do not say.
    pub(crate) length: u64,
    /// When it was posted, in nanoseconds of `CLOCK_MONOTONIC`; 0 if nobody wants to know.
    pub(crate) posted_at: u64,
}

/// How a DTO ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) status: DtoStatus,
    /// Bytes that were moved.
    pub(crate) length: u64,
    /// Immediate data that came from the peer, or 0.
    pub(crate) immed_data: u32,
}

impl Dto {
    /// The event that tells of its completion on this Endpoint.
    pub(crate) const fn event(&self, ep: u64, outcome: Outcome) -> Event {
        Event::Dto {
            ep,
            cookie: self.cookie,
            status: outcome.status,
            operation: self.operation,
            length: outcome.length,
            rmr_context: 0,
            immed_data: outcome.immed_data,
        }
    }

    /// The event that tells that it never will complete.
    pub(crate) const fn flushed(&self, ep: u64) -> Event {
        let outcome = Outcome {
            status: DtoStatus::Flushed,
            length: 0,
            immed_data: 0,
        };
        self.event(ep, outcome)
    }
}

/// A place for one DTO.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    /// Nothing in flight; the free slot that follows in the list.
    Free(Option<u32>),
    /// In flight.
    Busy(Dto),
}

impl Slot {
    /// A slot to fill new storage with.
    pub(crate) const fn vacant() -> Self {
        Self::Free(None)
    }
}

/// Slots that a [`Slots::scan`] looks at, at most.
const SCAN: u32 = 256;

/// What a [`Slots::scan`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The first DTO in flight, and its slot.
    Busy(u32, Dto),
    /// None so far; this is the next slot to look at.
    Idle(u32),
    /// None, to the last slot.
    End,
}

/// The slots of one direction over caller-provided storage.
pub(crate) struct Slots<S> {
    /// First of the free slots that were used before.
    free: Option<u32>,
    /// Slots from here on were never used.
    fresh: u32,
    busy: u32,
    storage: S,
}

impl<S: DerefMut<Target = [Slot]>> Slots<S> {
    /// Takes charge of `storage`, whose slots are all [`Slot::vacant`].
    pub(crate) const fn new(storage: S) -> Self {
        Self {
            free: None,
            fresh: 0,
            busy: 0,
            storage,
        }
    }

    /// How many DTOs can be in flight at once.
    pub(crate) fn capacity(&self) -> u32 {
        u32::try_from(self.storage.len()).map_or(MAX_SLOTS, |len| len.min(MAX_SLOTS))
    }

    /// How many DTOs are in flight.
    pub(crate) fn outstanding(&self) -> u32 {
        self.busy
    }

    /// Takes a slot for a DTO; `None` if all are busy.
    pub(crate) fn post(&mut self, dto: Dto) -> Option<u32> {
        let index = match self.free {
            Some(index) => index,
            None if self.fresh < self.capacity() => self.fresh,
            None => return None,
        };
        let slot = self.storage.get_mut(usize::try_from(index).ok()?)?;
        match *slot {
            Slot::Free(next) => self.free = next,
            // Never in any list; refused for good measure.
            Slot::Busy(_) => return None,
        }
        *slot = Slot::Busy(dto);
        if index == self.fresh {
            self.fresh = index.wrapping_add(1);
        }
        self.busy = self.busy.wrapping_add(1);
        Some(index)
    }

    /// Gives a slot back whose work request could not be posted.
    pub(crate) fn cancel(&mut self, slot: u32) {
        self.complete(slot);
    }

    /// Says when the DTO in flight in a slot was posted.
    pub(crate) fn stamp(&mut self, slot: u32, at: u64) {
        let slot = usize::try_from(slot).ok();
        if let Some(Slot::Busy(dto)) = slot.and_then(|slot| self.storage.get_mut(slot)) {
            dto.posted_at = at;
        }
    }

    /// Looks for a DTO in flight in this slot and the next ones.
    ///
    /// It looks at a limited number of slots: the caller holds a spinlock, and a program chooses how
    /// many slots there are.
    pub(crate) fn scan(&self, from: u32) -> Scan {
        // The slots from `fresh` on were never used.
        let end = self.fresh.min(from.saturating_add(SCAN));
        for index in from..end {
            let slot = usize::try_from(index).map(|index| self.storage.get(index));
            if let Ok(Some(Slot::Busy(dto))) = slot {
                return Scan::Busy(index, *dto);
            }
        }
        if end < self.fresh {
            Scan::Idle(end)
        } else {
            Scan::End
        }
    }

    /// Frees the slot of a completed DTO and says what it was; `None` if nothing is in flight
    /// there.
    pub(crate) fn complete(&mut self, slot: u32) -> Option<Dto> {
        let place = self.storage.get_mut(usize::try_from(slot).ok()?)?;
        match *place {
            Slot::Free(_) => None,
            Slot::Busy(dto) => {
                *place = Slot::Free(self.free);
                self.free = Some(slot);
                self.busy = self.busy.wrapping_sub(1);
                Some(dto)
            }
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receives that have completed, and whose events are held back.
//!
//! A receive keeps its slot while its event is held back, so it counts as outstanding until the
//! event is reported. The queue has an entry for each slot of the Endpoint's receives, so it never
//! overflows, however many receives the consumer posts meanwhile.

use super::dto::{
    Dto,
    DtoResult,
    DtoSlots,
    Slot, //
};
use super::event::DtoStatus;
use core::ops::DerefMut;

/// Largest number of events that [`HeldReceives::take_some`] takes. The caller holds a spinlock,
/// and the consumer and its peer choose the number of receives.
const BATCH: u32 = 64;

/// A receive whose event is held back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    slot: u32,
    result: DtoResult,
}

impl Held {
    /// Returns the value that new storage is filled with.
    pub(crate) const fn vacant() -> Self {
        Self {
            slot: 0,
            result: DtoResult {
                status: DtoStatus::Success,
                length: 0,
                extra: 0,
            },
        }
    }
}

/// Queue of receives whose events are held back, over storage that the caller provides.
pub(crate) struct HeldReceives<S> {
    /// Index of the oldest receive in the storage, which is used as a ring.
    oldest: usize,
    count: usize,
    storage: S,
}

impl<S: DerefMut<Target = [Held]>> HeldReceives<S> {
    /// Creates an empty queue over `storage`, which has an entry for each slot of the receives.
    /// Without storage, no event can be held back.
    pub(crate) const fn new(storage: S) -> Self {
        Self {
            oldest: 0,
            count: 0,
            storage,
        }
    }

    /// Moves the events into longer storage. Returns the shorter one, which is not needed.
    pub(crate) fn grow(&mut self, mut storage: S) -> S {
        if storage.len() < self.storage.len() {
            return storage;
        }
        let (before, after) = self.storage.split_at(self.oldest.min(self.storage.len()));
        let in_order = after.iter().chain(before);
        for (new, old) in storage.iter_mut().zip(in_order) {
            *new = *old;
        }
        self.oldest = 0;
        core::mem::replace(&mut self.storage, storage)
    }

    /// Returns whether no event is held back.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Holds back the event of a receive that has just completed and lost its slot, which it gets
    /// again. Returns `false` without storage.
    pub(crate) fn hold<T: DerefMut<Target = [Slot]>>(
        &mut self,
        slots: &mut DtoSlots<T>,
        slot: u32,
        dto: Dto,
        result: DtoResult,
    ) -> bool {
        if self.count >= self.storage.len() {
            return false;
        }
        let index = self.after_oldest(self.count);
        let Some(entry) = self.storage.get_mut(index) else {
            return false;
        };
        if !slots.undo_complete(slot, dto) {
            return false;
        }
        *entry = Held { slot, result };
        self.count = self.count.wrapping_add(1);
        true
    }

    /// Takes a limited number of receives, oldest first, and frees their slots. Calls `report` for
    /// each. Returns whether more are left.
    pub(crate) fn take_some<T: DerefMut<Target = [Slot]>>(
        &mut self,
        slots: &mut DtoSlots<T>,
        mut report: impl FnMut(&Dto, DtoResult),
    ) -> bool {
        for _ in 0..BATCH {
            let Some((dto, result)) = self.take(slots) else {
                break;
            };
            report(&dto, result);
        }
        !self.is_empty()
    }

    /// Takes the oldest receive, and frees its slot.
    fn take<T: DerefMut<Target = [Slot]>>(
        &mut self,
        slots: &mut DtoSlots<T>,
    ) -> Option<(Dto, DtoResult)> {
        if self.is_empty() {
            return None;
        }
        let Held { slot, result } = *self.storage.get(self.oldest)?;
        self.oldest = self.after_oldest(1);
        self.count = self.count.wrapping_sub(1);
        // The receive has kept its slot, so the DTO is there.
        slots.complete(slot).map(|dto| (dto, result))
    }

    /// Returns the index that is `distance` entries after the oldest one, at most once around.
    fn after_oldest(&self, distance: usize) -> usize {
        let index = self.oldest.wrapping_add(distance);
        index.checked_sub(self.storage.len()).unwrap_or(index)
    }
}

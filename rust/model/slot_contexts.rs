// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! LMR contexts of the Data Transfer Operations (DTOs) in flight on one queue.
//!
//! The memory of a Local Memory Region (LMR) of the kernel may be freed only when no DTO in flight
//! names it: the device addresses it directly, and checks nothing. So the contexts of each DTO are
//! stored by its slot. A completion changes nothing: the contexts of a free slot have no meaning,
//! and the next DTO in it replaces them.

use core::ops::DerefMut;

/// Contexts by slot, over storage that the caller provides: `per_slot` numbers for each slot.
pub(crate) struct SlotContexts<S> {
    per_slot: usize,
    storage: S,
}

impl<S: DerefMut<Target = [u32]>> SlotContexts<S> {
    /// Creates contexts over `storage`. Without storage it keeps none.
    pub(crate) const fn new(per_slot: usize, storage: S) -> Self {
        Self { per_slot, storage }
    }

    fn range(&self, slot: u32) -> Option<core::ops::Range<usize>> {
        let start = usize::try_from(slot).ok()?.checked_mul(self.per_slot)?;
        Some(start..start.checked_add(self.per_slot)?)
    }

    /// Stores the contexts of the DTO that has got a slot. 0 is no context.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, contexts: impl Iterator<Item = u32>) {
        let range = self.range(slot);
        let Some(words) = range.and_then(|range| self.storage.get_mut(range)) else {
            return;
        };
        let mut words = words.iter_mut();
        for context in contexts {
            if context == 0 {
                continue;
            }
            match words.next() {
                Some(word) => *word = context,
                None => return,
            }
        }
        // The first 0 ends the contexts of a slot.
        if let Some(word) = words.next() {
            *word = 0;
        }
    }

    /// Returns whether the DTO in a slot names a context.
    pub(crate) fn has(&self, slot: u32, context: u32) -> bool {
        let range = self.range(slot);
        let words = range.and_then(|range| self.storage.get(range));
        let mut named = words.unwrap_or(&[]).iter().take_while(|word| **word != 0);
        named.any(|word| *word == context)
    }

    /// Moves the contexts into other storage. Each slot keeps its own. Returns the shorter storage,
    /// which is not needed.
    pub(crate) fn grow(&mut self, mut storage: S) -> S {
        if storage.len() < self.storage.len() {
            return storage;
        }
        for (new, old) in storage.iter_mut().zip(self.storage.iter()) {
            *new = *old;
        }
        core::mem::replace(&mut self.storage, storage)
    }
}

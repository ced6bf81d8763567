// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Where the entries of a table lie. It grows by moving them, so that the memory can be allocated
//! without the lock of the table.

use crate::{
    dat::prelude::*,
    model::handle::{
        HandleEntry,
        TableStorage,
        MAX_INDEX, //
    },
};
use kernel::alloc::Flags;

/// As many objects as a handle can tell apart.
const MAX_OBJECTS: usize = MAX_INDEX as usize;

/// Entries that a table begins with.
const LEAST_ENTRIES: usize = 16;

/// Storage of the table.
pub(super) struct Storage<T>(KVVec<HandleEntry<Arc<T>>>);

impl<T> Storage<T> {
    /// No entries, and no room for any.
    pub(super) const fn new() -> Self {
        Self(KVVec::new())
    }

    /// Room for so many entries, with none in use.
    pub(super) fn with_room(entries: usize, flags: Flags) -> DatResult<Self> {
        Ok(Self(KVVec::with_capacity(entries, flags)?))
    }

    /// The entries that a longer storage is to have room for; `None` if handles allow no more.
    pub(super) fn longer(&self) -> Option<usize> {
        let longer = self.0.len().saturating_mul(2).max(LEAST_ENTRIES);
        (self.0.len() < MAX_OBJECTS).then_some(longer.min(MAX_OBJECTS))
    }

    /// Appends a vacant entry, if there is room for one.
    pub(super) fn append(&mut self) -> bool {
        self.0.push_within_capacity(HandleEntry::vacant()).is_ok()
    }

    /// Moves the entries into `other`, if that has room for more of them. Returns what is left over.
    pub(super) fn move_into(&mut self, mut other: Self) -> Self {
        if other.0.capacity() > self.0.capacity() {
            for entry in self.0.drain_all() {
                // Never an error: the other one is longer.
                let _ = other.0.push_within_capacity(entry);
            }
            core::mem::swap(self, &mut other);
        }
        other
    }
}

impl<T> TableStorage<Arc<T>> for Storage<T> {
    fn entries(&self) -> &[HandleEntry<Arc<T>>] {
        &self.0
    }

    fn entries_mut(&mut self) -> &mut [HandleEntry<Arc<T>>] {
        &mut self.0
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Storage of a table's entries.
//!
//! To grow, a table moves its entries into a longer storage. The caller allocates that without the
//! lock of the table.

use crate::{
    dat::prelude::*,
    model::handle::{
        HandleEntry,
        TableStorage,
        MAX_INDEX, //
    },
    sys::user::{
        ChargedArray,
        User, //
    },
};
use kernel::alloc::Flags;

/// Largest number of objects: the number of indices of a handle.
const MAX_OBJECTS: usize = MAX_INDEX as usize;

/// Number of entries of the first storage.
const LEAST_ENTRIES: usize = 16;

/// Storage of a table's entries.
pub(super) struct EntryStorage<T>(ChargedArray<HandleEntry<Arc<T>>>);

impl<T> EntryStorage<T> {
    /// Creates an empty storage without capacity.
    pub(super) const fn new() -> Self {
        Self(ChargedArray::empty())
    }

    /// Creates an empty storage with capacity for `entries` entries, for which `user` is charged.
    pub(super) fn with_room(user: &User, entries: usize, flags: Flags) -> DatResult<Self> {
        Ok(Self(ChargedArray::with_capacity(user, entries, flags)?))
    }

    /// Returns the capacity of the next longer storage; `None` if handles have no more indices.
    pub(super) fn longer(&self) -> Option<usize> {
        let longer = self.0.len().saturating_mul(2).max(LEAST_ENTRIES);
        (self.0.len() < MAX_OBJECTS).then_some(longer.min(MAX_OBJECTS))
    }

    /// Appends a vacant entry. Returns `false` without capacity for one.
    pub(super) fn append(&mut self) -> bool {
        self.0.push(HandleEntry::vacant()).is_ok()
    }

    /// Moves the entries into `other` if that has more capacity. Returns the storage that is not
    /// used any more.
    pub(super) fn move_into(&mut self, mut other: Self) -> Self {
        if other.0.capacity() > self.0.capacity() {
            other.0.append_all(&mut self.0);
            core::mem::swap(self, &mut other);
        }
        other
    }
}

impl<T> TableStorage<Arc<T>> for EntryStorage<T> {
    fn entries(&self) -> &[HandleEntry<Arc<T>>] {
        &self.0
    }

    fn entries_mut(&mut self) -> &mut [HandleEntry<Arc<T>>] {
        &mut self.0
    }
}

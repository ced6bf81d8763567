// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Arrays whose length a user determines. The user is charged for their memory.

use super::{
    FixedCharge,
    User, //
};
use crate::{
    model::{
        allowance::Item,
        footprint::allocation, //
    },
    sys::kvvec, //
};
use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// Array of which a user is charged for the capacity, until the drop.
///
/// The drop frees memory, so it must not happen with a spinlock held.
pub(crate) struct ChargedArray<T> {
    elements: KVVec<T>,
    /// Given back after the memory is freed. `None` without memory.
    _charge: Option<FixedCharge>,
}

impl<T> ChargedArray<T> {
    /// Creates an array without memory.
    pub(crate) const fn empty() -> Self {
        Self {
            elements: KVVec::new(),
            _charge: None,
        }
    }

    /// Allocates an array without elements, and room for `capacity` of them.
    ///
    /// Context: as `flags` allow.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EAGAIN` above the user's limit.
    pub(crate) fn with_capacity(user: &User, capacity: usize, flags: Flags) -> Result<Self> {
        let charge = charge::<T>(user, capacity)?;
        Ok(Self {
            elements: kvvec::with_capacity(capacity, flags)?,
            _charge: charge,
        })
    }

    /// Allocates an array of `count` elements.
    ///
    /// # Errors
    ///
    /// As for [`ChargedArray::with_capacity`].
    pub(crate) fn filled(
        user: &User,
        count: usize,
        flags: Flags,
        element: impl Fn() -> T,
    ) -> Result<Self> {
        let mut this = Self::with_capacity(user, count, flags)?;
        for _ in 0..count {
            this.push(element()).map_err(|_| ENOMEM)?;
        }
        Ok(this)
    }

    /// Returns whether there is room for `additional` elements.
    pub(crate) fn has_room(&self, additional: usize) -> bool {
        self.len().saturating_add(additional) <= self.capacity()
    }

    /// Returns a capacity with room for `additional` elements: at least twice the present one, if
    /// there is none.
    pub(crate) fn next_capacity(&self, additional: usize) -> usize {
        match self.has_room(additional) {
            true => self.capacity(),
            false => self
                .len()
                .saturating_add(additional)
                .max(self.capacity().saturating_mul(2)),
        }
    }

    /// Moves the elements to an empty array, unless that has no more room than this one. Returns
    /// the memory that is left.
    pub(crate) fn move_to(&mut self, mut longer: Self) -> Self {
        if longer.capacity() <= self.capacity() {
            return longer;
        }
        longer.append_all(self);
        core::mem::replace(self, longer)
    }

    /// Appends an element, or returns it without room for it.
    pub(crate) fn push(&mut self, element: T) -> Result<(), T> {
        self.elements
            .push_within_capacity(element)
            .map_err(|error| error.0)
    }

    /// Removes all elements, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.elements.clear();
    }

    /// Moves all elements of `other` to the end of this array, which has room for them.
    pub(crate) fn append_all(&mut self, other: &mut Self) {
        for element in other.elements.drain_all() {
            // Does not fail, since there is room.
            let _ = self.push(element);
        }
    }

    /// Returns the number of elements for which there is memory.
    pub(crate) fn capacity(&self) -> usize {
        self.elements.capacity()
    }
}

impl User {
    /// Charges the memory of a `T`, without its arrays, until the returned value is dropped.
    ///
    /// # Errors
    ///
    /// As for [`User::take`].
    pub(crate) fn hold_memory_of<T>(&self) -> Result<FixedCharge> {
        self.hold(Item::ModuleMemory, allocation(size_of::<T>()))
    }
}

/// Charges a user for `capacity` elements.
fn charge<T>(user: &User, capacity: usize) -> Result<Option<FixedCharge>> {
    let amount = allocation(capacity.saturating_mul(size_of::<T>()));
    (amount != 0)
        .then(|| user.hold(Item::ModuleMemory, amount))
        .transpose()
}

impl<T> Deref for ChargedArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.elements
    }
}

impl<T> DerefMut for ChargedArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.elements
    }
}

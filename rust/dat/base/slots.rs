// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Storage of the slots of data transfer operations (DTOs), and of the LMR contexts that they name.

use crate::{
    dat::prelude::*,
    model::{
        dto::Slot,
        slot_contexts::SlotContexts, //
    },
};
use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::alloc::Flags;

/// Storage of the DTO slots of one queue.
pub(in crate::dat) struct SlotStorage(KVVec<Slot>);

impl Deref for SlotStorage {
    type Target = [Slot];

    fn deref(&self) -> &[Slot] {
        &self.0
    }
}

impl DerefMut for SlotStorage {
    fn deref_mut(&mut self) -> &mut [Slot] {
        &mut self.0
    }
}

impl SlotStorage {
    /// Returns storage without slots.
    pub(in crate::dat) const fn none() -> Self {
        Self(KVVec::new())
    }

    /// Allocates vacant slots for `count` DTOs in flight.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory.
    pub(in crate::dat) fn new(count: u32, flags: Flags) -> DatResult<Self> {
        let count = usize::try_from(count).map_err(|_| DatError::memory())?;
        let mut storage = KVVec::with_capacity(count, flags)?;
        for _ in 0..count {
            storage
                .push_within_capacity(Slot::vacant())
                .map_err(|_| DatError::memory())?;
        }
        Ok(Self(storage))
    }
}

/// Storage of LMR contexts.
pub(in crate::dat) struct ContextStorage(KVVec<u32>);

impl Deref for ContextStorage {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.0
    }
}

impl DerefMut for ContextStorage {
    fn deref_mut(&mut self) -> &mut [u32] {
        &mut self.0
    }
}

impl ContextStorage {
    /// Returns storage that keeps no contexts.
    pub(in crate::dat) const fn none() -> Self {
        Self(KVVec::new())
    }

    /// Allocates storage for the contexts of `slots` slots.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory.
    pub(in crate::dat) fn new(slots: u32, per_slot: u32, flags: Flags) -> DatResult<Self> {
        let count = u64::from(slots).saturating_mul(per_slot.into());
        let count = usize::try_from(count).map_err(|_| DatError::memory())?;
        let mut storage = KVVec::new();
        storage.resize(count, 0, flags)?;
        Ok(Self(storage))
    }
}

/// LMR contexts of the DTOs in flight on one queue.
pub(in crate::dat) type Contexts = SlotContexts<ContextStorage>;

/// Allocates contexts for `slots` DTOs of up to `per_slot` segments.
///
/// # Errors
///
/// INSUFFICIENT_RESOURCES (memory) without memory.
pub(in crate::dat) fn contexts(slots: u32, per_slot: u32, flags: Flags) -> DatResult<Contexts> {
    let storage = ContextStorage::new(slots, per_slot, flags)?;
    Ok(Contexts::new(
        usize::try_from(per_slot).unwrap_or(0),
        storage,
    ))
}

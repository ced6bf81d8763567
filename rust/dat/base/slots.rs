// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Storage of the slots of data transfer operations (DTOs), and of the LMR contexts that they name.

use super::Segment;
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

/// Array that a queue allocates once for all its slots.
pub(in crate::dat) struct Storage<T>(KVVec<T>);

impl<T> Deref for Storage<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Storage<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> Storage<T> {
    /// Returns storage without elements.
    pub(in crate::dat) const fn none() -> Self {
        Self(KVVec::new())
    }
}

/// Storage of the DTO slots of one queue.
pub(in crate::dat) type SlotStorage = Storage<Slot>;

impl SlotStorage {
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
pub(in crate::dat) type ContextStorage = Storage<u32>;

impl ContextStorage {
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

/// Returns the LMR contexts that the segments of a DTO name. The context of an empty segment has no
/// meaning.
#[inline(always)]
pub(in crate::dat) fn contexts_of(local: &[Segment]) -> impl Iterator<Item = u32> + '_ {
    let named = local.iter().filter(|segment| segment.length != 0);
    named.map(|segment| segment.context)
}

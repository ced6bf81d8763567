// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Storage of the slots of data transfer operations (DTOs).

use crate::{
    dat::prelude::*,
    model::dto::Slot, //
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

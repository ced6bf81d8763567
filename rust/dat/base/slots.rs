// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Storage of the slots of data transfer operations (DTOs), and of the LMR contexts that they name.

use super::Segment;
use crate::{
    dat::prelude::*,
    model::{
        dto::Slot,
        slot_contexts::SlotContexts, //
    },
    sys::user::{
        ChargedArray,
        User, //
    },
};
use kernel::alloc::Flags;

/// Storage of the DTO slots of one queue.
pub(in crate::dat) type SlotStorage = ChargedArray<Slot>;

/// Allocates vacant slots for `count` DTOs in flight, for which `user` is charged.
///
/// # Errors
///
/// INSUFFICIENT_RESOURCES (memory) without memory, or above the user's limit.
pub(in crate::dat) fn slots(user: &User, count: u32, flags: Flags) -> DatResult<SlotStorage> {
    let count = usize::try_from(count).map_err(|_| DatError::memory())?;
    Ok(ChargedArray::filled(user, count, flags, Slot::vacant)?)
}

/// Storage of LMR contexts.
pub(in crate::dat) type ContextStorage = ChargedArray<u32>;

/// Allocates storage for the contexts of `slots` slots, for which `user` is charged.
///
/// # Errors
///
/// INSUFFICIENT_RESOURCES (memory) without memory, or above the user's limit.
pub(in crate::dat) fn context_storage(
    user: &User,
    slots: u32,
    per_slot: u32,
    flags: Flags,
) -> DatResult<ContextStorage> {
    let count = u64::from(slots).saturating_mul(per_slot.into());
    let count = usize::try_from(count).map_err(|_| DatError::memory())?;
    Ok(ChargedArray::filled(user, count, flags, || 0)?)
}

/// LMR contexts of the DTOs in flight on one queue.
pub(in crate::dat) type Contexts = SlotContexts<ContextStorage>;

/// Allocates contexts for `slots` DTOs of up to `per_slot` segments.
///
/// # Errors
///
/// As for [`context_storage`].
pub(in crate::dat) fn contexts(
    user: &User,
    slots: u32,
    per_slot: u32,
    flags: Flags,
) -> DatResult<Contexts> {
    let storage = context_storage(user, slots, per_slot, flags)?;
    Ok(Contexts::new(
        usize::try_from(per_slot).unwrap_or(0),
        storage,
    ))
}

/// Returns the LMR contexts that the segments of a DTO name. The context of an empty segment has no
/// meaning.
pub(in crate::dat) fn contexts_of(local: &[Segment]) -> impl Iterator<Item = u32> + '_ {
    let named = local.iter().filter(|segment| segment.length != 0);
    named.map(|segment| segment.context)
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Allocation of a [`KVVec`], which fault injection can fail.
//!
//! If `kmalloc` fails, the kernel crate tries `kvmalloc`, which tries `kmalloc` again and then
//! `vmalloc` (`kvrealloc_node_align`). `/proc/PID/fail-nth` fails one attempt only, so such an
//! allocation would never fail. So each allocation here has one more point at which fault injection
//! can fail it. That failure is final.

use kdapl_bindings as bindings;
use kernel::{
    alloc::{
        AllocError,
        Flags, //
    },
    prelude::*, //
};

/// Fails if fault injection asks for it. Context: any.
fn inject_fault<T>(capacity: usize) -> Result<(), AllocError> {
    let size = capacity.saturating_mul(size_of::<T>());
    // SAFETY: The function has no preconditions.
    if size != 0 && unsafe { bindings::kdapl_helper_fails_kvmalloc(size) } {
        return Err(AllocError);
    }
    Ok(())
}

/// Allocates a vector without elements, and room for `capacity` of them.
///
/// Context: as `flags` allow.
pub(crate) fn with_capacity<T>(capacity: usize, flags: Flags) -> Result<KVVec<T>, AllocError> {
    let mut vector = KVVec::new();
    reserve(&mut vector, capacity, flags)?;
    Ok(vector)
}

/// Allocates a vector of `count` copies of a value.
///
/// Context: as `flags` allow.
pub(crate) fn from_elem<T: Clone>(
    value: T,
    count: usize,
    flags: Flags,
) -> Result<KVVec<T>, AllocError> {
    inject_fault::<T>(count)?;
    KVVec::from_elem(value, count, flags)
}

/// Allocates room for `additional` elements more, if there is none.
///
/// Context: as `flags` allow.
pub(crate) fn reserve<T>(
    vector: &mut KVVec<T>,
    additional: usize,
    flags: Flags,
) -> Result<(), AllocError> {
    if vector.capacity().saturating_sub(vector.len()) < additional {
        inject_fault::<T>(vector.len().saturating_add(additional))?;
    }
    vector.reserve(additional, flags)
}

/// Appends a value. Allocates if there is no room for it.
///
/// Context: as `flags` allow.
pub(crate) fn push<T>(vector: &mut KVVec<T>, value: T, flags: Flags) -> Result<(), AllocError> {
    reserve(vector, 1, flags)?;
    vector.push(value, flags)
}

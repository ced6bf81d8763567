// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Allocations that start no I/O.

use crate::bindings;

/// Calls `action` so that its allocations wait for no I/O, which may be that of this disk: it would
/// wait for a lock that the task holds, or for a recovery that waits for the task.
///
/// Context: process.
pub(super) fn without_io<R>(action: impl FnOnce() -> R) -> R {
    // SAFETY: The helper changes a flag of the running task.
    let flags = unsafe { bindings::kdapl_nvme_noio_save() };
    let result = action();
    // SAFETY: The flags are those that the call above has returned.
    unsafe { bindings::kdapl_nvme_noio_restore(flags) };
    result
}

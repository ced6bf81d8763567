// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Temporary change of the calling task's credentials.
//!
//! C header: [`include/linux/cred.h`](srctree/include/linux/cred.h)

use kdapl_bindings as bindings;

/// Calls `action` with the credentials of the kernel instead of those of the calling process.
///
/// It is for actions that the kernel needs on behalf of all processes and that no process may
/// request directly. The process must not be able to choose what `action` does.
///
/// Context: process.
pub(crate) fn as_kernel<T>(action: impl FnOnce() -> T) -> T {
    // SAFETY: These credentials belong to the kernel's first task, which lives for ever.
    let own = unsafe { bindings::kdapl_helper_become_kernel() };
    let result = action();
    // SAFETY: `own` are the task's own credentials, and the task has kept its reference to them. A
    // panic does not unwind: it ends the task, so `action` does not return without this call.
    unsafe { bindings::kdapl_helper_become_self(own) };
    result
}

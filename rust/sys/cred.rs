// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Whose privileges a call has.
//!
//! C header: [`include/linux/cred.h`](srctree/include/linux/cred.h)

use kdapl_bindings as bindings;

/// Calls `action` with the kernel's own credentials instead of the calling process's.
///
/// For what the kernel needs for all, and a process must not be able to do. `action` does nothing that
/// the process chose.
///
/// Context: process.
pub(crate) fn as_kernel<T>(action: impl FnOnce() -> T) -> T {
    // SAFETY: The kernel's credentials are those of its first task, which live for ever.
    let own = unsafe { bindings::kdapl_helper_become_kernel() };
    let result = action();
    // SAFETY: These are the task's own, whose reference the task has kept. A panic ends the kernel,
    // not the scope.
    unsafe { bindings::kdapl_helper_become_self(own) };
    result
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Objects that a driver fails to destroy.
//!
//! Such an object is still the driver's, which may write to its memory and call back at any time.
//! So it stays for ever, with all that its callbacks use, and so does the code that they run.

use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Takes note of what a driver said to the destruction of an object. If it failed, `context`, which
/// callbacks of the object use, is never dropped and the module stays loaded.
pub(super) fn unless_destroyed<T>(what: &str, ret: i32, context: T) {
    if ret == 0 {
        drop(context);
        return;
    }
    pr_err!(
        "a {what} cannot be destroyed ({ret}): it leaks, and the module stays loaded for ever\n"
    );
    core::mem::forget(context);
    // SAFETY: The module is loaded: its code runs.
    unsafe { bindings::kdapl_helper_stay_loaded() };
}

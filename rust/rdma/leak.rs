// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Objects that a driver fails to destroy.
//!
//! The driver still uses such an object: it may write to the object's memory, and may call back, at
//! any time. So the object is leaked with all data that its callbacks use, and the module, which
//! contains the callbacks, stays loaded.

use super::charge::Charge;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Handles the result of an object's destruction. If it failed, `context`, which callbacks of the
/// object use, is never dropped, the user is charged for ever, and the module stays loaded. Returns
/// whether it is destroyed.
pub(super) fn check_destroyed<T>(what: &str, ret: i32, context: T, charge: &mut Charge) -> bool {
    if ret == 0 {
        drop(context);
        return true;
    }
    pr_err!(
        "failed to destroy a {what} ({ret}): it is leaked, and the module cannot be unloaded\n"
    );
    core::mem::forget(context);
    charge.keep();
    // SAFETY: The module is loaded, since this code runs.
    unsafe { bindings::kdapl_helper_stay_loaded() };
    false
}

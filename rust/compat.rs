// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Differences between the supported kernel versions. No other file depends on a version, except
//! `helpers/fault.c`.

use core::borrow::Borrow;
use kdapl_bindings as bindings;

/// This module, as the owner in `struct file_operations`.
///
/// Linux 7.3 made it an associated constant. The other definition goes when support for 7.2 ends.
#[cfg(kdapl_has_this_module_fn)]
pub(crate) const THIS_MODULE_PTR: *mut bindings::module =
    kernel::module::this_module::<crate::LocalModule>().as_ptr();

/// This module, as the owner in `struct file_operations`.
#[cfg(not(kdapl_has_this_module_fn))]
pub(crate) const THIS_MODULE_PTR: *mut bindings::module = crate::THIS_MODULE.as_ptr();

/// Returns the value of a module parameter. Linux 7.2 passes a reference, 7.3 a value.
pub(crate) fn parameter<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}

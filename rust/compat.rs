// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What differs between the kernels that we build against: the only place that knows.

use core::borrow::Borrow;
use kdapl_bindings as bindings;

/// This module, as file operations name their owner.
///
/// 7.3 made it an associated constant; the other half goes when 7.2 does.
#[cfg(kdapl_has_this_module_fn)]
pub(crate) const THIS_MODULE_PTR: *mut bindings::module =
    kernel::module::this_module::<crate::LocalModule>().as_ptr();

/// This module, as file operations name their owner.
#[cfg(not(kdapl_has_this_module_fn))]
pub(crate) const THIS_MODULE_PTR: *mut bindings::module = crate::THIS_MODULE.as_ptr();

/// The value of a module parameter: 7.2 lends it, 7.3 returns it.
pub(crate) fn parameter<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}

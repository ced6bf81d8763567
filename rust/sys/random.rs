// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Random numbers.

use kdapl_bindings as bindings;

/// A random number from the kernel's generator.
///
/// Context: any.
pub(crate) fn random_u64() -> u64 {
    // SAFETY: No precondition.
    unsafe { bindings::get_random_u64() }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Random numbers.

use kdapl_bindings as bindings;

/// Returns a random number from the kernel's generator.
///
/// Context: any.
pub(crate) fn random_u64() -> u64 {
    // SAFETY: The function has no precondition.
    unsafe { bindings::get_random_u64() }
}

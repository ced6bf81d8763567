// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Time in jiffies: coarse (1 to 10 milliseconds), and read with one load.

use kdapl_bindings as bindings;
use kernel::ffi::c_ulong;

/// A time in jiffies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Jiffies(pub(super) c_ulong);

impl Jiffies {
    /// Returns the present time. Context: any.
    pub(crate) fn now() -> Self {
        // SAFETY: Reading the counter has no precondition.
        Self(unsafe { bindings::kdapl_helper_jiffies() })
    }

    /// Returns the number of jiffies that have begun since this time.
    pub(crate) fn elapsed(self) -> c_ulong {
        Self::now().0.wrapping_sub(self.0)
    }
}

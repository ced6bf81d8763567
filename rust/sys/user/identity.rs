// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Identity of a user: a number, and the user namespace that keeps it from being reused.

use kdapl_bindings as bindings;

/// A counted reference to a user namespace, or none.
///
/// # Invariants
///
/// The pointer is null, or valid, and this value owns one reference.
pub(super) struct Namespace(*mut bindings::user_namespace);

// SAFETY: References to a user namespace may be dropped from any thread.
unsafe impl Send for Namespace {}
// SAFETY: As above. A shared reference offers no operation.
unsafe impl Sync for Namespace {}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: By the type invariant this value owns a reference.
            unsafe { bindings::kdapl_helper_put_user_ns(self.0) };
        }
    }
}

/// Identifier of a user. Processes with equal identifiers share an account.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UserId(u64);

impl UserId {
    /// Returns the user of the calling process. Context: process.
    pub(crate) fn current() -> Self {
        Self::current_in().0
    }

    /// Returns the number of the user.
    pub(crate) const fn to_raw(self) -> u64 {
        self.0
    }

    /// Returns the user with this [number](UserId::to_raw).
    pub(crate) const fn from_raw(number: u64) -> Self {
        Self(number)
    }

    /// Returns the user of the calling process, and the namespace that the number belongs to.
    pub(super) fn current_in() -> (Self, Namespace) {
        let mut namespace = core::ptr::null_mut();
        // SAFETY: `namespace` is a local variable.
        let user = unsafe { bindings::kdapl_helper_current_user(&raw mut namespace) };
        // INVARIANT: The helper returned a counted reference, or null.
        (Self(user), Namespace(namespace))
    }
}

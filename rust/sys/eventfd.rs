// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A counted reference to an eventfd.
//!
//! C header: [`include/linux/eventfd.h`](srctree/include/linux/eventfd.h)

use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// A reference to an eventfd.
///
/// # Invariants
///
/// The pointer is valid, and one reference to it is ours.
pub(crate) struct EventFd(NonNull<bindings::eventfd_ctx>);

// SAFETY: References to an eventfd may be taken, used and dropped from any thread.
unsafe impl Send for EventFd {}
// SAFETY: As above; signalling takes a lock of its own.
unsafe impl Sync for EventFd {}

impl EventFd {
    /// The one that is open at this number in the calling process.
    ///
    /// Context: process.
    ///
    /// # Errors
    ///
    /// `EBADF` for a number that is not open, `EINVAL` for a file of another kind.
    pub(crate) fn get(fd: i32) -> Result<Self> {
        // SAFETY: May be called with any number.
        let ctx = kernel::error::from_err_ptr(unsafe { bindings::eventfd_ctx_fdget(fd) })?;
        // INVARIANT: The call returned a reference.
        Ok(Self(NonNull::new(ctx).ok_or(EINVAL)?))
    }

    /// Adds one to its counter, and wakes who polls or reads it. Context: any, including hard IRQ.
    pub(crate) fn signal(&self) {
        // SAFETY: By the invariant it is alive.
        unsafe { bindings::kdapl_helper_eventfd_signal(self.0.as_ptr()) };
    }
}

impl Drop for EventFd {
    fn drop(&mut self) {
        // SAFETY: By the invariant there is a reference to give back.
        unsafe { bindings::eventfd_ctx_put(self.0.as_ptr()) };
    }
}

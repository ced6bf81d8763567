// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Counted references to an eventfd.
//!
//! C header: [`include/linux/eventfd.h`](srctree/include/linux/eventfd.h)

use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// A counted reference to an eventfd.
///
/// # Invariants
///
/// The pointer is valid, and this value owns one reference to its target.
pub(crate) struct EventFd(NonNull<bindings::eventfd_ctx>);

// SAFETY: References to an eventfd may be taken, used and dropped from any thread.
unsafe impl Send for EventFd {}
// SAFETY: As above. Signalling takes the eventfd's own lock.
unsafe impl Sync for EventFd {}

impl EventFd {
    /// Returns the eventfd that the calling process has open as file descriptor `fd`.
    ///
    /// Context: process.
    ///
    /// # Errors
    ///
    /// `EBADF` if the descriptor is not open, `EINVAL` if it is not an eventfd.
    pub(crate) fn get(fd: i32) -> Result<Self> {
        // SAFETY: The function accepts any number.
        let ctx = kernel::error::from_err_ptr(unsafe { bindings::eventfd_ctx_fdget(fd) })?;
        // INVARIANT: The call returned a counted reference.
        Ok(Self(NonNull::new(ctx).ok_or(EINVAL)?))
    }

    /// Adds one to the counter, and wakes the processes that poll or read it.
    ///
    /// Context: any, including hard IRQ.
    pub(crate) fn signal(&self) {
        // SAFETY: By the type invariant the eventfd is alive.
        unsafe { bindings::kdapl_helper_eventfd_signal(self.0.as_ptr()) };
    }
}

impl Drop for EventFd {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this value owns a reference.
        unsafe { bindings::eventfd_ctx_put(self.0.as_ptr()) };
    }
}

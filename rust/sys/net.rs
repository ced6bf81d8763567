// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A counted reference to a network namespace.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// A reference to a `struct net`.
///
/// # Invariants
///
/// The pointer is valid, and one reference to it is ours.
pub(crate) struct NetRef(NonNull<bindings::net>);

// SAFETY: References to a namespace may be taken and dropped from any thread.
unsafe impl Send for NetRef {}
// SAFETY: As above; nothing here mutates the namespace.
unsafe impl Sync for NetRef {}

impl NetRef {
    /// The namespace of the calling process.
    ///
    /// Context: process.
    pub(crate) fn current() -> Result<Self> {
        // SAFETY: A running process has a namespace; the helper takes a reference.
        let net = unsafe { bindings::kdapl_helper_current_net() };
        // INVARIANT: The helper returned a referenced namespace.
        Ok(Self(NonNull::new(net).ok_or(EINVAL)?))
    }

    /// The first namespace, which consumers in the kernel are in.
    pub(crate) fn initial() -> Result<Self> {
        // SAFETY: The first namespace never goes; the helper takes a reference.
        let net = unsafe { bindings::kdapl_helper_get_net(&raw mut bindings::init_net) };
        // INVARIANT: The helper returned a referenced namespace.
        Ok(Self(NonNull::new(net).ok_or(EINVAL)?))
    }

    /// Another reference to a namespace.
    ///
    /// # Safety
    ///
    /// `net` is null, or alive.
    pub(crate) unsafe fn from_raw(net: *const bindings::net) -> Result<Self> {
        let net = NonNull::new(net.cast_mut()).ok_or(EINVAL)?;
        // SAFETY: The caller vouches for it; the helper takes a reference.
        unsafe { bindings::kdapl_helper_get_net(net.as_ptr()) };
        // INVARIANT: That reference.
        Ok(Self(net))
    }

    /// A number that no other living namespace has.
    pub(crate) fn id(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// Whether the calling process may administer the network here (`CAP_NET_ADMIN`).
    ///
    /// Context: process.
    pub(crate) fn may_administer(&self) -> bool {
        // SAFETY: The namespace is alive.
        unsafe { bindings::kdapl_helper_net_admin(self.as_ptr()) }
    }

    /// The C pointer, valid as long as `self`.
    pub(crate) fn as_ptr(&self) -> *mut bindings::net {
        self.0.as_ptr()
    }
}

impl Clone for NetRef {
    fn clone(&self) -> Self {
        // SAFETY: The namespace is alive; the helper takes another reference.
        unsafe { bindings::kdapl_helper_get_net(self.as_ptr()) };
        // INVARIANT: That reference.
        Self(self.0)
    }
}

impl Drop for NetRef {
    fn drop(&mut self) {
        // SAFETY: By the invariant there is a reference to give back.
        unsafe { bindings::kdapl_helper_put_net(self.0.as_ptr()) };
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Counted references to a network namespace.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

use core::{
    ops::RangeInclusive,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// A counted reference to a `struct net`.
///
/// # Invariants
///
/// The pointer is valid, and this value owns one reference to its target.
pub(crate) struct NetRef(NonNull<bindings::net>);

// SAFETY: References to a namespace may be taken and dropped from any thread.
unsafe impl Send for NetRef {}
// SAFETY: As above. No method changes the namespace.
unsafe impl Sync for NetRef {}

impl NetRef {
    /// Returns the namespace of the calling process.
    ///
    /// Context: process.
    pub(crate) fn current() -> Result<Self> {
        // SAFETY: A running process has a namespace. The helper takes a reference.
        let net = unsafe { bindings::kdapl_helper_current_net() };
        // INVARIANT: The helper returned a counted reference.
        Ok(Self(NonNull::new(net).ok_or(EINVAL)?))
    }

    /// Returns the initial namespace, that of consumers in the kernel that name none.
    pub(crate) fn initial() -> Result<Self> {
        // SAFETY: The initial namespace always exists. The helper takes a reference.
        let net = unsafe { bindings::kdapl_helper_get_net(&raw mut bindings::init_net) };
        // INVARIANT: The helper returned a counted reference.
        Ok(Self(NonNull::new(net).ok_or(EINVAL)?))
    }

    /// Takes another reference to a namespace.
    ///
    /// # Errors
    ///
    /// `EINVAL` for null, and for a namespace that has ended.
    ///
    /// # Safety
    ///
    /// `net` is null, or its memory is that of a namespace.
    pub(crate) unsafe fn from_raw(net: *const bindings::net) -> Result<Self> {
        let net = NonNull::new(net.cast_mut()).ok_or(EINVAL)?;
        // SAFETY: The memory is that of a namespace. The helper takes a reference if it is alive.
        let net = unsafe { bindings::kdapl_helper_maybe_get_net(net.as_ptr()) };
        // INVARIANT: The helper took the reference.
        Ok(Self(NonNull::new(net).ok_or(EINVAL)?))
    }

    /// Returns a number that is unique among the existing namespaces.
    pub(crate) fn id(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// Returns whether the calling process has `CAP_NET_ADMIN` in this namespace.
    ///
    /// Context: process.
    pub(crate) fn may_administer(&self) -> bool {
        // SAFETY: By the type invariant the namespace is alive.
        unsafe { bindings::kdapl_helper_net_admin(self.as_ptr()) }
    }

    /// Returns the first and the last of the local ports from which one is chosen for a connect.
    pub(crate) fn local_ports(&self) -> RangeInclusive<u16> {
        let (mut first, mut last) = (0, 0);
        // SAFETY: By the type invariant the namespace is alive. The others are local variables.
        unsafe { bindings::kdapl_helper_local_ports(self.as_ptr(), &raw mut first, &raw mut last) };
        first..=last
    }

    /// Returns the C pointer, which is valid as long as `self`.
    pub(crate) fn as_ptr(&self) -> *mut bindings::net {
        self.0.as_ptr()
    }
}

impl Clone for NetRef {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant the namespace is alive. The helper takes another reference.
        unsafe { bindings::kdapl_helper_get_net(self.as_ptr()) };
        // INVARIANT: The helper took the reference.
        Self(self.0)
    }
}

impl Drop for NetRef {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this value owns a reference.
        unsafe { bindings::kdapl_helper_put_net(self.0.as_ptr()) };
    }
}

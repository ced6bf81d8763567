// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protection domains.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{
    charge::{
        Charge,
        Resource, //
    },
    device::Device,
    leak::unless_destroyed, //
};
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A protection domain.
///
/// # Invariants
///
/// `raw` is a live protection domain of `device`, and ours to free.
pub(crate) struct Pd {
    raw: NonNull<bindings::ib_pd>,
    _charge: Charge,
    device: Arc<Device>,
}

// SAFETY: `ib_core` allows the use of a protection domain from any thread.
unsafe impl Send for Pd {}
// SAFETY: As above.
unsafe impl Sync for Pd {}

impl Pd {
    /// Allocates a protection domain. Context: process; sleeps.
    pub(crate) fn new(device: Arc<Device>) -> Result<Arc<Self>> {
        let charge = Charge::new(&device, Resource::Domain)?;
        // SAFETY: The device is alive; the caller's name is static.
        let raw = unsafe { bindings::__ib_alloc_pd(device.as_ptr(), 0, c"kdapl".as_char_ptr()) };
        let raw = NonNull::new(kernel::error::from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // INVARIANT: Just allocated. On failure of the `Arc`, the drop of the value frees it.
        Ok(Arc::new(
            Self {
                raw,
                _charge: charge,
                device,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// The device.
    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The key that opens all memory of the machine to work requests of this side.
    ///
    /// For [`KernelMemory`](super::kernel_memory::KernelMemory) only: no consumer ever gets it.
    pub(super) fn local_key(&self) -> u32 {
        // SAFETY: By the invariant the protection domain is alive.
        unsafe { (*self.raw.as_ptr()).local_dma_lkey }
    }

    /// The C pointer, valid as long as `self`.
    pub(super) fn as_ptr(&self) -> *mut bindings::ib_pd {
        self.raw.as_ptr()
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: By the invariant it is alive.
        if unsafe { bindings::kdapl_helper_pd_is_used(self.raw.as_ptr()) } {
            // Everything made in it held an `Arc` of `self`: what is left could not be destroyed,
            // and `ib_core` does not look.
            return unless_destroyed("protection domain", EBUSY.to_errno(), ());
        }
        // SAFETY: It is ours, and nothing is left in it.
        let ret = unsafe { bindings::ib_dealloc_pd_user(self.raw.as_ptr(), core::ptr::null_mut()) };
        unless_destroyed("protection domain", ret, ());
    }
}

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
    leak::check_destroyed,
    mr::Access,
    umem::Umem,
    wr::AllMemory, //
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
/// `raw` is a live protection domain of `device`, owned by this value.
pub(crate) struct Pd {
    raw: NonNull<bindings::ib_pd>,
    charge: Charge,
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
        // SAFETY: The device is alive, and the name is static.
        let raw = unsafe { bindings::__ib_alloc_pd(device.as_ptr(), 0, c"kdapl".as_char_ptr()) };
        let raw = NonNull::new(kernel::error::from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // INVARIANT: The domain was just allocated. If the `Arc` cannot be allocated, the drop of
        // the value frees the domain.
        Ok(Arc::new(
            Self {
                raw,
                charge,
                device,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Returns the device.
    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns whether the driver may sleep when it maps a region for fast registration.
    pub(crate) fn sleeps_to_map(&self) -> bool {
        self.device.driver().sleeps_to_map
    }

    /// Returns whether work requests of the device can register memory.
    pub(crate) fn has_fast_registration(&self) -> bool {
        self.device.limits().max_fast_reg_pages != 0
    }

    /// Returns whether the driver loses a receive from a shared receive queue if its connection
    /// ends amid the message.
    pub(crate) fn loses_receives(&self) -> bool {
        self.device.driver().loses_receives
    }

    /// Pins memory of the calling process for the device: [`Umem::pin`].
    pub(crate) fn pin(&self, start: u64, length: u64, access: Access) -> Result<Umem> {
        Umem::pin(self.device.clone(), start, length, access)
    }

    /// Returns the `local_dma_lkey`, which grants work requests of this side access to all memory.
    ///
    /// It is for [`KernelMemory`](super::kernel_memory::KernelMemory), and for DMA addresses of
    /// kernel consumers. No consumer ever gets it.
    pub(super) fn local_key(&self) -> u32 {
        // SAFETY: By the type invariant the protection domain is alive.
        unsafe { (*self.raw.as_ptr()).local_dma_lkey }
    }

    /// Returns the key for DMA addresses of kernel consumers. It is valid as long as `self`.
    pub(crate) fn all_memory(&self) -> AllMemory {
        AllMemory(self.local_key())
    }

    /// Returns the C pointer, which is valid as long as `self`.
    pub(super) fn as_ptr(&self) -> *mut bindings::ib_pd {
        self.raw.as_ptr()
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the protection domain is alive.
        let ret = if unsafe { bindings::kdapl_helper_pd_is_used(self.raw.as_ptr()) } {
            // The wrappers of all objects in it held an `Arc` of `self`, so an object that is left
            // could not be destroyed. `ib_core` does not check for these.
            EBUSY.to_errno()
        } else {
            // SAFETY: By the type invariant this value owns the domain, and it contains no object.
            unsafe { bindings::ib_dealloc_pd_user(self.raw.as_ptr(), core::ptr::null_mut()) }
        };
        check_destroyed("protection domain", ret, (), &mut self.charge);
    }
}

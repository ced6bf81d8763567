// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Regions that are mapped again and again.

use super::{
    FastMr,
    UNUSED, //
};
use crate::rdma::{
    dma_pages::DmaPages,
    mr::{
        destroy,
        Access, //
    },
    pd::Pd, //
};
use kdapl_bindings as bindings;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};

/// Bits of a key that change with each mapping.
const LOW_BYTE: u32 = 0xff;

impl FastMr {
    /// Creates a region for `pages` pages, which maps nothing yet: see [`FastMr::map`].
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `E2BIG` for more pages than a region of the device has, `EAGAIN` above a limit of the user,
    /// `ENOMEM`, any other error of the driver.
    pub(crate) fn reusable(pd: Arc<Pd>, pages: u32) -> Result<Arc<Self>> {
        let length = u64::from(pages).saturating_mul(PAGE_SIZE as u64);
        Self::allocate(pd, pages, length, Access::default(), None)
    }

    /// Destroys a region, unless a request holds it: it is destroyed after that request then.
    /// Returns `false` if the driver fails to destroy it, so that the pages have to stay mapped.
    ///
    /// Context: process; sleeps.
    pub(crate) fn destroy(this: Arc<Self>) -> bool {
        let Some(mut only) = Arc::into_unique_or_drop(this) else {
            return true;
        };
        let region = only.as_mut().project();
        // INVARIANT: The value is dropped below, and does not use the region.
        *region.is_over = true;
        // SAFETY: By the type invariant the value owns the region. No request holds it.
        unsafe { destroy(*region.raw, region.charge) }
    }

    /// Maps the pages into a region that no request holds and whose keys are all invalid. Its users
    /// address them from `address` on. The region gets another key, even on failure.
    ///
    /// The caller has the only reference: see [`Arc::into_unique_or_drop`]. If a request holds the
    /// region, that drops the caller's reference, and the region is destroyed after the request.
    ///
    /// The caller keeps the pages mapped until the key is invalid or the region is destroyed.
    ///
    /// Context: any that may take a spinlock.
    ///
    /// # Errors
    ///
    /// `EADDRNOTAVAIL` if the pages are not contiguous for the device but for page boundaries, or
    /// it has them at another offset in their page. Any other error of the driver.
    pub(crate) fn map(
        self: Pin<&mut Self>,
        pages: &DmaPages,
        address: u64,
        access: Access,
    ) -> Result {
        let region = self.project();
        let raw = region.raw.as_ptr();
        let key = region.last_key.load(Relaxed);
        let next = key & !LOW_BYTE | key.wrapping_add(1) & LOW_BYTE;
        *region.access = access;
        region.state.store(UNUSED, Relaxed);
        // SAFETY: By the type invariant the region is alive. `self` is the only reference to the
        // value.
        unsafe { bindings::kdapl_helper_update_fast_reg_key(raw, next) };
        // SAFETY: As above. No request holds the region, so the driver does not access it.
        unsafe { pages.map_into(raw, address) }
    }
}

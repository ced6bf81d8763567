// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Pages of the kernel that are mapped for a device, in a list that is allocated once.
//!
//! C header: [`include/linux/scatterlist.h`](srctree/include/linux/scatterlist.h)

use super::pd::Pd;
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// Pages to map.
#[derive(Clone, Copy)]
pub(crate) enum Pages {
    /// From this address of the kernel on, in its linear mapping, in the vmalloc area, or static
    /// data of a module.
    Virtual(u64),
    /// At the physical addresses of an array.
    Physical(NonNull<u64>),
}

/// A list of pages, and their DMA mapping.
///
/// # Invariants
///
/// `list` has room for `capacity` entries, and is owned by this value. If `mapped` is not 0, as many
/// of its entries are mapped for the device of `pd`, into `segments` DMA segments.
pub(crate) struct DmaPages {
    list: NonNull<bindings::scatterlist>,
    capacity: u32,
    mapped: u32,
    segments: u32,
    pd: Arc<Pd>,
}

// SAFETY: The list is memory of the kernel, which any thread may access.
unsafe impl Send for DmaPages {}
// SAFETY: A shared reference only reads the list.
unsafe impl Sync for DmaPages {}

impl DmaPages {
    /// Allocates a list for `capacity` pages. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(pd: Arc<Pd>, capacity: u32) -> Result<Self> {
        // SAFETY: The helper only allocates.
        let list = unsafe { bindings::kdapl_helper_sg_alloc(capacity) };
        // INVARIANT: The list was just allocated. Nothing is mapped.
        Ok(Self {
            list: NonNull::new(list).ok_or(ENOMEM)?,
            capacity,
            mapped: 0,
            segments: 0,
            pd,
        })
    }

    /// Maps `count` pages for the device. The device writes to them only if `write` is true.
    ///
    /// Context: any.
    ///
    /// # Errors
    ///
    /// `E2BIG` for no pages or more than the list has. `EFAULT` if one does not begin at a page
    /// boundary, is not mapped by the kernel, or not writable as requested. `EBUSY` if pages are
    /// mapped. `EIO` if the device cannot reach them.
    ///
    /// # Safety
    ///
    /// An array has `count` elements. The memory stays allocated until it is unmapped.
    pub(crate) unsafe fn map(&mut self, pages: Pages, count: u32, write: bool) -> Result {
        if count == 0 || count > self.capacity {
            return Err(E2BIG);
        }
        if self.mapped != 0 {
            return Err(EBUSY);
        }
        let list = self.list.as_ptr();
        let ret = match pages {
            // SAFETY: By the type invariant the list has room. The helper checks the addresses.
            Pages::Virtual(start) => unsafe {
                bindings::kdapl_helper_sg_of_virtual(list, start, count, write)
            },
            // SAFETY: As above. By the safety requirement the array has `count` elements.
            Pages::Physical(array) => unsafe {
                bindings::kdapl_helper_sg_of_physical(list, array.as_ptr(), count, write)
            },
        };
        kernel::error::to_result(ret)?;
        // SAFETY: The device is alive, and the list has `count` entries.
        let segments =
            unsafe { bindings::kdapl_helper_sg_map(self.pd.device().as_ptr(), list, count) };
        if segments == 0 {
            return Err(EIO);
        }
        // INVARIANT: The entries were just mapped.
        (self.mapped, self.segments) = (count, segments);
        Ok(())
    }

    /// Returns the number of bytes that are mapped.
    pub(crate) fn length(&self) -> u64 {
        u64::from(self.mapped).saturating_mul(PAGE_SIZE as u64)
    }

    /// Maps the pages into a region, whose users address them from `address` on.
    ///
    /// # Errors
    ///
    /// As for [`FastMr::map`](super::fast_mr::FastMr::map).
    ///
    /// # Safety
    ///
    /// The region is alive. No request has it, and the caller has the only reference to it.
    pub(super) unsafe fn map_into(&self, raw: *mut bindings::ib_mr, address: u64) -> Result {
        // SAFETY: By the type invariant the list has so many DMA segments. The caller guarantees
        // the rest.
        let ret = unsafe {
            bindings::kdapl_helper_map_sg(
                raw,
                self.list.as_ptr(),
                self.segments,
                self.length(),
                address,
            )
        };
        kernel::error::to_result(ret)
    }

    /// Ends the DMA mapping, if there is one. The caller has made sure that neither the device nor
    /// a peer accesses the pages any more. Context: any.
    pub(crate) fn unmap(&mut self) {
        if self.mapped == 0 {
            return;
        }
        let (device, list) = (self.pd.device().as_ptr(), self.list.as_ptr());
        // SAFETY: By the type invariant so many entries are mapped for this device.
        unsafe { bindings::kdapl_helper_sg_unmap(device, list, self.mapped) };
        // INVARIANT: Nothing is mapped.
        (self.mapped, self.segments) = (0, 0);
    }
}

impl Drop for DmaPages {
    fn drop(&mut self) {
        self.unmap();
        // SAFETY: By the type invariant this value owns the list.
        unsafe { bindings::kdapl_helper_sg_free(self.list.as_ptr()) };
    }
}

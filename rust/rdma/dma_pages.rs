// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Pages of the kernel that are mapped for a device, in a list that is allocated once.
//!
//! C header: [`include/linux/scatterlist.h`](srctree/include/linux/scatterlist.h)

use super::pd::Pd;
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::Arc, //
};

/// Memory to map.
#[derive(Clone, Copy)]
pub(crate) enum Pages {
    /// Pages from this address of the kernel on, in its linear mapping, in the vmalloc area, or
    /// static data of a module.
    Virtual(u64),
    /// Array of physical addresses of pages.
    Physical(NonNull<u64>),
    /// Entries of a `struct scatterlist`.
    Scatterlist(NonNull<c_void>),
    /// Array of `struct bio_vec`.
    Bvecs(NonNull<c_void>),
}

impl Pages {
    /// Returns the kind, as the helper knows it, and the address.
    fn as_raw(self) -> (u32, u64) {
        match self {
            Self::Virtual(start) => (bindings::KDAPL_PAGES_VIRTUAL, start),
            Self::Physical(array) => (bindings::KDAPL_PAGES_PHYSICAL, number(array)),
            Self::Scatterlist(list) => (bindings::KDAPL_PAGES_SCATTERLIST, number(list)),
            Self::Bvecs(array) => (bindings::KDAPL_PAGES_BVECS, number(array)),
        }
    }
}

/// Converts a pointer to its address.
fn number<T>(pointer: NonNull<T>) -> u64 {
    pointer.as_ptr().expose_provenance() as u64
}

/// A list of pages, and their DMA mapping.
///
/// # Invariants
///
/// `list` has room for `capacity` entries, and is owned by this value. If `mapped` is not 0, as
/// many of its entries are mapped for the device of `pd`, into `segments` DMA segments.
pub(crate) struct DmaPages {
    list: NonNull<bindings::scatterlist>,
    capacity: u32,
    mapped: u32,
    /// The device writes to the pages that are mapped.
    is_written: bool,
    /// The kernel and the device access the pages that are mapped in turn without further calls.
    is_shared: bool,
    segments: u32,
    first: u64,
    bytes: u64,
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
        let room = i32::try_from(capacity).map_err(|_| ENOMEM)?;
        // SAFETY: The helper only allocates.
        let list = unsafe { bindings::kdapl_helper_new_dma_list(room) };
        // INVARIANT: The list was just allocated. Nothing is mapped.
        Ok(Self {
            list: NonNull::new(list).ok_or(ENOMEM)?,
            capacity,
            mapped: 0,
            is_written: false,
            is_shared: true,
            segments: 0,
            first: 0,
            bytes: 0,
            pd,
        })
    }

    /// Maps `count` pages, or entries of a list, for the device. The device writes to them only if
    /// `write` is true.
    ///
    /// Context: any.
    ///
    /// # Errors
    ///
    /// `E2BIG` for no pages or more than the list has. `EFAULT` for what is no memory of the
    /// kernel, not writable as requested, or empty, and for a page that does not begin at a page
    /// boundary. `ERANGE` if two entries do not meet at a page boundary. `EBUSY` if pages are
    /// mapped. `EIO` if the device cannot reach them.
    ///
    /// # Safety
    ///
    /// An array or a list has `count` elements. The memory stays allocated until it is unmapped,
    /// and it is unmapped only once no device and no peer has a valid key of it.
    pub(crate) unsafe fn map(&mut self, pages: Pages, count: u32, write: bool) -> Result {
        if self.mapped != 0 {
            return Err(EBUSY);
        }
        let list = self.list.as_ptr();
        let (kind, source) = pages.as_raw();
        // SAFETY: By the type invariant the list has room for `capacity` entries. The caller
        // guarantees the rest. The helper checks the addresses.
        let ret = unsafe {
            bindings::kdapl_helper_sg_fill(
                list,
                self.capacity,
                kind,
                source,
                count,
                write,
                &raw mut self.first,
                &raw mut self.bytes,
            )
        };
        kernel::error::to_result(ret)?;
        // SAFETY: The device is alive, and the list has `count` entries.
        let segments =
            unsafe { bindings::kdapl_helper_sg_map(self.pd.device().as_ptr(), list, count, write) };
        if segments == 0 {
            return Err(EIO);
        }
        // INVARIANT: The entries were just mapped.
        (self.mapped, self.segments, self.is_written) = (count, segments, write);
        let device = self.pd.device().as_ptr();
        // SAFETY: By the type invariant the list has so many DMA segments of this device.
        self.is_shared = unsafe { bindings::kdapl_helper_sg_is_shared(device, list, segments) };
        Ok(())
    }

    /// Returns whether the kernel and the device access the memory in turn without further calls.
    /// Otherwise the device may have a copy, which is made and written back with the mapping.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns the address of the first byte of the pages that are mapped, as the kernel knows it.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of bytes of the pages that are mapped.
    pub(crate) fn length(&self) -> u64 {
        self.bytes
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
        let segments = i32::try_from(self.segments)?;
        // SAFETY: By the type invariant the list has so many DMA segments. The caller guarantees
        // the rest.
        let ret = unsafe {
            bindings::kdapl_helper_map_dma_list(
                raw,
                self.list.as_ptr(),
                segments,
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
        unsafe { bindings::kdapl_helper_sg_unmap(device, list, self.mapped, self.is_written) };
        // INVARIANT: Nothing is mapped.
        (self.mapped, self.segments) = (0, 0);
    }

    /// Leaves the pages mapped for ever: the driver has not destroyed a region over them.
    pub(crate) fn leak(&mut self) {
        // INVARIANT: The mapping has no owner any more.
        (self.mapped, self.segments) = (0, 0);
    }
}

impl Drop for DmaPages {
    fn drop(&mut self) {
        self.unmap();
        // SAFETY: By the type invariant this value owns the list.
        unsafe { bindings::kvfree(self.list.as_ptr().cast()) };
    }
}

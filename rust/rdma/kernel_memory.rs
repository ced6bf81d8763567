// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Kernel memory for work requests of this side.
//!
//! A work request of the kernel names its memory by DMA addresses and by a key of the protection
//! domain that grants access to all memory (`local_dma_lkey`). So the memory needs no registration.
//! A peer gets no key: it can access this memory only through the work requests that are posted,
//! and through regions over it that a work request registers ([`FastMr`](super::fast_mr::FastMr)).
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{
    pd::Pd,
    wr::SgList, //
};
use kdapl_bindings as bindings;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc,
    task::might_sleep, //
};

/// Page size, as a length in bytes.
const PAGE: u64 = PAGE_SIZE as u64;

/// Largest number of DMA mappings: pages for half a terabyte, whose addresses take 1 GiB. (The
/// kernel warns of a request for 2 GiB or more as of a bug.)
const MAX_PIECES: u64 = 1 << 27;

/// Memory that is mapped for a device.
///
/// # Invariants
///
/// `pieces` are DMA mappings of this `kind` for the device of `pd`, owned by this value. They cover
/// the memory from `start` on: as a single mapping, or with one mapping for each page.
pub(crate) struct KernelMemory {
    start: u64,
    length: u64,
    kind: u32,
    pieces: KVVec<u64>,
    pd: Arc<Pd>,
}

impl KernelMemory {
    /// Maps `length` bytes from the kernel address `start` on. The memory is in the linear mapping,
    /// as that of `kmalloc()`, in the vmalloc area, or static data of a module. The device writes
    /// to it only if `write` is true. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EFAULT` if a part of the range is of neither kind, not mapped or not writable as requested,
    /// `E2BIG` for more memory than the machine has, `ENOMEM`, `EIO` if the device cannot reach the
    /// memory.
    ///
    /// # Safety
    ///
    /// The memory stays allocated as long as the value exists.
    pub(crate) unsafe fn map(pd: Arc<Pd>, start: u64, length: u64, write: bool) -> Result<Self> {
        might_sleep();
        let end = start.checked_add(length).ok_or(EFAULT)?;
        // SAFETY: The helper only reads a number.
        if length.div_ceil(PAGE) > unsafe { bindings::kdapl_helper_machine_pages() } {
            return Err(E2BIG);
        }
        // Before the memory for the addresses is allocated: the length may be an invention.
        // SAFETY: The helper does not dereference the pointers.
        let kind =
            unsafe { bindings::kdapl_helper_memory_kind(pointer(start), pointer(end), write) };
        let count = match kind {
            bindings::KDAPL_MEMORY_LINEAR => 1,
            bindings::KDAPL_MEMORY_PAGES => end.div_ceil(PAGE).saturating_sub(start / PAGE),
            _ => return Err(EFAULT),
        };
        if count > MAX_PIECES {
            return Err(E2BIG);
        }
        let count = usize::try_from(count).map_err(|_| ENOMEM)?;
        // INVARIANT: Nothing is mapped yet. The drop unmaps what the loop below maps.
        let mut this = Self {
            start,
            length,
            kind,
            pieces: KVVec::with_capacity(count, GFP_KERNEL)?,
            pd,
        };
        let mut offset = 0;
        while offset < length {
            let size = this.piece_at(offset);
            let mut address = 0;
            // SAFETY: The device is alive. The caller guarantees that the memory is allocated, and
            // it is of this kind. A piece does not cross a page boundary if the kind is that of
            // pages.
            let mapped = unsafe {
                bindings::kdapl_helper_dma_map(
                    this.pd.device().as_ptr(),
                    kind,
                    pointer(start.saturating_add(offset)),
                    usize::try_from(size)?,
                    &raw mut address,
                )
            };
            if !mapped {
                return Err(EIO);
            }
            this.pieces
                .push_within_capacity(address)
                .map_err(|_| ENOMEM)?;
            offset = offset.saturating_add(size);
        }
        Ok(this)
    }

    /// Returns whether the memory is a single mapping.
    fn is_linear(&self) -> bool {
        self.kind == bindings::KDAPL_MEMORY_LINEAR
    }

    /// Returns the number of bytes from an offset to the end of its mapping.
    fn piece_at(&self, offset: u64) -> u64 {
        let left = self.length.saturating_sub(offset);
        if self.is_linear() {
            return left;
        }
        let into = self.start.saturating_add(offset) % PAGE;
        PAGE.saturating_sub(into).min(left)
    }

    /// Returns the index of the mapping that contains an offset, and the offset within that
    /// mapping.
    fn place_of(&self, offset: u64) -> (u64, u64) {
        if self.is_linear() {
            return (0, offset);
        }
        let position = (self.start % PAGE).saturating_add(offset);
        match position / PAGE {
            // The first mapping begins at the start of the memory, not at a page boundary.
            0 => (0, offset),
            piece => (piece, position % PAGE),
        }
    }

    /// Adds a part of the memory to the list of a work request, with one segment for each mapping.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the list is full, or the part is not within the memory.
    #[inline]
    pub(crate) fn push(&self, list: &mut SgList, offset: u64, length: u32) -> Result {
        match *self.pieces.as_slice() {
            [address] => {
                let end = offset.checked_add(u64::from(length)).ok_or(EINVAL)?;
                if end > self.length {
                    return Err(EINVAL);
                }
                list.push_with_global_key(address.wrapping_add(offset), length, self.pd.local_key())
            }
            _ => self.push_pieces(list, offset, length),
        }
    }

    /// Adds a part of the memory that may span several mappings.
    fn push_pieces(&self, list: &mut SgList, offset: u64, length: u32) -> Result {
        let key = self.pd.local_key();
        self.for_each_mapping(offset, length, |address, size| {
            list.push_with_global_key(address, size, key)
        })
    }

    /// Calls `take` with the DMA address and the size of each mapping of a part of the memory, cut
    /// to that part.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the part is not within the memory, and errors of `take`.
    pub(super) fn for_each_mapping(
        &self,
        mut offset: u64,
        length: u32,
        mut take: impl FnMut(u64, u32) -> Result,
    ) -> Result {
        let mut left = u64::from(length);
        while left > 0 {
            let size = self.piece_at(offset).min(left);
            let (piece, into) = self.place_of(offset);
            let address = *self.pieces.get(usize::try_from(piece)?).ok_or(EINVAL)?;
            if size == 0 {
                return Err(EINVAL);
            }
            take(address.wrapping_add(into), u32::try_from(size)?)?;
            offset = offset.saturating_add(size);
            left = left.saturating_sub(size);
        }
        Ok(())
    }
}

impl Drop for KernelMemory {
    fn drop(&mut self) {
        let mut offset = 0;
        for address in &self.pieces {
            let size = self.piece_at(offset);
            // SAFETY: By the type invariant this is a mapping for the device, of this kind and
            // size.
            unsafe {
                bindings::kdapl_helper_dma_unmap(
                    self.pd.device().as_ptr(),
                    self.kind,
                    *address,
                    // The same size as when it was mapped, where it fitted.
                    size as usize,
                )
            };
            offset = offset.saturating_add(size);
        }
    }
}

/// Converts an address to a C pointer.
fn pointer(address: u64) -> *mut kernel::ffi::c_void {
    // Addresses have 64 bits on every machine that has RDMA.
    core::ptr::without_provenance_mut(address as usize)
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The kernel's own memory, for work requests of this side.
//!
//! A work request of the kernel names its memory by addresses of the device and by the key of the
//! protection domain that opens all of them. So nothing has to be registered, and a peer gets no key: it
//! cannot reach this memory but by what is posted.
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

/// A page, as addresses are counted.
const PAGE: u64 = PAGE_SIZE as u64;

/// The longest list of pieces: half a terabyte of pages, whose addresses take 1 GiB. (The kernel takes
/// a request for 2 GiB and more for a bug.)
const MAX_PIECES: u64 = 1 << 27;

/// Memory that is mapped for a device.
///
/// # Invariants
///
/// `pieces` are mappings of the protection domain's device of this `kind`, ours to undo: the memory from
/// `start` on, in one piece or in one for each page of it.
pub(crate) struct KernelMemory {
    start: u64,
    length: u64,
    kind: u32,
    pieces: KVVec<u64>,
    pd: Arc<Pd>,
}

impl KernelMemory {
    /// Maps `length` bytes from the kernel's address `start` on: memory of `kmalloc()` and its kind, or of
    /// `vmalloc()` and its kind. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EFAULT` for an address of neither kind, `E2BIG` for more than the machine has, `ENOMEM`, `EIO`
    /// if the device cannot reach it.
    ///
    /// # Safety
    ///
    /// The memory stays as long as the value.
    pub(crate) unsafe fn map(pd: Arc<Pd>, start: u64, length: u64) -> Result<Self> {
        might_sleep();
        let end = start.checked_add(length).ok_or(EFAULT)?;
        // SAFETY: Only reads a number.
        if length.div_ceil(PAGE) > unsafe { bindings::kdapl_helper_machine_pages() } {
            return Err(E2BIG);
        }
        // SAFETY: Only looks at the numbers.
        let kind = unsafe { bindings::kdapl_helper_memory_kind(pointer(start), pointer(end)) };
        let count = match kind {
            bindings::KDAPL_MEMORY_LINEAR => 1,
            bindings::KDAPL_MEMORY_PAGES => end.div_ceil(PAGE).saturating_sub(start / PAGE),
            _ => return Err(EFAULT),
        };
        if count > MAX_PIECES {
            return Err(E2BIG);
        }
        let count = usize::try_from(count).map_err(|_| ENOMEM)?;
        // INVARIANT: Nothing is mapped yet. What is, the drop undoes.
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
            // SAFETY: The device is alive; the caller vouches for the memory, which is of this kind, and a
            // piece does not go beyond a page if the kind is of pages.
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

    /// Whether it is in one piece.
    fn is_linear(&self) -> bool {
        self.kind == bindings::KDAPL_MEMORY_LINEAR
    }

    /// Bytes from an offset to the end of its piece.
    fn piece_at(&self, offset: u64) -> u64 {
        let left = self.length.saturating_sub(offset);
        if self.is_linear() {
            return left;
        }
        let into = self.start.saturating_add(offset) % PAGE;
        PAGE.saturating_sub(into).min(left)
    }

    /// The piece of an offset: its number, and how far into it the offset is.
    fn place_of(&self, offset: u64) -> (u64, u64) {
        if self.is_linear() {
            return (0, offset);
        }
        let position = (self.start % PAGE).saturating_add(offset);
        match position / PAGE {
            // Its mapping begins where the memory does.
            0 => (0, offset),
            piece => (piece, position % PAGE),
        }
    }

    /// Adds a part of it to the memory of a work request: a segment for each piece.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the list takes no more, or the part is not in it.
    #[inline]
    pub(crate) fn push(&self, list: &mut SgList, offset: u64, length: u32) -> Result {
        match *self.pieces.as_slice() {
            [address] => {
                let end = offset.checked_add(u64::from(length)).ok_or(EINVAL)?;
                if end > self.length {
                    return Err(EINVAL);
                }
                list.push_open(address.wrapping_add(offset), length, self.pd.local_key())
            }
            _ => self.push_pieces(list, offset, length),
        }
    }

    /// As [`KernelMemory::push`], where there may be several.
    fn push_pieces(&self, list: &mut SgList, offset: u64, length: u32) -> Result {
        let (mut offset, mut left) = (offset, u64::from(length));
        while left > 0 {
            let size = self.piece_at(offset).min(left);
            let (piece, into) = self.place_of(offset);
            let piece = usize::try_from(piece)?;
            let address = *self.pieces.get(piece).ok_or(EINVAL)?;
            if size == 0 {
                return Err(EINVAL);
            }
            list.push_open(
                address.wrapping_add(into),
                u32::try_from(size)?,
                self.pd.local_key(),
            )?;
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
            // SAFETY: By the invariant this is a mapping of the device, of this kind and size.
            unsafe {
                bindings::kdapl_helper_dma_unmap(
                    self.pd.device().as_ptr(),
                    self.kind,
                    *address,
                    // As it was when it was mapped.
                    size as usize,
                )
            };
            offset = offset.saturating_add(size);
        }
    }
}

/// An address as C takes it.
fn pointer(address: u64) -> *mut kernel::ffi::c_void {
    // As wide on every machine that has RDMA.
    core::ptr::without_provenance_mut(address as usize)
}

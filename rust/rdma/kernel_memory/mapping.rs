// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DMA mappings of kernel memory.

use super::source::{
    Piece,
    Shape,
    Source, //
};
use crate::{
    model::pieces::Ends,
    rdma::device::Device,
    sys::kvvec, //
};
use kdapl_bindings as bindings;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc, //
    },
};

/// Largest number of DMA mappings: pages for half a terabyte, whose addresses take 1 GiB. (The
/// kernel warns of a request for 2 GiB or more as of a bug.)
const MAX_PIECES: usize = 1 << 27;

/// Memory that is mapped for a device, piece by piece.
///
/// # Invariants
///
/// `addresses` are DMA mappings of the first pieces for `device`, owned by this value.
pub(super) struct Mapping {
    /// Kernel's address of the first byte.
    pub(super) start: u64,
    length: u64,
    pub(super) is_writable: bool,
    layout: Layout,
    addresses: KVVec<u64>,
    /// A region over the memory could not be destroyed, so the memory stays mapped for ever.
    stays: Atomic<bool>,
    device: Arc<Device>,
}

/// Ends of the pieces: [`Ends`].
enum Layout {
    Regular { first: u64, size: u64 },
    Listed(KVVec<u64>),
}

impl Mapping {
    /// Maps the first `length` bytes of `source`.
    ///
    /// # Safety
    ///
    /// As for [`KernelMemory::map`](super::KernelMemory::map).
    pub(super) unsafe fn new(device: Arc<Device>, source: &Source, length: u64) -> Result<Self> {
        // The length may be an invention. So no memory is allocated for it before the check of the
        // source.
        // SAFETY: The helper only reads a number.
        if length.div_ceil(PAGE_SIZE as u64) > unsafe { bindings::kdapl_helper_machine_pages() } {
            return Err(E2BIG);
        }
        // SAFETY: The caller guarantees that the source is valid.
        let shape: Shape = unsafe { source.shape(length) }?;
        if shape.pieces > MAX_PIECES {
            return Err(E2BIG);
        }
        // INVARIANT: Nothing is mapped yet. The drop unmaps what `add` maps.
        let mut this = Self {
            start: shape.start,
            length,
            is_writable: shape.is_writable,
            layout: match shape.regular {
                Some((first, size)) => Layout::Regular { first, size },
                None => Layout::Listed(kvvec::with_capacity(shape.pieces, GFP_KERNEL)?),
            },
            addresses: kvvec::with_capacity(shape.pieces, GFP_KERNEL)?,
            stays: Atomic::new(false),
            device,
        };
        // SAFETY: As above.
        unsafe { source.for_each(length, |piece| this.add(piece)) }?;
        Ok(this)
    }

    /// Maps the next piece.
    fn add(&mut self, piece: Piece) -> Result {
        if piece.page.is_null() {
            return Err(EFAULT);
        }
        let mut address = 0;
        // SAFETY: The device is alive. The page is not NULL. By the contract of `new` the list
        // names memory and does not change after `shape` has checked it.
        let ret = unsafe {
            bindings::kdapl_helper_dma_map(
                self.device.as_ptr(),
                piece.page,
                piece.offset,
                usize::try_from(piece.size)?,
                self.is_writable,
                &raw mut address,
            )
        };
        kernel::error::to_result(ret)?;
        if self.keep(address, piece.size).is_err() {
            // SAFETY: This is the mapping that was just made, and it was not kept.
            unsafe { self.unmap(address, piece.size) };
            return Err(EINVAL);
        }
        Ok(())
    }

    /// Keeps a new mapping of this size. It fails only if the list has changed against the contract
    /// of [`Mapping::new`]: there is room for each piece.
    fn keep(&mut self, address: u64, size: u64) -> Result {
        // The end first: the mapping of an address without an end could not be ended.
        if let Layout::Listed(ends) = &mut self.layout {
            let last = ends.last().copied().unwrap_or(0);
            let end = last.checked_add(size).ok_or(EINVAL)?;
            ends.push_within_capacity(end).map_err(|_| EINVAL)?;
        }
        // INVARIANT: The address is that of the new mapping.
        let kept = self.addresses.push_within_capacity(address);
        kept.map_err(|_| EINVAL)
    }

    /// Keeps the memory mapped for ever: a region over it could not be destroyed.
    pub(super) fn stay(&self) {
        self.stays.store(true, Release);
    }

    /// Returns whether the memory stays mapped for ever.
    pub(super) fn stays(&self) -> bool {
        self.stays.load(Acquire)
    }

    /// Ends a mapping.
    ///
    /// # Safety
    ///
    /// It is a mapping for the device, of this size, and is not used afterwards.
    unsafe fn unmap(&self, address: u64, size: u64) {
        let (device, size) = (self.device.as_ptr(), size as usize);
        // SAFETY: The device is alive. The caller guarantees the rest. The size fitted when the
        // memory was mapped.
        unsafe { bindings::kdapl_helper_dma_unmap(device, address, size, self.is_writable) };
    }

    fn ends(&self) -> Ends<'_> {
        match &self.layout {
            Layout::Regular { first, size } => Ends::Regular {
                first: *first,
                size: *size,
            },
            Layout::Listed(ends) => Ends::Listed(ends),
        }
    }

    /// Returns the DMA address of an offset, and the number of bytes from there to the end of the
    /// mapping. `None` beyond the end of the memory.
    #[inline]
    pub(super) fn dma_at(&self, offset: u64) -> Option<(u64, u64)> {
        let position = self.ends().position(offset)?;
        let rest = self.length.checked_sub(offset)?;
        let address = self.addresses.get(position.piece)?;
        Some((address.wrapping_add(position.into), position.left.min(rest)))
    }

    /// Implements [`KernelMemory::for_each_mapping`](super::KernelMemory::for_each_mapping).
    pub(super) fn for_each_mapping(
        &self,
        mut offset: u64,
        length: u64,
        mut take: impl FnMut(u64, u32) -> Result,
    ) -> Result {
        let mut left = length;
        while left > 0 {
            let (address, size) = self.dma_at(offset).ok_or(EINVAL)?;
            let size = size.min(left);
            if size == 0 {
                return Err(EINVAL);
            }
            take(address, u32::try_from(size)?)?;
            offset = offset.saturating_add(size);
            left = left.saturating_sub(size);
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.stays() {
            return;
        }
        let mut offset = 0;
        for address in &self.addresses {
            let size = match self.ends().position(offset) {
                Some(position) => position.left.min(self.length.saturating_sub(offset)),
                None => 0,
            };
            // SAFETY: By the type invariant this is the mapping of the piece at `offset`.
            unsafe { self.unmap(*address, size) };
            offset = offset.saturating_add(size);
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Kernel memory for work requests of this side.
//!
//! A work request of the kernel names its memory by DMA addresses and by a key of the protection
//! domain that grants access to all memory (`local_dma_lkey`). So the memory needs no registration.
//! A peer gets no key: it can access this memory only through the work requests that are posted,
//! and through regions over it that a work request registers ([`FastMr`](super::fast_mr::FastMr)).
//!
//! A [`Source`] describes the memory. Its pieces are mapped one by one, and are found again by
//! their offsets in the memory.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

mod mapping;
mod source;

use self::mapping::Mapping;
pub(crate) use self::source::Source;
use super::{
    pd::Pd,
    wr::{
        AllMemory,
        SgList, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    task::might_sleep, //
};

/// Memory that is mapped for a device, and a protection domain whose requests may use it.
#[derive(Clone)]
pub(crate) struct KernelMemory {
    mapping: Arc<Mapping>,
    pd: Arc<Pd>,
}

impl KernelMemory {
    /// Maps the first `length` bytes of `source`.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EFAULT` if a part of it is not mapped or is no memory, `EINVAL` if `source` has fewer
    /// bytes, `E2BIG` for more memory than the machine has, `ENOMEM`, `EIO` if the device cannot
    /// reach the memory, `ENOTSUPP` if the device would get a copy of it (swiotlb) or does not see
    /// the caches of the processors.
    ///
    /// # Safety
    ///
    /// `source` is valid, as its type describes. Its memory stays allocated as long as the value
    /// and its clones exist.
    pub(crate) unsafe fn map(pd: Arc<Pd>, source: &Source, length: u64) -> Result<Self> {
        might_sleep();
        // SAFETY: The caller guarantees it.
        let mapping = unsafe { Mapping::new(pd.device().clone(), source, length) }?;
        let mapping = Arc::new(mapping, GFP_KERNEL_ACCOUNT)?;
        Ok(Self { mapping, pd })
    }

    /// Returns the same memory for requests of another protection domain of the device.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a domain of another device.
    pub(crate) fn for_domain(&self, pd: Arc<Pd>) -> Result<Self> {
        if !Arc::ptr_eq(pd.device(), self.pd.device()) {
            return Err(EINVAL);
        }
        Ok(Self { pd, ..self.clone() })
    }

    /// Keeps the memory mapped for ever: a region over it could not be destroyed.
    pub(super) fn stay(&self) {
        self.mapping.stay();
    }

    /// Returns whether the memory stays mapped for ever.
    pub(super) fn stays(&self) -> bool {
        self.mapping.stays()
    }

    /// Returns the kernel's address of the first byte.
    pub(crate) fn start(&self) -> u64 {
        self.mapping.start
    }

    /// Returns whether all of the memory may be written.
    pub(crate) fn is_writable(&self) -> bool {
        self.mapping.is_writable
    }

    /// Returns whether a part of the memory is contiguous for the device.
    pub(crate) fn is_contiguous(&self, offset: u64, length: u32) -> bool {
        let found = self.mapping.dma_at(offset);
        found.is_some_and(|(_, left)| left >= u64::from(length))
    }

    /// Returns the DMA address of the memory, which has this length, and the key for it; `None` if
    /// it is not contiguous for the device.
    pub(crate) fn contiguous(&self, length: u64) -> Option<(u64, AllMemory)> {
        let (address, left) = self.mapping.dma_at(0)?;
        (left >= length).then(|| (address, self.pd.all_memory()))
    }

    /// Adds a part of the memory, which is not empty, to the list of a work request, with one
    /// segment for each mapping.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the list is full, or the part is not within the memory.
    #[inline]
    pub(crate) fn push(&self, list: &mut SgList, offset: u64, length: u32) -> Result {
        match self.mapping.dma_at(offset) {
            // Mostly one mapping has all of the part.
            Some((address, left)) if left >= u64::from(length) => {
                list.push_with_global_key(address, length, self.pd.local_key())
            }
            _ => self.push_each(list, offset, length),
        }
    }

    #[inline(never)]
    fn push_each(&self, list: &mut SgList, offset: u64, length: u32) -> Result {
        let key = self.pd.local_key();
        self.mapping
            .for_each_mapping(offset, length.into(), |address, size| {
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
        offset: u64,
        length: u64,
        take: impl FnMut(u64, u32) -> Result,
    ) -> Result {
        self.mapping.for_each_mapping(offset, length, take)
    }
}

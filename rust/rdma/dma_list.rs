// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Lists of DMA segments, from which a region for fast registration is mapped.
//!
//! C header: [`include/linux/scatterlist.h`](srctree/include/linux/scatterlist.h)

use super::kernel_memory::KernelMemory;
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// A scatterlist whose entries have a DMA address and a length.
///
/// # Invariants
///
/// `raw` has room for `room` entries, of which the first `len` are set. This value owns it.
pub(super) struct DmaList {
    raw: NonNull<bindings::scatterlist>,
    len: i32,
    room: i32,
}

impl DmaList {
    /// Creates an empty list.
    fn with_room(room: i32) -> Result<Self> {
        // SAFETY: The helper only allocates.
        let raw = NonNull::new(unsafe { bindings::kdapl_helper_new_dma_list(room) });
        // INVARIANT: No entry is set.
        Ok(Self {
            raw: raw.ok_or(ENOMEM)?,
            len: 0,
            room,
        })
    }

    /// Lists the mappings of a part of kernel memory.
    pub(super) fn of(memory: &KernelMemory, offset: u64, length: u64) -> Result<Self> {
        let mut count = 0_i32;
        memory.for_each_mapping(offset, length, |_, _| {
            count = count.checked_add(1).ok_or(E2BIG)?;
            Ok(())
        })?;
        let mut this = Self::with_room(count)?;
        memory.for_each_mapping(offset, length, |address, size| this.push(address, size))?;
        Ok(this)
    }

    fn push(&mut self, address: u64, length: u32) -> Result {
        if self.len >= self.room {
            return Err(EINVAL);
        }
        // SAFETY: By the type invariant there is room for this entry.
        unsafe {
            bindings::kdapl_helper_set_dma_segment(self.raw.as_ptr(), self.len, address, length)
        };
        // INVARIANT: One more entry is set.
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    /// Returns the first entry, and the number of entries.
    pub(super) fn as_raw(&mut self) -> (*mut bindings::scatterlist, i32) {
        (self.raw.as_ptr(), self.len)
    }
}

impl Drop for DmaList {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this value owns the list.
        unsafe { bindings::kvfree(self.raw.as_ptr().cast()) };
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Scatter/gather list of a work request.

use core::mem::MaybeUninit;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Largest number of segments of a work request.
const MAX_SGE: usize = bindings::KDAPL_IOV_MAX as usize;

/// Scatter/gather list of a work request.
///
/// It has half a kilobyte, so it is built in place and is neither cleared nor moved.
///
/// # Invariants
///
/// The first `len` segments are initialised.
pub(crate) struct SgList {
    sge: [MaybeUninit<bindings::ib_sge>; MAX_SGE],
    len: usize,
    /// Whether a segment has a key that no peer may use: the key to all memory (`local_dma_lkey`),
    /// or that of a region which peers may not write to.
    has_private_key: bool,
}

impl SgList {
    /// Creates an empty list.
    pub(crate) fn new() -> Self {
        Self {
            // SAFETY: An array of `MaybeUninit` needs no initialisation. (An array built element by
            // element would be a constant, which the compiler may copy.)
            sge: unsafe { MaybeUninit::uninit().assume_init() },
            len: 0,
            has_private_key: false,
        }
    }

    /// Adds a segment of memory that is registered with the key `lkey`.
    pub(crate) fn push(&mut self, addr: u64, length: u32, lkey: u32) -> Result {
        let element = self.sge.get_mut(self.len).ok_or(EINVAL)?;
        // INVARIANT: This initialises one more segment.
        element.write(bindings::ib_sge { addr, length, lkey });
        self.len = self.len.wrapping_add(1);
        Ok(())
    }

    /// Adds a segment with the key to all memory, which no peer may learn.
    pub(in crate::rdma) fn push_with_global_key(
        &mut self,
        addr: u64,
        length: u32,
        key_of_all: u32,
    ) -> Result {
        self.push_private(addr, length, key_of_all)
    }

    /// Adds a segment at DMA addresses, which no region restricts. The memory must stay allocated
    /// until the request has completed or its queue pair is destroyed: neither the list nor the
    /// device checks it. `kdat.h` obliges the kernel consumer to that.
    pub(crate) fn push_dma(&mut self, addr: u64, length: u32, key: AllMemory) -> Result {
        self.push_private(addr, length, key.0)
    }

    /// As [`SgList::push`], for a region which peers may not write to.
    pub(crate) fn push_private(&mut self, addr: u64, length: u32, lkey: u32) -> Result {
        self.has_private_key = true;
        self.push(addr, length, lkey)
    }

    /// Returns whether a segment has a key that no peer may use.
    pub(in crate::rdma) fn has_private_key(&self) -> bool {
        self.has_private_key
    }

    /// Returns the number of segments.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Removes all segments.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.has_private_key = false;
    }

    /// Returns the segments.
    pub(in crate::rdma) fn segments(&self) -> &[bindings::ib_sge] {
        // SAFETY: By the type invariant the first `len` segments are initialised.
        unsafe { core::slice::from_raw_parts(self.sge.as_ptr().cast(), self.len) }
    }

    /// Returns the pointer and the length, for a work request.
    pub(in crate::rdma) fn as_raw(&self) -> (*mut bindings::ib_sge, i32) {
        // The length is at most `MAX_SGE`.
        (self.sge.as_ptr().cast_mut().cast(), self.len as i32)
    }
}

/// The key of a protection domain to all memory, which only a [`SgList`] gets to see.
#[derive(Clone, Copy)]
pub(crate) struct AllMemory(pub(in crate::rdma) u32);

#[kunit_tests(kdapl_rdma_sg_list)]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_takes_no_segment() {
        let mut list = SgList::new();
        for number in 0..MAX_SGE {
            assert!(list.push(number as u64, 1, 2).is_ok());
        }
        assert_eq!(list.push(0, 1, 2), Err(EINVAL));
        assert_eq!(list.len(), MAX_SGE);
        assert_eq!(list.as_raw().1, MAX_SGE as i32);
    }

    #[test]
    fn a_list_knows_whether_it_has_a_private_key() {
        let mut list = SgList::new();
        assert!(list.push(0, 1, 2).is_ok());
        assert!(!list.has_private_key());
        assert!(list.push_with_global_key(0, 1, 3).is_ok());
        assert!(list.push(0, 1, 2).is_ok());
        assert!(list.has_private_key());
        list.clear();
        assert!(!list.has_private_key());
        assert_eq!(list.len(), 0);
        assert!(list.push_dma(0, 1, AllMemory(4)).is_ok());
        assert!(list.has_private_key());
        list.clear();
        assert!(list.push_private(0, 1, 5).is_ok());
        assert!(list.has_private_key());
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The memory region that the last post of a queue has named.
//!
//! The posts of a queue mostly name one Local Memory Region (LMR). An Endpoint keeps a copy of what
//! a post needs of it. Then the next post neither takes the lock of the Protection Zone (PZ) nor
//! searches its table. The table has an [edition](Editions), and the copy is valid for that edition
//! only. Each change that forbids posts to use a copied region begins a new edition.
//!
//! Memory of the kernel may be freed only when no Data Transfer Operation (DTO) in flight names it.
//! A free begins a new edition, and then searches each Endpoint under its lock. A post reads the
//! edition and stores its DTO under the same lock. So the search finds a post before it, and a post
//! after it reads the new edition.

use super::atomic::AtomicU64;

/// Edition of the table of a PZ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edition {
    /// Handle of the PZ.
    pz: u64,
    number: u64,
}

/// Editions of the table of one PZ.
pub(crate) struct Editions {
    pz: u64,
    number: AtomicU64,
}

impl Editions {
    /// Begins the first edition, of the PZ with this handle.
    pub(crate) fn new(pz: u64) -> Self {
        Self {
            pz,
            number: AtomicU64::new(0),
        }
    }

    /// Returns the present edition. The caller holds the lock of its Endpoint, or that of the
    /// table.
    pub(crate) fn current(&self) -> Edition {
        Edition {
            pz: self.pz,
            number: self.number.load(),
        }
    }

    /// Begins the next edition. The caller holds the lock of the table.
    pub(crate) fn advance(&self) {
        self.number.store(self.number.load().wrapping_add(1));
    }
}

/// Copy of a region whose bytes follow each other for the device as they do for the consumer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentRegion {
    pub(crate) edition: Edition,
    pub(crate) context: u32,
    /// Start address in the consumer's memory.
    pub(crate) address: u64,
    /// Length in bytes.
    pub(crate) length: u64,
    /// Start address for the device.
    pub(crate) device_address: u64,
    /// Receives and RDMA reads may write to this memory.
    pub(crate) writable: bool,
}

impl RecentRegion {
    /// Returns the address of a segment for the device. `None` unless the copy is valid in this
    /// edition, and shows that the segment may be used.
    #[inline]
    pub(crate) fn place(
        &self,
        edition: Edition,
        context: u32,
        address: u64,
        length: u32,
        writes: bool,
    ) -> Option<u64> {
        if self.edition != edition || self.context != context || (writes && !self.writable) {
            return None;
        }
        let offset = address.checked_sub(self.address)?;
        let end = offset.checked_add(length.into())?;
        (end <= self.length).then(|| self.device_address.wrapping_add(offset))
    }
}

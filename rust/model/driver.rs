// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What each driver of RDMA devices may be trusted with.
//!
//! Drivers are written for two kinds of callers: processes, which come through `ib_uverbs`, and
//! modules of the kernel, which own the memory that they use. kDAPL is neither: it is a module that
//! registers memory of processes, in a protection domain of the kernel. Few drivers were tested so.
//!
//! The table is what a reading of every driver of Linux 7.2 has shown. `docs/drivers.md` names the
//! lines. A driver that is not in it has not been read, and is trusted with nothing.

/// `enum rdma_driver_id`, which is part of the kernel's ABI.
pub(crate) mod id {
    pub(crate) const MLX5: u32 = 1;
    pub(crate) const MLX4: u32 = 2;
    pub(crate) const CXGB4: u32 = 4;
    pub(crate) const MTHCA: u32 = 5;
    pub(crate) const BNXT_RE: u32 = 6;
    pub(crate) const OCRDMA: u32 = 7;
    pub(crate) const IRDMA: u32 = 9;
    pub(crate) const VMW_PVRDMA: u32 = 10;
    pub(crate) const QEDR: u32 = 11;
    pub(crate) const HNS: u32 = 12;
    pub(crate) const RXE: u32 = 14;
    pub(crate) const HFI1: u32 = 15;
    pub(crate) const SIW: u32 = 18;
    pub(crate) const ERDMA: u32 = 19;
    pub(crate) const IONIC: u32 = 21;
}

/// What a driver may be trusted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Driver {
    /// Registers memory of a process for a caller in the kernel. Others dereference the user data
    /// that such a caller does not have, or register memory of their own instead.
    pub(crate) registers_user_memory: bool,
    /// Lets a peer reach memory only as far as its owner has opened it. Where this is false, a peer
    /// reaches all memory of the machine through any connection.
    pub(crate) checks_peers: bool,
    /// Pages of the largest region for which it does not ask the allocator for more than there can
    /// be, which the kernel takes for a bug.
    pub(crate) max_region_pages: u64,
}

/// Pages of a region whose driver needs no limit beyond that of the machine's memory.
const ANY: u64 = u64::MAX;

impl Driver {
    /// One that nobody has read.
    const UNKNOWN: Self = Self {
        registers_user_memory: false,
        checks_peers: false,
        max_region_pages: ANY,
    };

    /// One whose hardware checks what a peer asks for, and that registers memory of processes.
    const SOUND: Self = Self {
        registers_user_memory: true,
        checks_peers: true,
        max_region_pages: ANY,
    };

    /// The driver with this `enum rdma_driver_id`.
    pub(crate) const fn of(id: u32) -> Self {
        match id {
            id::MLX5
            | id::MLX4
            | id::CXGB4
            | id::BNXT_RE
            | id::OCRDMA
            | id::VMW_PVRDMA
            | id::QEDR
            | id::ERDMA
            | id::IONIC => Self::SOUND,
            id::RXE => Self {
                // Its array of 16 bytes for each page comes from kmalloc(), of 4 MiB at most.
                max_region_pages: 1 << 18,
                ..Self::SOUND
            },
            id::SIW => Self {
                checks_peers: false,
                // As above: 8 bytes for each 512 pages, behind a head.
                max_region_pages: 1 << 27,
                ..Self::SOUND
            },
            id::HFI1 => Self {
                checks_peers: false,
                // As above: 8 bytes for each 256 pages, behind a head.
                max_region_pages: 1 << 26,
                ..Self::SOUND
            },
            id::IRDMA | id::MTHCA | id::HNS => Self {
                registers_user_memory: false,
                ..Self::SOUND
            },
            _ => Self::UNKNOWN,
        }
    }

    /// Whether it has no objection to a region of so many pages.
    pub(crate) const fn takes_pages(self, pages: u64) -> bool {
        pages <= self.max_region_pages
    }

    /// Bytes of the longest region that it takes wherever that begins in a page.
    pub(crate) const fn max_region(self, page_size: u64) -> u64 {
        self.max_region_pages
            .saturating_sub(1)
            .saturating_mul(page_size)
    }
}

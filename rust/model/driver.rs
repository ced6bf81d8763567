// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Properties of RDMA device drivers that kDAPL depends on.
//!
//! A driver expects two kinds of callers: processes, which come through `ib_uverbs`, and kernel
//! modules, which own the memory that they register. kDAPL is neither. It is a kernel module that
//! registers the memory of processes, in a protection domain of the kernel. Few drivers are tested
//! for that.
//!
//! The table below records a review of every driver of Linux 7.2. `docs/drivers.md` cites the
//! source lines. A driver that is missing from the table has not been reviewed and gets no
//! permissions.

/// Values of `enum rdma_driver_id`, which is part of the kernel's user ABI.
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

/// Properties of one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DriverProperties {
    /// The driver registers the memory of a process for a kernel caller.
    ///
    /// Other drivers dereference the user data (`udata`), which is NULL for a kernel caller, or
    /// register newly allocated memory instead of the pages of the process.
    pub(crate) registers_user_memory: bool,
    /// The device restricts a peer to the memory and the access rights that a region grants.
    ///
    /// Where this is false, a peer can reach all memory of the machine through any connection.
    pub(crate) checks_peers: bool,
    /// The driver registers the memory of a process at any address that has the same offset in its
    /// page as the memory: also zero-based.
    ///
    /// Another driver addresses the region by the address in the process.
    pub(crate) rebases_user_regions: bool,
    /// The driver registers a region for fast registration at any address that has the same offset
    /// in its page as the memory.
    ///
    /// Another driver computes the offset of the first byte from the address, which the consumer
    /// chooses.
    pub(crate) rebases_fast_regions: bool,
    /// The driver allocates memory when it maps a region for fast registration, and may sleep.
    pub(crate) sleeps_to_map: bool,
    /// Length in pages of the largest region that the driver can register.
    ///
    /// For a larger region the driver would request more memory than the page allocator can ever
    /// supply. The kernel reports such a request as a bug (`WARN`).
    pub(crate) max_region_pages: u64,
    /// The driver carries out a registration again if it sends an earlier request once more, after
    /// a lost packet or for a receiver that was not ready. The second execution fails, because the
    /// region is registered. The driver delays an invalidation until all earlier requests are
    /// finished.
    pub(crate) repeats_registrations: bool,
    /// The driver answers an RDMA read of no bytes correctly, also while it sends.
    pub(crate) answers_empty_reads: bool,
    /// Requests may be unsignalled: the driver completes requests in the order of their posts, has
    /// released their memory then, and reports none as flushed that has succeeded.
    /// `docs/drivers.md` has the reason for each driver.
    pub(crate) allows_unsignalled: bool,
    /// A receive from a shared receive queue never completes if its connection ends amid the
    /// message. Receives are taken in the order of their posts.
    pub(crate) loses_receives: bool,
    /// A poll of a completion queue dereferences the queue pairs of the completions, even if they
    /// are destroyed.
    pub(crate) polls_use_qps: bool,
    /// The driver never uses up a retry count of 7. It counts a retry whenever the time-out
    /// expires, also while the receiver has requested a delay of up to 655 ms.
    pub(crate) has_endless_retries: bool,
    /// Over iWARP a queue pair may be moved to ERR while its connect or accept has no outcome yet.
    ///
    /// Another driver does not flush such a queue pair. If the peer accepts later, it waits for
    /// seconds, and its `destroy_qp()` for a reset of the peer.
    pub(crate) may_fail_amid_connect: bool,
    /// Over iWARP the driver ends each connect and destroys each queue pair, whatever the peer
    /// does.
    ///
    /// Another driver waits for a peer that rejects a request, or acknowledges one, and then stays
    /// silent. Its device cannot be removed meanwhile.
    pub(crate) outlasts_silent_peers: bool,
    /// Over iWARP a call that ends, accepts or rejects a connection may empty the queues of signals
    /// of the calling task. A process would miss its signals, SIGKILL among them.
    pub(crate) discards_signals: bool,
}

/// `max_region_pages` of a driver without a limit.
const ANY: u64 = u64::MAX;

impl DriverProperties {
    /// Properties of a driver that has not been reviewed.
    const UNKNOWN: Self = Self {
        registers_user_memory: false,
        checks_peers: false,
        rebases_user_regions: false,
        rebases_fast_regions: false,
        sleeps_to_map: true,
        max_region_pages: ANY,
        repeats_registrations: false,
        answers_empty_reads: true,
        allows_unsignalled: false,
        loses_receives: false,
        polls_use_qps: true,
        has_endless_retries: false,
        may_fail_amid_connect: false,
        outlasts_silent_peers: false,
        discards_signals: true,
    };

    /// Properties of a driver that registers the memory of processes, and whose device checks the
    /// access rights of every request of a peer.
    const TRUSTED: Self = Self {
        registers_user_memory: true,
        checks_peers: true,
        rebases_user_regions: true,
        rebases_fast_regions: true,
        sleeps_to_map: false,
        max_region_pages: ANY,
        repeats_registrations: false,
        answers_empty_reads: true,
        allows_unsignalled: false,
        loses_receives: false,
        polls_use_qps: false,
        has_endless_retries: false,
        may_fail_amid_connect: true,
        outlasts_silent_peers: true,
        discards_signals: false,
    };

    const MLX5: Self = Self {
        allows_unsignalled: true,
        ..Self::TRUSTED
    };

    const MLX4: Self = Self {
        // `mlx4_ib_reg_user_mr()` chooses the size of the device's pages by `start`.
        rebases_user_regions: false,
        ..Self::MLX5
    };

    const QEDR: Self = Self {
        // `process_req()` and `process_resp_flush()`.
        polls_use_qps: true,
        ..Self::TRUSTED
    };

    const IONIC: Self = Self {
        // The driver allocates an array with kmalloc(), of 4 MiB at most: 8 bytes for each page.
        max_region_pages: 1 << 19,
        ..Self::TRUSTED
    };

    const PVRDMA: Self = Self {
        // `pvrdma_reg_user_mr()` passes `start` to the device.
        rebases_user_regions: false,
        ..Self::TRUSTED
    };

    const OCRDMA: Self = Self {
        // `ocrdma_build_reg()` takes the address for that of the device.
        rebases_fast_regions: false,
        ..Self::TRUSTED
    };

    const RXE: Self = Self {
        allows_unsignalled: true,
        // As for `IONIC`: 16 bytes for each page.
        max_region_pages: 1 << 18,
        // `req_retry()` does not skip them.
        repeats_registrations: true,
        // `flush_recv_queue()` does not complete `qp->resp.wqe`.
        loses_receives: true,
        // `COMPST_ERROR_RETRY`.
        has_endless_retries: true,
        ..Self::TRUSTED
    };

    const SIW: Self = Self {
        checks_peers: false,
        // `siw_reg_user_mr()` ignores `rnic_va`.
        rebases_user_regions: false,
        // As for `IONIC`: a header, then 8 bytes for each 512 pages.
        max_region_pages: 1 << 27,
        // `siw_activate_tx()` leaves the length of the last request in the answer.
        answers_empty_reads: false,
        // `siw_cep_set_inuse()`.
        discards_signals: true,
        ..Self::TRUSTED
    };

    const HFI1: Self = Self {
        checks_peers: false,
        // `rvt_lkey_ok()` takes the address of a local segment for one in the process.
        rebases_user_regions: false,
        // As for `IONIC`: a header, then 8 bytes for each 256 pages.
        max_region_pages: 1 << 26,
        allows_unsignalled: true,
        ..Self::TRUSTED
    };

    const MTHCA: Self = Self {
        registers_user_memory: false,
        allows_unsignalled: true,
        ..Self::TRUSTED
    };

    const HNS: Self = Self {
        // `hns_roce_map_mr_sg()`.
        sleeps_to_map: true,
        ..Self::MTHCA
    };

    const ERDMA: Self = Self {
        // `erdma_cep_set_inuse()`.
        discards_signals: true,
        // The same array: `erdma_create_cont_mtt()`, without ERDMA_DEV_CAP_FLAGS_MTT_VA.
        ..Self::IONIC
    };

    const IRDMA: Self = Self {
        registers_user_memory: false,
        // `irdma_modify_qp()` and `irdma_cm_event_connected()`.
        may_fail_amid_connect: false,
        // `irdma_handle_rcv_mpa()` and `irdma_handle_ack_pkt()` leave no timer.
        outlasts_silent_peers: false,
        ..Self::TRUSTED
    };

    /// Returns the properties of the driver with this `enum rdma_driver_id`.
    pub(crate) const fn from_id(id: u32) -> Self {
        match id {
            id::MLX5 => Self::MLX5,
            id::MLX4 => Self::MLX4,
            id::CXGB4 | id::BNXT_RE => Self::TRUSTED,
            id::VMW_PVRDMA => Self::PVRDMA,
            id::ERDMA => Self::ERDMA,
            id::QEDR => Self::QEDR,
            id::IONIC => Self::IONIC,
            id::OCRDMA => Self::OCRDMA,
            id::RXE => Self::RXE,
            id::SIW => Self::SIW,
            id::HFI1 => Self::HFI1,
            id::MTHCA => Self::MTHCA,
            id::HNS => Self::HNS,
            id::IRDMA => Self::IRDMA,
            _ => Self::UNKNOWN,
        }
    }

    /// Returns whether the driver can register a region of `pages` pages.
    pub(crate) const fn can_register(self, pages: u64) -> bool {
        pages <= self.max_region_pages
    }

    /// Returns the length in pages of the longest region that a work request can register, if the
    /// device allows `pages`. It is 0 if there can be none.
    pub(crate) const fn max_fast_region_pages(self, pages: u32) -> u32 {
        if !self.rebases_fast_regions {
            0
        } else if (pages as u64) < self.max_region_pages {
            pages
        } else {
            // Below `pages`.
            self.max_region_pages as u32
        }
    }

    /// Returns the length in bytes of the longest region that the driver can register, for any
    /// offset of its start in a page.
    pub(crate) const fn max_region(self, page_size: u64) -> u64 {
        self.max_region_pages
            .saturating_sub(1)
            .saturating_mul(page_size)
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work completions.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::mem::MaybeUninit;
use kdapl_bindings as bindings;

/// How a work request ended; the names are those of `enum ib_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Success,
    LocalLength,
    LocalQpOperation,
    LocalProtection,
    Flushed,
    BadResponse,
    LocalAccess,
    RemoteInvalidRequest,
    RemoteAccess,
    RemoteOperation,
    RetryExceeded,
    RnrRetryExceeded,
    /// Any other.
    Other(u32),
}

/// Immediate data of the peer: four bytes, as they lay in its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImmData {
    /// They came with a message.
    Message(u32),
    /// They came with an RDMA write.
    RdmaWrite(u32),
}

/// A `struct ib_wc` that a provider has filled.
///
/// # Invariants
///
/// `wr_id` and `status` are written; unless `status` is an error so are `byte_len`, `opcode` and
/// `wc_flags`, and `ex.imm_data` if `wc_flags` says so. Whether the provider writes more than a completion
/// needs is its own affair.
#[repr(transparent)]
pub(crate) struct Wc(MaybeUninit<bindings::ib_wc>);

impl Wc {
    /// The number that the work request carried.
    pub(crate) fn wr_id(&self) -> u64 {
        // SAFETY: By the invariant it is written. Both members of the union are 64 bits wide; ours are
        // numbers.
        unsafe { (&raw const (*self.0.as_ptr()).__bindgen_anon_1.wr_id).read() }
    }

    /// Bytes received, or read; 0 of what has failed.
    pub(crate) fn byte_len(&self) -> u32 {
        if self.status() != Status::Success {
            return 0;
        }
        // SAFETY: By the invariant it is written.
        unsafe { (&raw const (*self.0.as_ptr()).byte_len).read() }
    }

    /// What came with the message or the RDMA write that a receive was for.
    pub(crate) fn imm_data(&self) -> Option<ImmData> {
        if self.status() != Status::Success {
            return None;
        }
        // SAFETY: By the invariant it is written.
        let flags = unsafe { (&raw const (*self.0.as_ptr()).wc_flags).read() };
        if flags as u32 & bindings::ib_wc_flags_IB_WC_WITH_IMM == 0 {
            return None;
        }
        // SAFETY: By the invariant it is written, as the flag says. Any bits are four bytes.
        let data = unsafe { (&raw const (*self.0.as_ptr()).ex.imm_data).read() };
        // SAFETY: By the invariant it is written.
        match unsafe { (&raw const (*self.0.as_ptr()).opcode).read() } {
            bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM => Some(ImmData::RdmaWrite(data)),
            bindings::ib_wc_opcode_IB_WC_RECV => Some(ImmData::Message(data)),
            // Our own.
            _ => None,
        }
    }

    /// How it ended.
    pub(crate) fn status(&self) -> Status {
        // SAFETY: By the invariant it is written.
        match unsafe { (&raw const (*self.0.as_ptr()).status).read() } {
            bindings::ib_wc_status_IB_WC_SUCCESS => Status::Success,
            bindings::ib_wc_status_IB_WC_LOC_LEN_ERR => Status::LocalLength,
            bindings::ib_wc_status_IB_WC_LOC_QP_OP_ERR => Status::LocalQpOperation,
            bindings::ib_wc_status_IB_WC_LOC_PROT_ERR => Status::LocalProtection,
            bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => Status::Flushed,
            bindings::ib_wc_status_IB_WC_BAD_RESP_ERR => Status::BadResponse,
            bindings::ib_wc_status_IB_WC_LOC_ACCESS_ERR => Status::LocalAccess,
            bindings::ib_wc_status_IB_WC_REM_INV_REQ_ERR => Status::RemoteInvalidRequest,
            bindings::ib_wc_status_IB_WC_REM_ACCESS_ERR => Status::RemoteAccess,
            bindings::ib_wc_status_IB_WC_REM_OP_ERR => Status::RemoteOperation,
            bindings::ib_wc_status_IB_WC_RETRY_EXC_ERR => Status::RetryExceeded,
            bindings::ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR => Status::RnrRetryExceeded,
            other => Status::Other(other),
        }
    }
}

/// Room for completions that are polled together. It is not cleared: a poll writes what it finds.
pub(crate) struct Batch<const N: usize>([MaybeUninit<bindings::ib_wc>; N]);

impl<const N: usize> Batch<N> {
    /// Room for `N`.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // SAFETY: An array of what may be uninitialised may be.
        Self(unsafe { MaybeUninit::uninit().assume_init() })
    }

    /// Where a provider may write, and how many.
    pub(super) fn as_raw(&mut self) -> (*mut bindings::ib_wc, usize) {
        (self.0.as_mut_ptr().cast(), N)
    }

    /// The first `count` of them.
    ///
    /// # Safety
    ///
    /// A provider has filled as many.
    pub(super) unsafe fn filled(&self, count: usize) -> &[Wc] {
        // SAFETY: There are `N`, and a `Wc` is a `struct ib_wc`; the caller guarantees the invariant.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().cast(), count.min(N)) }
    }
}

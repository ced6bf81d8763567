// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work completions.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

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

/// A `struct ib_wc`.
#[repr(transparent)]
#[derive(Default)]
pub(crate) struct Wc(bindings::ib_wc);

impl Wc {
    /// The number that the work request carried.
    pub(crate) fn wr_id(&self) -> u64 {
        // SAFETY: Both members of the union are 64 bits wide; ours are numbers.
        unsafe { self.0.__bindgen_anon_1.wr_id }
    }

    /// Bytes received, or read.
    pub(crate) fn byte_len(&self) -> u32 {
        self.0.byte_len
    }

    /// How it ended.
    pub(crate) fn status(&self) -> Status {
        match self.0.status {
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

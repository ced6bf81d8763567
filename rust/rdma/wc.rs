// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work completions.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::mem::MaybeUninit;
use kdapl_bindings as bindings;

/// Status of a work completion. The names follow `enum ib_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WcStatus {
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
    /// Any other status.
    Other(u32),
}

/// Four bytes that came with a message or an RDMA write of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    /// Immediate data of a message, in the order of the peer's memory.
    MessageImm(u32),
    /// Immediate data of an RDMA write, in the order of the peer's memory.
    RdmaWriteImm(u32),
    /// Key of this side that the message has invalidated.
    InvalidatedKey(u32),
}

/// Identity of a queue pair, which a completion names.
///
/// It is the address of the driver's object. So a queue pair may get the identity of one that was
/// destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QpId(pub(super) usize);

impl QpId {
    /// Returns the identity as a number.
    pub(crate) const fn into_raw(self) -> u64 {
        self.0 as u64
    }

    /// Converts a number.
    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw as usize)
    }

    /// Returns the next identity, in the order of the identities.
    pub(crate) const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// A `struct ib_wc` that a driver has written.
///
/// # Invariants
///
/// `wr_id`, `status` and `qp` are initialised. Unless `status` is an error, so are `byte_len`,
/// `opcode` and `wc_flags`, and also `ex.imm_data` or `ex.invalidate_rkey` if `wc_flags` says so.
/// Other members may be uninitialised.
#[repr(transparent)]
pub(crate) struct Wc(MaybeUninit<bindings::ib_wc>);

// SAFETY: The pointers in it are only compared.
unsafe impl Send for Wc {}
// SAFETY: As above.
unsafe impl Sync for Wc {}

impl Wc {
    /// Copies the completion, for use after its batch.
    pub(crate) fn copy(&self) -> Self {
        // INVARIANT: The same members are initialised.
        Self(self.0)
    }

    /// Returns the identifier of the work request.
    pub(crate) fn wr_id(&self) -> u64 {
        // SAFETY: By the type invariant the member is initialised. Both members of the union have
        // 64 bits, and this module uses numbers only.
        unsafe { (&raw const (*self.0.as_ptr()).__bindgen_anon_1.wr_id).read() }
    }

    /// Returns the identity of the queue pair: see [`Qp::id`](super::qp::Qp::id).
    pub(crate) fn qp(&self) -> QpId {
        // SAFETY: By the type invariant the member is initialised. The pointer is not dereferenced:
        // the queue pair may be destroyed.
        QpId(unsafe { (&raw const (*self.0.as_ptr()).qp).read() }.addr())
    }

    /// Returns the number of bytes received or read. It is 0 for a failed request.
    pub(crate) fn byte_len(&self) -> u32 {
        if self.status() != WcStatus::Success {
            return 0;
        }
        // SAFETY: By the type invariant the member is initialised.
        unsafe { (&raw const (*self.0.as_ptr()).byte_len).read() }
    }

    /// Returns the immediate data, or the invalidated key, that came with the message or RDMA write
    /// of a receive.
    pub(crate) fn extra(&self) -> Option<Extra> {
        const WITH_IMM: u32 = bindings::ib_wc_flags_IB_WC_WITH_IMM;
        const WITH_INVALIDATE: u32 = bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE;
        if self.status() != WcStatus::Success {
            return None;
        }
        // SAFETY: By the type invariant the member is initialised.
        let flags = unsafe { (&raw const (*self.0.as_ptr()).wc_flags).read() };
        let flags = flags as u32 & (WITH_IMM | WITH_INVALIDATE);
        if flags == 0 {
            return None;
        }
        // SAFETY: By the type invariant the member is initialised, since a flag is set. Both
        // members of the union have 32 bits, of which any are valid.
        let data = unsafe { (&raw const (*self.0.as_ptr()).ex.imm_data).read() };
        // SAFETY: By the type invariant the member is initialised.
        match unsafe { (&raw const (*self.0.as_ptr()).opcode).read() } {
            bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM => Some(Extra::RdmaWriteImm(data)),
            bindings::ib_wc_opcode_IB_WC_RECV if flags & WITH_INVALIDATE != 0 => {
                Some(Extra::InvalidatedKey(data))
            }
            bindings::ib_wc_opcode_IB_WC_RECV => Some(Extra::MessageImm(data)),
            // A completion of this side's own send.
            _ => None,
        }
    }

    /// Returns the status.
    #[inline]
    pub(crate) fn status(&self) -> WcStatus {
        // SAFETY: By the type invariant the member is initialised.
        match unsafe { (&raw const (*self.0.as_ptr()).status).read() } {
            bindings::ib_wc_status_IB_WC_SUCCESS => WcStatus::Success,
            failure => WcStatus::of_failure(failure),
        }
    }
}

impl WcStatus {
    #[cold]
    fn of_failure(status: bindings::ib_wc_status) -> Self {
        match status {
            bindings::ib_wc_status_IB_WC_LOC_LEN_ERR => Self::LocalLength,
            bindings::ib_wc_status_IB_WC_LOC_QP_OP_ERR => Self::LocalQpOperation,
            bindings::ib_wc_status_IB_WC_LOC_PROT_ERR => Self::LocalProtection,
            bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => Self::Flushed,
            bindings::ib_wc_status_IB_WC_BAD_RESP_ERR => Self::BadResponse,
            bindings::ib_wc_status_IB_WC_LOC_ACCESS_ERR => Self::LocalAccess,
            bindings::ib_wc_status_IB_WC_REM_INV_REQ_ERR => Self::RemoteInvalidRequest,
            bindings::ib_wc_status_IB_WC_REM_ACCESS_ERR => Self::RemoteAccess,
            bindings::ib_wc_status_IB_WC_REM_OP_ERR => Self::RemoteOperation,
            bindings::ib_wc_status_IB_WC_RETRY_EXC_ERR => Self::RetryExceeded,
            bindings::ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR => Self::RnrRetryExceeded,
            other => Self::Other(other),
        }
    }
}

/// Buffer for completions that are polled together. It is not cleared, because a poll writes it.
pub(crate) struct WcBatch<const N: usize>([MaybeUninit<bindings::ib_wc>; N]);

impl<const N: usize> WcBatch<N> {
    /// Creates a buffer for `N` completions.
    pub(crate) fn new() -> Self {
        // SAFETY: An array of `MaybeUninit` needs no initialisation.
        Self(unsafe { MaybeUninit::uninit().assume_init() })
    }

    /// Returns the address and the size of the buffer.
    pub(super) fn as_raw(&mut self) -> (*mut bindings::ib_wc, usize) {
        (self.0.as_mut_ptr().cast(), N)
    }

    /// Returns the first `count` completions.
    ///
    /// # Safety
    ///
    /// A driver has written as many.
    pub(super) unsafe fn filled(&self, count: usize) -> &[Wc] {
        // SAFETY: The buffer has `N` elements, and a `Wc` is a `struct ib_wc`. The caller
        // guarantees that the elements are written, as the invariant of `Wc` requires.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().cast(), count.min(N)) }
    }
}

#[kernel::prelude::kunit_tests(kdapl_rdma_wc)]
mod tests {
    use super::*;

    const IMM: u32 = 0x0102_0304;

    fn completion(
        status: bindings::ib_wc_status,
        opcode: bindings::ib_wc_opcode,
        flags: bindings::ib_wc_flags,
    ) -> Wc {
        let mut raw = bindings::ib_wc {
            status,
            opcode,
            wc_flags: flags as i32,
            byte_len: 5,
            ..Default::default()
        };
        raw.ex.imm_data = IMM;
        // INVARIANT: All members are initialised.
        Wc(MaybeUninit::new(raw))
    }

    #[test]
    fn immediate_data_and_invalidated_keys_belong_to_receives() {
        let success = bindings::ib_wc_status_IB_WC_SUCCESS;
        let with_imm = bindings::ib_wc_flags_IB_WC_WITH_IMM;
        let with_invalidate = bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE;
        for (opcode, flags, data) in [
            (
                bindings::ib_wc_opcode_IB_WC_RECV,
                with_imm,
                Some(Extra::MessageImm(IMM)),
            ),
            (bindings::ib_wc_opcode_IB_WC_RECV, 0, None),
            (
                bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM,
                with_imm,
                Some(Extra::RdmaWriteImm(IMM)),
            ),
            (bindings::ib_wc_opcode_IB_WC_SEND, with_imm, None),
            (
                bindings::ib_wc_opcode_IB_WC_RECV,
                with_invalidate,
                Some(Extra::InvalidatedKey(IMM)),
            ),
        ] {
            let wc = completion(success, opcode, flags);
            assert_eq!(wc.extra(), data);
            assert_eq!(wc.byte_len(), 5);
        }
    }

    #[test]
    fn a_failed_request_has_neither_length_nor_data() {
        let flushed = bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR;
        let with_imm = bindings::ib_wc_flags_IB_WC_WITH_IMM;
        let wc = completion(flushed, bindings::ib_wc_opcode_IB_WC_RECV, with_imm);
        assert_eq!(wc.status(), WcStatus::Flushed);
        assert_eq!(wc.byte_len(), 0);
        assert!(wc.extra().is_none());
    }

    #[test]
    fn an_unknown_status_keeps_its_number() {
        let unknown = bindings::ib_wc_status_IB_WC_GENERAL_ERR;
        let wc = completion(unknown, bindings::ib_wc_opcode_IB_WC_SEND, 0);
        assert_eq!(wc.status(), WcStatus::Other(unknown));
    }

    #[test]
    fn a_batch_is_no_longer_than_its_buffer() {
        let mut batch = WcBatch::<2>::new();
        let (buffer, size) = batch.as_raw();
        assert_eq!(size, 2);
        for index in 0..size {
            let mut raw = bindings::ib_wc::default();
            raw.__bindgen_anon_1.wr_id = index as u64 + 10;
            // SAFETY: The buffer has `size` elements.
            unsafe { buffer.add(index).write(raw) };
        }
        // SAFETY: Two elements are written, and the others do not exist.
        let filled = unsafe { batch.filled(3) };
        assert!(filled.iter().map(Wc::wr_id).eq([10, 11]));
    }
}

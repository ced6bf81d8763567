// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work requests.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

mod send_flags;
mod sg_list;

pub(crate) use self::{
    send_flags::SendFlags,
    sg_list::{
        AllMemory,
        SgList, //
    },
};

use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Operation of a work request.
#[derive(Clone, Copy)]
pub(crate) enum SendRequest {
    /// Sends to a receive of the peer.
    Send {
        /// Whether it notifies a peer that waits for solicited completions.
        solicited: bool,
    },
    /// As a send. The peer's device invalidates the key `rkey` when the message arrives.
    SendWithInv {
        /// Key that the peer provided.
        rkey: u32,
        /// As for a send.
        solicited: bool,
    },
    /// Writes to the peer's memory.
    RdmaWrite(Remote),
    /// Writes to the peer's memory, and completes a receive of the peer.
    RdmaWriteWithImm {
        remote: Remote,
        /// Four bytes for the peer, in the order of memory.
        imm_data: u32,
        /// As for a send.
        solicited: bool,
    },
    /// Reads from the peer's memory.
    RdmaRead(Remote),
    /// Changes 64 bits of the peer's memory atomically, and returns their old value.
    Atomic(Remote, Atomic),
}

/// Location in the peer's memory.
#[derive(Clone, Copy)]
pub(crate) struct Remote {
    /// Address at the peer.
    pub(crate) addr: u64,
    /// Key that the peer provided.
    pub(crate) rkey: u32,
}

impl Remote {
    /// Location of a request that accesses no byte.
    pub(crate) const NOWHERE: Self = Self { addr: 0, rkey: 0 };
}

/// Atomic operation on 64 bits.
#[derive(Clone, Copy)]
pub(crate) enum Atomic {
    /// Adds the value, modulo 2^64.
    FetchAndAdd(u64),
    /// Stores `swap` if the value equals `compare`.
    CmpAndSwp { compare: u64, swap: u64 },
}

/// Builds a receive.
pub(super) fn build_recv(wr_id: u64, list: &SgList) -> bindings::ib_recv_wr {
    let (sg_list, num_sge) = list.as_raw();
    // SAFETY: All zeros is a valid work request. (`default()` compiles to a call for each member.)
    let mut wr: bindings::ib_recv_wr = unsafe { core::mem::zeroed() };
    (wr.sg_list, wr.num_sge) = (sg_list, num_sge);
    wr.__bindgen_anon_1.wr_id = wr_id;
    wr
}

/// A work request for the send queue.
pub(super) enum SendWr {
    Rdma(bindings::ib_rdma_wr),
    Atomic(bindings::ib_atomic_wr),
}

impl SendWr {
    /// Returns the common part, for `ib_post_send()`. The driver finds the rest after it.
    pub(super) fn as_raw(&self) -> *const bindings::ib_send_wr {
        // The pointer is to the whole structure, of which the common part is the first member.
        match self {
            Self::Rdma(wr) => core::ptr::from_ref(wr).cast(),
            Self::Atomic(wr) => core::ptr::from_ref(wr).cast(),
        }
    }
}

/// Returns the verbs' code of a request, and whether the peer is to be notified of it.
fn opcode(request: SendRequest) -> (bindings::ib_wr_opcode, bool) {
    match request {
        SendRequest::Send { solicited } => (bindings::ib_wr_opcode_IB_WR_SEND, solicited),
        SendRequest::SendWithInv { solicited, .. } => {
            (bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV, solicited)
        }
        SendRequest::RdmaWrite(_) => (bindings::ib_wr_opcode_IB_WR_RDMA_WRITE, false),
        SendRequest::RdmaWriteWithImm { solicited, .. } => {
            (bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM, solicited)
        }
        SendRequest::RdmaRead(_) => (bindings::ib_wr_opcode_IB_WR_RDMA_READ, false),
        SendRequest::Atomic(_, Atomic::FetchAndAdd(_)) => {
            (bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD, false)
        }
        SendRequest::Atomic(_, Atomic::CmpAndSwp { .. }) => {
            (bindings::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP, false)
        }
    }
}

/// Builds a work request.
#[inline(always)]
pub(super) fn build(wr_id: u64, request: SendRequest, flags: SendFlags, list: &SgList) -> SendWr {
    let (opcode, solicited) = opcode(request);
    let mut send_flags = flags.as_raw();
    if solicited {
        send_flags |= bindings::ib_send_flags_IB_SEND_SOLICITED;
    }
    let fill = |wr: &mut bindings::ib_send_wr| {
        (wr.sg_list, wr.num_sge) = list.as_raw();
        wr.__bindgen_anon_1.wr_id = wr_id;
        wr.opcode = opcode;
        wr.send_flags = send_flags;
    };
    match request {
        SendRequest::Atomic(remote, atomic) => {
            let mut wr = bindings::ib_atomic_wr::default();
            fill(&mut wr.wr);
            wr.remote_addr = remote.addr;
            wr.rkey = remote.rkey;
            (wr.compare_add, wr.swap) = match atomic {
                Atomic::FetchAndAdd(add) => (add, 0),
                Atomic::CmpAndSwp { compare, swap } => (compare, swap),
            };
            SendWr::Atomic(wr)
        }
        SendRequest::Send { .. }
        | SendRequest::SendWithInv { .. }
        | SendRequest::RdmaWrite(_)
        | SendRequest::RdmaWriteWithImm { .. }
        | SendRequest::RdmaRead(_) => {
            // SAFETY: All zeros is a valid work request. (`default()` compiles to a call for each
            // member.)
            let mut wr: bindings::ib_rdma_wr = unsafe { core::mem::zeroed() };
            fill(&mut wr.wr);
            if let SendRequest::RdmaWriteWithImm { imm_data, .. } = request {
                wr.wr.ex.imm_data = imm_data;
            }
            if let SendRequest::SendWithInv { rkey, .. } = request {
                wr.wr.ex.invalidate_rkey = rkey;
            }
            if let SendRequest::RdmaWrite(remote)
            | SendRequest::RdmaWriteWithImm { remote, .. }
            | SendRequest::RdmaRead(remote) = request
            {
                wr.remote_addr = remote.addr;
                wr.rkey = remote.rkey;
            }
            SendWr::Rdma(wr)
        }
    }
}

/// Builds a work request that registers a region: its key is valid from its execution on.
pub(super) fn build_registration(
    wr_id: u64,
    mr: *mut bindings::ib_mr,
    key: u32,
    access: u32,
    flags: SendFlags,
) -> bindings::ib_reg_wr {
    let mut wr = bindings::ib_reg_wr {
        mr,
        key,
        access: access as i32,
        ..Default::default()
    };
    wr.wr.__bindgen_anon_1.wr_id = wr_id;
    wr.wr.opcode = bindings::ib_wr_opcode_IB_WR_REG_MR;
    wr.wr.send_flags = flags.as_raw();
    wr
}

/// Builds a work request that invalidates a key of this side.
pub(super) fn build_invalidation(wr_id: u64, key: u32, fence: bool) -> bindings::ib_send_wr {
    let mut wr = bindings::ib_send_wr::default();
    wr.__bindgen_anon_1.wr_id = wr_id;
    wr.opcode = bindings::ib_wr_opcode_IB_WR_LOCAL_INV;
    wr.send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED;
    if fence {
        wr.send_flags |= bindings::ib_send_flags_IB_SEND_FENCE;
    }
    wr.ex.invalidate_rkey = key;
    wr
}

#[kunit_tests(kdapl_rdma_wr)]
mod tests {
    use super::*;

    const REMOTE: Remote = Remote {
        addr: 0x1000,
        rkey: 7,
    };

    /// Returns the flags of a request.
    fn flags(request: SendRequest, signalled: bool, fence: bool) -> u32 {
        let wr = build(9, request, SendFlags { signalled, fence }, &SgList::new());
        // SAFETY: The request lives until the end of this function.
        unsafe { (*wr.as_raw()).send_flags as u32 }
    }

    #[test]
    fn a_request_has_its_flags() {
        let signalled = bindings::ib_send_flags_IB_SEND_SIGNALED as u32;
        let solicited = bindings::ib_send_flags_IB_SEND_SOLICITED as u32;
        let fence = bindings::ib_send_flags_IB_SEND_FENCE as u32;
        let send = |solicited| SendRequest::Send { solicited };
        for (request, fenced, expected) in [
            (send(false), false, 0),
            (send(true), false, solicited),
            (send(true), true, solicited | fence),
            (SendRequest::RdmaWrite(REMOTE), false, 0),
            (SendRequest::RdmaRead(REMOTE), true, fence),
            (
                SendRequest::Atomic(REMOTE, Atomic::FetchAndAdd(1)),
                false,
                0,
            ),
        ] {
            assert_eq!(flags(request, true, fenced), expected | signalled);
            assert_eq!(flags(request, false, fenced), expected);
        }
    }

    #[test]
    fn an_rdma_request_has_its_place_and_data() {
        let request = SendRequest::RdmaWriteWithImm {
            remote: REMOTE,
            imm_data: 5,
            solicited: false,
        };
        let mut list = SgList::new();
        assert!(list.push(1, 2, 3).is_ok());
        let SendWr::Rdma(wr) = build(9, request, SendFlags::SIGNALLED, &list) else {
            return assert!(false);
        };
        assert_eq!((wr.remote_addr, wr.rkey), (REMOTE.addr, REMOTE.rkey));
        assert_eq!(
            wr.wr.opcode,
            bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM
        );
        assert_eq!(wr.wr.num_sge, 1);
        // SAFETY: The request has immediate data, and `build` has set the identifier.
        let (imm_data, wr_id) = unsafe { (wr.wr.ex.imm_data, wr.wr.__bindgen_anon_1.wr_id) };
        assert_eq!((imm_data, wr_id), (5, 9));
    }

    #[test]
    fn an_atomic_request_has_its_operands() {
        for (atomic, operands) in [
            (Atomic::FetchAndAdd(3), (3, 0)),
            (
                Atomic::CmpAndSwp {
                    compare: 4,
                    swap: 5,
                },
                (4, 5),
            ),
        ] {
            let request = SendRequest::Atomic(REMOTE, atomic);
            let SendWr::Atomic(wr) = build(9, request, SendFlags::SIGNALLED, &SgList::new()) else {
                return assert!(false);
            };
            assert_eq!((wr.remote_addr, wr.rkey), (REMOTE.addr, REMOTE.rkey));
            assert_eq!((wr.compare_add, wr.swap), operands);
        }
    }
}

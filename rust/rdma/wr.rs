// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work requests.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

mod send_flags;

pub(crate) use self::send_flags::SendFlags;

use core::mem::MaybeUninit;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Largest number of segments of a work request.
pub(crate) const MAX_SGE: usize = bindings::KDAPL_IOV_MAX as usize;

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
    #[inline(always)]
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
        let place = self.sge.get_mut(self.len).ok_or(EINVAL)?;
        // INVARIANT: This initialises one more segment.
        place.write(bindings::ib_sge { addr, length, lkey });
        self.len = self.len.wrapping_add(1);
        Ok(())
    }

    /// Adds a segment with the key to all memory, which no peer may learn.
    pub(super) fn push_with_global_key(
        &mut self,
        addr: u64,
        length: u32,
        key_of_all: u32,
    ) -> Result {
        self.push_private(addr, length, key_of_all)
    }

    /// Adds a segment at DMA addresses.
    pub(crate) fn push_dma(&mut self, addr: u64, length: u32, key: AllMemory) -> Result {
        self.push_private(addr, length, key.0)
    }

    /// As [`SgList::push`], for a region which peers may not write to.
    pub(crate) fn push_private(&mut self, addr: u64, length: u32, lkey: u32) -> Result {
        self.has_private_key = true;
        self.push(addr, length, lkey)
    }

    /// Returns whether a segment has a key that no peer may use.
    pub(super) fn has_private_key(&self) -> bool {
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
    pub(super) fn segments(&self) -> &[bindings::ib_sge] {
        // SAFETY: By the type invariant the first `len` segments are initialised.
        unsafe { core::slice::from_raw_parts(self.sge.as_ptr().cast(), self.len) }
    }

    /// Returns the pointer and the length, for a work request.
    pub(super) fn as_raw(&self) -> (*mut bindings::ib_sge, i32) {
        // The length is at most `MAX_SGE`.
        (self.sge.as_ptr().cast_mut().cast(), self.len as i32)
    }
}

/// The key of a protection domain to all memory, which only a [`SgList`] gets to see.
#[derive(Clone, Copy)]
pub(crate) struct AllMemory(pub(super) u32);

/// Operation of a work request.
#[derive(Clone, Copy)]
pub(crate) enum Request {
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
#[inline(always)]
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
#[inline(always)]
fn opcode(request: Request) -> (bindings::ib_wr_opcode, bool) {
    match request {
        Request::Send { solicited } => (bindings::ib_wr_opcode_IB_WR_SEND, solicited),
        Request::SendWithInv { solicited, .. } => {
            (bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV, solicited)
        }
        Request::RdmaWrite(_) => (bindings::ib_wr_opcode_IB_WR_RDMA_WRITE, false),
        Request::RdmaWriteWithImm { solicited, .. } => {
            (bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM, solicited)
        }
        Request::RdmaRead(_) => (bindings::ib_wr_opcode_IB_WR_RDMA_READ, false),
        Request::Atomic(_, Atomic::FetchAndAdd(_)) => {
            (bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD, false)
        }
        Request::Atomic(_, Atomic::CmpAndSwp { .. }) => {
            (bindings::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP, false)
        }
    }
}

/// Builds a work request.
#[inline(always)]
pub(super) fn build(wr_id: u64, request: Request, flags: SendFlags, list: &SgList) -> SendWr {
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
        Request::Atomic(remote, atomic) => {
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
        Request::Send { .. }
        | Request::SendWithInv { .. }
        | Request::RdmaWrite(_)
        | Request::RdmaWriteWithImm { .. }
        | Request::RdmaRead(_) => {
            // SAFETY: All zeros is a valid work request. (`default()` compiles to a call for each
            // member.)
            let mut wr: bindings::ib_rdma_wr = unsafe { core::mem::zeroed() };
            fill(&mut wr.wr);
            if let Request::RdmaWriteWithImm { imm_data, .. } = request {
                wr.wr.ex.imm_data = imm_data;
            }
            if let Request::SendWithInv { rkey, .. } = request {
                wr.wr.ex.invalidate_rkey = rkey;
            }
            if let Request::RdmaWrite(remote)
            | Request::RdmaWriteWithImm { remote, .. }
            | Request::RdmaRead(remote) = request
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
    fence: bool,
) -> bindings::ib_reg_wr {
    let mut wr = bindings::ib_reg_wr {
        mr,
        key,
        access: access as i32,
        ..Default::default()
    };
    wr.wr.__bindgen_anon_1.wr_id = wr_id;
    wr.wr.opcode = bindings::ib_wr_opcode_IB_WR_REG_MR;
    let signalled = true;
    wr.wr.send_flags = SendFlags { signalled, fence }.as_raw();
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

    /// Returns the flags of a request.
    fn flags(request: Request, signalled: bool, fence: bool) -> u32 {
        let wr = build(9, request, SendFlags { signalled, fence }, &SgList::new());
        // SAFETY: The request lives until the end of this function.
        unsafe { (*wr.as_raw()).send_flags as u32 }
    }

    #[test]
    fn a_request_has_its_flags() {
        let signalled = bindings::ib_send_flags_IB_SEND_SIGNALED as u32;
        let solicited = bindings::ib_send_flags_IB_SEND_SOLICITED as u32;
        let fence = bindings::ib_send_flags_IB_SEND_FENCE as u32;
        let send = |solicited| Request::Send { solicited };
        for (request, fenced, expected) in [
            (send(false), false, 0),
            (send(true), false, solicited),
            (send(true), true, solicited | fence),
            (Request::RdmaWrite(REMOTE), false, 0),
            (Request::RdmaRead(REMOTE), true, fence),
            (Request::Atomic(REMOTE, Atomic::FetchAndAdd(1)), false, 0),
        ] {
            assert_eq!(flags(request, true, fenced), expected | signalled);
            assert_eq!(flags(request, false, fenced), expected);
        }
    }

    #[test]
    fn an_rdma_request_has_its_place_and_data() {
        let request = Request::RdmaWriteWithImm {
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
            let request = Request::Atomic(REMOTE, atomic);
            let SendWr::Atomic(wr) = build(9, request, SendFlags::SIGNALLED, &SgList::new()) else {
                return assert!(false);
            };
            assert_eq!((wr.remote_addr, wr.rkey), (REMOTE.addr, REMOTE.rkey));
            assert_eq!((wr.compare_add, wr.swap), operands);
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work requests.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::mem::MaybeUninit;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Segments that a work request can have here.
pub(crate) const MAX_SGE: usize = bindings::KDAPL_IOV_MAX as usize;

/// The scatter/gather list of a work request.
///
/// Half a kilobyte: it is made where it is used, neither cleared nor moved.
///
/// # Invariants
///
/// The first `len` segments are written.
pub(crate) struct SgList {
    sge: [MaybeUninit<bindings::ib_sge>; MAX_SGE],
    len: usize,
    /// Whether the key of a segment is that of all memory.
    opens_all: bool,
}

impl SgList {
    /// A list without segments.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self {
            // SAFETY: An array of what may be uninitialised may be. (Written element by element it is
            // a constant, which the compiler may copy.)
            sge: unsafe { MaybeUninit::uninit().assume_init() },
            len: 0,
            opens_all: false,
        }
    }

    /// Adds a segment of memory that was registered as `lkey`.
    pub(crate) fn push(&mut self, addr: u64, length: u32, lkey: u32) -> Result {
        let place = self.sge.get_mut(self.len).ok_or(EINVAL)?;
        // INVARIANT: One more is written.
        place.write(bindings::ib_sge { addr, length, lkey });
        self.len = self.len.wrapping_add(1);
        Ok(())
    }

    /// Adds a segment under the key of all memory, which no peer may see.
    pub(super) fn push_open(&mut self, addr: u64, length: u32, key_of_all: u32) -> Result {
        self.opens_all = true;
        self.push(addr, length, key_of_all)
    }

    /// Whether it has a segment under the key of all memory.
    pub(super) fn opens_all(&self) -> bool {
        self.opens_all
    }

    /// How many segments it has.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes it empty.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.opens_all = false;
    }

    /// Pointer and length, as work requests take them.
    pub(super) fn as_raw(&self) -> (*mut bindings::ib_sge, i32) {
        // At most `MAX_SGE`.
        (self.sge.as_ptr().cast_mut().cast(), self.len as i32)
    }
}

/// What a request does.
#[derive(Clone, Copy)]
pub(crate) enum Request {
    /// Send to the peer's receive.
    Send {
        /// Whether a peer that waits for solicited completions is to be woken.
        solicited: bool,
    },
    /// Write to the peer's memory.
    RdmaWrite(Remote),
    /// Write to the peer's memory, and tell the peer by one of its receives.
    RdmaWriteWithImm {
        remote: Remote,
        /// Four bytes for the peer, as they lie in memory.
        imm_data: u32,
        /// As of a send.
        solicited: bool,
    },
    /// Read from the peer's memory.
    RdmaRead(Remote),
    /// Change 64 bits of the peer's memory in one go, and bring back what they were.
    Atomic(Remote, Atomic),
}

/// A place in the peer's memory.
#[derive(Clone, Copy)]
pub(crate) struct Remote {
    /// Its address there.
    pub(crate) addr: u64,
    /// The key that the peer gave.
    pub(crate) rkey: u32,
}

/// A change of 64 bits.
#[derive(Clone, Copy)]
pub(crate) enum Atomic {
    /// Adds, modulo 2^64.
    FetchAndAdd(u64),
    /// Sets them to `swap` if they are `compare`.
    CmpAndSwp { compare: u64, swap: u64 },
}

/// A work request of the send queue.
pub(super) enum SendWr {
    Rdma(bindings::ib_rdma_wr),
    Atomic(bindings::ib_atomic_wr),
}

impl SendWr {
    /// What all of them have in common, as `ib_post_send()` takes it: the rest lies behind it.
    pub(super) fn as_raw(&self) -> *const bindings::ib_send_wr {
        // Pointers to the whole, of which it is the first field.
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

/// Builds the work request. It is always signalled: who counts completions needs each of them.
#[inline(always)]
pub(super) fn build(wr_id: u64, request: Request, fence: bool, list: &SgList) -> SendWr {
    let (opcode, solicited) = opcode(request);
    let mut send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED;
    if solicited {
        send_flags |= bindings::ib_send_flags_IB_SEND_SOLICITED;
    }
    if fence {
        send_flags |= bindings::ib_send_flags_IB_SEND_FENCE;
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
        | Request::RdmaWrite(_)
        | Request::RdmaWriteWithImm { .. }
        | Request::RdmaRead(_) => {
            // SAFETY: Zeroes are a work request. (`default()` makes a call of each part of it.)
            let mut wr: bindings::ib_rdma_wr = unsafe { core::mem::zeroed() };
            fill(&mut wr.wr);
            if let Request::RdmaWriteWithImm { imm_data, .. } = request {
                wr.wr.ex.imm_data = imm_data;
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

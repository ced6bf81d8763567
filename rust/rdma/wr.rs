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

    /// How many segments it has.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes it empty.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
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
    /// Read from the peer's memory.
    RdmaRead(Remote),
}

/// A place in the peer's memory.
#[derive(Clone, Copy)]
pub(crate) struct Remote {
    /// Its address there.
    pub(crate) addr: u64,
    /// The key that the peer gave.
    pub(crate) rkey: u32,
}

/// Builds the work request. It is always signalled: who counts completions needs each of them.
pub(super) fn build(
    wr_id: u64,
    request: Request,
    fence: bool,
    list: &SgList,
) -> bindings::ib_rdma_wr {
    let (sg_list, num_sge) = list.as_raw();
    let (opcode, remote, solicited) = match request {
        Request::Send { solicited } => (bindings::ib_wr_opcode_IB_WR_SEND, None, solicited),
        Request::RdmaWrite(remote) => {
            (bindings::ib_wr_opcode_IB_WR_RDMA_WRITE, Some(remote), false)
        }
        Request::RdmaRead(remote) => (bindings::ib_wr_opcode_IB_WR_RDMA_READ, Some(remote), false),
    };
    let mut send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED;
    if solicited {
        send_flags |= bindings::ib_send_flags_IB_SEND_SOLICITED;
    }
    if fence {
        send_flags |= bindings::ib_send_flags_IB_SEND_FENCE;
    }
    let mut wr = bindings::ib_rdma_wr::default();
    wr.wr.__bindgen_anon_1.wr_id = wr_id;
    wr.wr.sg_list = sg_list;
    wr.wr.num_sge = num_sge;
    wr.wr.opcode = opcode;
    wr.wr.send_flags = send_flags;
    if let Some(remote) = remote {
        wr.remote_addr = remote.addr;
        wr.rkey = remote.rkey;
    }
    wr
}

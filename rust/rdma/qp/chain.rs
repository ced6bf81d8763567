// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Chains of work requests, which a driver posts in one call.
//!
//! A driver takes its lock and notifies its adapter once for a chain.

use super::{
    Handler,
    Qp, //
};
use crate::rdma::{
    cq::Handler as CqHandler,
    wr::{
        self,
        SendFlags,
        SendRequest,
        SendWr,
        SgList, //
    },
};
use core::{
    mem::MaybeUninit,
    ptr, //
};
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Largest number of work requests of a chain.
pub(crate) const MAX_CHAIN: usize = 8;

/// Largest number of segments of a work request in a chain.
pub(crate) const MAX_CHAIN_SGE: usize = 2;

/// Structure of a work request in a chain.
///
/// # Safety
///
/// `Head` is the type of the first member of the structure, or the structure itself.
pub(crate) unsafe trait ChainedWr {
    /// Structure of which the driver gets a list.
    type Head;

    /// Sets the scatter/gather list and the next work request.
    fn link(&mut self, sg_list: *mut bindings::ib_sge, next: *mut Self::Head);
}

// SAFETY: `wr` is the first member.
unsafe impl ChainedWr for bindings::ib_rdma_wr {
    type Head = bindings::ib_send_wr;

    fn link(&mut self, sg_list: *mut bindings::ib_sge, next: *mut Self::Head) {
        (self.wr.sg_list, self.wr.next) = (sg_list, next);
    }
}

// SAFETY: It is the structure itself.
unsafe impl ChainedWr for bindings::ib_recv_wr {
    type Head = Self;

    fn link(&mut self, sg_list: *mut bindings::ib_sge, next: *mut Self::Head) {
        (self.sg_list, self.next) = (sg_list, next);
    }
}

/// Chain of work requests for one queue. It is on the stack of the caller, so it is short.
///
/// # Invariants
///
/// The first `len` requests are initialised, and so are as many of their segments as they say.
pub(crate) struct Chain<W> {
    requests: [MaybeUninit<W>; MAX_CHAIN],
    segments: [[MaybeUninit<bindings::ib_sge>; MAX_CHAIN_SGE]; MAX_CHAIN],
    len: usize,
}

/// Chain of requests for a send queue.
pub(crate) type SendChain = Chain<bindings::ib_rdma_wr>;

/// Chain of receives.
pub(crate) type RecvChain = Chain<bindings::ib_recv_wr>;

impl<W: ChainedWr> Chain<W> {
    /// Creates an empty chain.
    pub(crate) fn new() -> Self {
        // INVARIANT: No request has to be initialised.
        Self {
            // SAFETY: An array of `MaybeUninit` needs no initialisation.
            requests: unsafe { MaybeUninit::uninit().assume_init() },
            // SAFETY: As above.
            segments: unsafe { MaybeUninit::uninit().assume_init() },
            len: 0,
        }
    }

    /// Returns whether a request with this list finds room.
    fn has_room(&self, list: &SgList) -> bool {
        self.len < MAX_CHAIN && list.len() <= MAX_CHAIN_SGE
    }

    /// Appends a request, and copies its segments, as many as it says. Returns `false` without
    /// room.
    fn append(&mut self, wr: W, list: &SgList) -> bool {
        let (Some(element), Some(room)) = (
            self.requests.get_mut(self.len),
            self.segments.get_mut(self.len),
        ) else {
            return false;
        };
        let segments = list.segments();
        let Some(room) = room.get_mut(..segments.len()) else {
            return false;
        };
        for (element, segment) in room.iter_mut().zip(segments) {
            element.write(*segment);
        }
        // INVARIANT: This initialises one more request, and its segments.
        element.write(wr);
        self.len = self.len.wrapping_add(1);
        true
    }

    /// Links the requests, each with its segments: the chain may have been moved until now. Returns
    /// the first one; `None` if there is none.
    fn link(&mut self) -> Option<*const W::Head> {
        let mut next: *mut W::Head = ptr::null_mut();
        let used = self.requests.iter_mut().zip(&mut self.segments);
        for (request, segments) in used.take(self.len).rev() {
            // SAFETY: By the type invariant the request is initialised.
            let request = unsafe { request.assume_init_mut() };
            request.link(segments.as_mut_ptr().cast(), next);
            // The pointer is to the whole structure: the driver reads what follows the head.
            next = ptr::from_mut(request).cast();
        }
        (!next.is_null()).then_some(next.cast_const())
    }

    /// Returns the number of requests that a driver has posted, if it returned `ret` and the first
    /// request that it has refused.
    fn posted(&self, ret: i32, bad: *const W::Head) -> usize {
        if ret == 0 {
            return self.len;
        }
        let element = self
            .requests
            .iter()
            .position(|request| ptr::eq(request.as_ptr().cast(), bad));
        element.unwrap_or(0)
    }
}

impl SendChain {
    /// Appends a request. Returns `false` if it has to be posted alone: an atomic operation, one
    /// with many segments, or an RDMA read with a private key; or if the chain is full.
    #[must_use]
    pub(crate) fn push(
        &mut self,
        wr_id: u64,
        request: SendRequest,
        flags: SendFlags,
        list: &SgList,
    ) -> bool {
        if !self.has_room(list)
            || (matches!(request, SendRequest::RdmaRead(_)) && list.has_private_key())
        {
            return false;
        }
        match wr::build(wr_id, request, flags, list) {
            SendWr::Rdma(wr) => self.append(wr, list),
            SendWr::Atomic(_) => false,
        }
    }
}

impl RecvChain {
    /// Appends a receive. Returns `false` if it has to be posted alone, because it has many
    /// segments; or if the chain is full.
    #[must_use]
    pub(crate) fn push(&mut self, wr_id: u64, list: &SgList) -> bool {
        self.has_room(list) && self.append(wr::build_recv(wr_id, list), list)
    }
}

impl<H: Handler, C: CqHandler> Qp<H, C> {
    /// Posts a chain of requests to the send queue, in their order. Returns the number of requests
    /// that were posted: all of them, or those before the first that the driver has refused.
    ///
    /// Context: any except the callback of a completion queue.
    pub(crate) fn post_send_chain(&self, chain: &mut SendChain) -> usize {
        let Some(first) = chain.link() else {
            return 0;
        };
        let mut bad = ptr::null();
        // SAFETY: The queue pair is alive. The chain and its segments live through the call, which
        // copies them. Each structure is the one that its opcode requires.
        let ret = unsafe {
            bindings::kdapl_helper_ib_post_send_chain(self.raw.as_ptr(), first, &raw mut bad)
        };
        chain.posted(ret, bad)
    }

    /// Posts a chain of receives, as [`Qp::post_send_chain`].
    pub(crate) fn post_recv_chain(&self, chain: &mut RecvChain) -> usize {
        let Some(first) = chain.link() else {
            return 0;
        };
        let mut bad = ptr::null();
        // SAFETY: The queue pair is alive. The chain and its segments live through the call, which
        // copies them.
        let ret = unsafe {
            bindings::kdapl_helper_ib_post_recv_chain(self.raw.as_ptr(), first, &raw mut bad)
        };
        chain.posted(ret, bad)
    }
}

#[kunit_tests(kdapl_rdma_qp_chain)]
mod tests {
    use super::*;
    use crate::rdma::wr::{
        Atomic,
        Remote, //
    };

    const SEND: SendRequest = SendRequest::Send { solicited: false };
    const REMOTE: Remote = Remote {
        addr: 0x1000,
        rkey: 7,
    };

    /// Returns a list of this number of segments, at the addresses 1, 2 and so on.
    fn list(segments: u64) -> Result<SgList> {
        let mut list = SgList::new();
        (1..=segments).try_for_each(|addr| list.push(addr, 16, 5))?;
        Ok(list)
    }

    fn push(chain: &mut SendChain, request: SendRequest, list: &SgList) -> bool {
        chain.push(chain.len as u64, request, SendFlags::SIGNALLED, list)
    }

    #[test]
    fn a_chain_has_its_requests_in_order() -> Result {
        let (mut chain, list) = (SendChain::new(), list(2)?);
        assert!(chain.link().is_none());
        for _ in 0..MAX_CHAIN {
            assert!(push(&mut chain, SEND, &list));
        }
        assert!(!push(&mut chain, SEND, &list));
        let (mut next, mut count) = (chain.link().ok_or(ENOENT)?, 0);
        while !next.is_null() {
            // SAFETY: The chain has initialised its requests, and lives.
            let wr = unsafe { &*next };
            // SAFETY: `build` has set the identifier.
            assert_eq!(unsafe { wr.__bindgen_anon_1.wr_id }, count);
            assert_eq!(wr.num_sge, 2);
            // SAFETY: The request has two segments, which the chain has initialised.
            let second = unsafe { *wr.sg_list.add(1) };
            assert_eq!((second.addr, second.length, second.lkey), (2, 16, 5));
            count += 1;
            next = wr.next.cast_const();
        }
        assert_eq!(count, MAX_CHAIN as u64);
        Ok(())
    }

    #[test]
    fn requests_that_are_posted_alone_are_refused() -> Result {
        let (mut chain, plain) = (SendChain::new(), list(1)?);
        let mut private = SgList::new();
        private.push_private(1, 16, 5)?;
        let add = SendRequest::Atomic(REMOTE, Atomic::FetchAndAdd(1));
        assert!(!push(&mut chain, add, &plain));
        assert!(!push(&mut chain, SEND, &list(MAX_CHAIN_SGE as u64 + 1)?));
        assert!(!push(&mut chain, SendRequest::RdmaRead(REMOTE), &private));
        assert!(chain.link().is_none());
        assert!(push(&mut chain, SendRequest::RdmaWrite(REMOTE), &private));
        assert!(push(&mut chain, SendRequest::RdmaRead(REMOTE), &plain));
        assert_eq!(chain.len, 2);
        Ok(())
    }

    #[test]
    fn the_requests_before_a_refused_one_are_posted() -> Result {
        let (mut chain, list) = (RecvChain::new(), list(1)?);
        for wr_id in 0..3 {
            assert!(chain.push(wr_id, &list));
        }
        let first = chain.link().ok_or(ENOENT)?;
        // SAFETY: The chain has initialised its requests, and lives.
        let second = unsafe { (*first).next };
        assert_eq!(chain.posted(0, ptr::null()), 3);
        assert_eq!(chain.posted(-12, first), 0);
        assert_eq!(chain.posted(-12, second), 1);
        assert_eq!(chain.posted(-12, ptr::null()), 0);
        Ok(())
    }
}

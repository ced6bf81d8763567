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
        Request,
        SendWr,
        SgList, //
    },
};
use core::{
    mem::MaybeUninit,
    ptr, //
};
use kdapl_bindings as bindings;

/// Largest number of work requests of a chain.
pub(crate) const MAX_CHAIN: usize = 8;

/// Largest number of segments of a work request in a chain.
pub(crate) const MAX_CHAIN_SGE: usize = 2;

/// Chain of requests for a send queue. It is on the stack of the caller, so it is short.
///
/// # Invariants
///
/// The first `len` requests are initialised, and so are as many of their segments as they say.
pub(crate) struct SendChain {
    requests: [MaybeUninit<bindings::ib_rdma_wr>; MAX_CHAIN],
    segments: [[MaybeUninit<bindings::ib_sge>; MAX_CHAIN_SGE]; MAX_CHAIN],
    len: usize,
}

impl SendChain {
    /// Creates an empty chain.
    #[inline(always)]
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

    /// Returns the number of requests.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends a request. Returns `false` if it has to be posted alone: an atomic operation, one
    /// with many segments, or an RDMA read with a private key; or if the chain is full.
    #[must_use]
    pub(crate) fn push(
        &mut self,
        wr_id: u64,
        request: Request,
        fence: bool,
        list: &SgList,
    ) -> bool {
        let (Some(place), Some(room)) = (
            self.requests.get_mut(self.len),
            self.segments.get_mut(self.len),
        ) else {
            return false;
        };
        let segments = list.segments();
        let Some(room) = room.get_mut(..segments.len()) else {
            return false;
        };
        if matches!(request, Request::RdmaRead(_)) && list.has_private_key() {
            return false;
        }
        let SendWr::Rdma(mut wr) = wr::build(wr_id, request, fence, list) else {
            return false;
        };
        for (place, segment) in room.iter_mut().zip(segments) {
            place.write(*segment);
        }
        // The list is set when the chain is posted: the chain may be moved until then.
        wr.wr.sg_list = ptr::null_mut();
        // INVARIANT: This initialises one more request, and its segments.
        place.write(wr);
        self.len = self.len.wrapping_add(1);
        true
    }

    /// Links the requests. Returns the first one; `None` if there is none.
    fn link(&mut self) -> Option<*const bindings::ib_send_wr> {
        let mut next: *mut bindings::ib_send_wr = ptr::null_mut();
        let used = self.requests.iter_mut().zip(&mut self.segments);
        for (request, segments) in used.take(self.len).rev() {
            // SAFETY: By the type invariant the request is initialised.
            let request = unsafe { request.assume_init_mut() };
            request.wr.sg_list = segments.as_mut_ptr().cast();
            request.wr.next = next;
            next = ptr::from_mut(&mut request.wr);
        }
        (!next.is_null()).then_some(next.cast_const())
    }

    /// Returns the number of requests before `bad`.
    fn number_before(&self, bad: *const bindings::ib_send_wr) -> usize {
        let place = self
            .requests
            .iter()
            .position(|request| ptr::eq(request.as_ptr().cast(), bad));
        place.unwrap_or(0)
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
        match ret {
            0 => chain.len(),
            _ => chain.number_before(bad),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts work requests to the queues of a queue pair.

use super::{
    Handler,
    Qp, //
};
use crate::rdma::{
    cq::Handler as CqHandler,
    fast_mr::{
        FastMr,
        PostedMr, //
    },
    wr::{
        self,
        SendFlags,
        SendRequest,
        SgList, //
    },
};
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Returns whether a driver has refused a post because the state of the queue pair changes, or is
/// about to: `siw_post_send()`, `siw_post_receive()`.
pub(crate) fn is_changing_state(error: Error) -> bool {
    error.to_errno() == -(bindings::ENOTCONN as i32)
}

impl<H: Handler, C: CqHandler> Qp<H, C> {
    /// Posts a request to the send queue. Context: any except the callback of a completion queue.
    ///
    /// # Errors
    ///
    /// `EPERM` for an RDMA read into memory whose key no peer may use, over a transport that sends
    /// the peer that key. `ENOMEM` if the queue is full. Any other error of the driver.
    #[inline(always)]
    pub(crate) fn post_send(
        &self,
        wr_id: u64,
        request: SendRequest,
        flags: SendFlags,
        list: &SgList,
    ) -> Result {
        if self.shows_sinks && matches!(request, SendRequest::RdmaRead(_)) && list.has_private_key()
        {
            return Err(EPERM);
        }
        let wr = wr::build(wr_id, request, flags, list);
        // SAFETY: The list lives through the call. The structure is the one that the opcode
        // requires.
        unsafe { self.post_raw(wr.as_raw()) }
    }

    /// Returns whether [`Qp::post_invalidation`] has to precede each registration, because the
    /// driver may repeat a registration that follows an unfinished request.
    pub(crate) fn repeats_registrations(&self) -> bool {
        self._pd.device().driver().repeats_registrations
    }

    /// Returns whether the driver uses a destroyed queue pair when it polls a completion of it.
    pub(crate) fn is_used_by_late_polls(&self) -> bool {
        self._pd.device().driver().polls_use_qps
    }

    /// Returns whether a peer with the same driver answers an RDMA read of no bytes.
    pub(crate) fn answers_empty_reads(&self) -> bool {
        self._pd.device().driver().answers_empty_reads
    }

    /// Posts a request that invalidates a region: its last key is not valid afterwards. The caller
    /// keeps the result until the request has completed or the queue pair is destroyed, so that the
    /// region is not mapped again before.
    ///
    /// Context: any except the callback of a completion queue.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the region is in another protection domain, `ENOMEM` if the queue is full, any
    /// other error of the driver.
    pub(crate) fn post_invalidation(
        &self,
        wr_id: u64,
        region: &Arc<FastMr>,
        fence: bool,
    ) -> Result<PostedMr> {
        if !region.is_in(&self._pd) {
            return Err(EINVAL);
        }
        let wr = wr::build_invalidation(wr_id, region.last_key(), fence);
        // SAFETY: The structure is the one that the opcode requires. It names the region by its
        // key.
        unsafe { self.post_raw(&raw const wr) }?;
        Ok(PostedMr::for_invalidation(region.clone()))
    }

    /// Posts a request that registers a region. The caller keeps the result until the request has
    /// completed or the queue pair is destroyed: the driver accesses the region until then.
    ///
    /// Context: any except the callback of a completion queue.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the region was posted since it was mapped, `EINVAL` if it is in another
    /// protection domain, `ENOMEM` if the queue is full, any other error of the driver.
    pub(crate) fn post_registration(
        &self,
        wr_id: u64,
        region: &Arc<FastMr>,
        flags: SendFlags,
    ) -> Result<PostedMr> {
        if !region.is_in(&self._pd) {
            return Err(EINVAL);
        }
        let posted = PostedMr::for_registration(region.clone())?;
        let wr = region.registration(wr_id, flags);
        // SAFETY: The structure is the one that the opcode requires. The region lives as long as
        // `posted`, which the caller keeps.
        match unsafe { self.post_raw((&raw const wr).cast()) } {
            Ok(()) => {
                posted.was_posted();
                Ok(posted)
            }
            Err(error) => {
                posted.withdraw();
                Err(error)
            }
        }
    }

    /// Posts a request to the send queue. Context: any except the callback of a completion queue.
    ///
    /// # Safety
    ///
    /// `wr` points to a work request in the structure that its opcode requires, with a list that
    /// is initialised. A region in it lives until the request has completed or the queue pair is
    /// destroyed.
    unsafe fn post_raw(&self, wr: *const bindings::ib_send_wr) -> Result {
        // SAFETY: The queue pair is alive. The caller guarantees the rest. The call copies the
        // request.
        let ret = unsafe { bindings::kdapl_helper_ib_post_send(self.raw.as_ptr(), wr) };
        kernel::error::to_result(ret)
    }

    /// Posts a receive. Context: any except the callback of a completion queue.
    pub(crate) fn post_recv(&self, wr_id: u64, list: &SgList) -> Result {
        let wr = wr::build_recv(wr_id, list);
        // SAFETY: The queue pair is alive. The request and the list live through the call, which
        // copies them.
        let ret = unsafe { bindings::kdapl_helper_ib_post_recv(self.raw.as_ptr(), &raw const wr) };
        kernel::error::to_result(ret)
    }
}

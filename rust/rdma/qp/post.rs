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
        Request,
        SgList, //
    },
};
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::Arc, //
};

impl<H: Handler, C: CqHandler> Qp<H, C> {
    /// Posts a request to the send queue. Context: any except the callback of a completion queue.
    ///
    /// # Errors
    ///
    /// `EPERM` for an RDMA read into [kernel memory] over a transport that sends the peer the key
    /// of that memory: it is the key to all memory. `ENOMEM` if the queue is full. Any other error
    /// of the driver.
    ///
    /// [kernel memory]: crate::rdma::kernel_memory::KernelMemory
    pub(crate) fn post_send(
        &self,
        wr_id: u64,
        request: Request,
        fence: bool,
        list: &SgList,
    ) -> Result {
        if self.shows_sinks && matches!(request, Request::RdmaRead(_)) && list.has_global_key() {
            return Err(EPERM);
        }
        let wr = wr::build(wr_id, request, fence, list);
        // SAFETY: The list lives through the call. The structure is the one that the opcode requires.
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

    /// Posts a request that invalidates a region.
    ///
    /// Context: any except the callback of a completion queue.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full, any other error of the driver.
    pub(crate) fn post_invalidation(&self, wr_id: u64, region: &FastMr) -> Result {
        let wr = wr::build_invalidation(wr_id, region.key());
        // SAFETY: The structure is the one that the opcode requires. It names the region by its key.
        unsafe { self.post_raw(&raw const wr) }
    }

    /// Posts a request that registers a region. The caller keeps a reference to the region until
    /// the request has completed or the queue pair is destroyed: the driver accesses it until then.
    ///
    /// Context: any except the callback of a completion queue.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the region was posted before, `EINVAL` if it is in another protection domain,
    /// `ENOMEM` if the queue is full, any other error of the driver.
    pub(crate) fn post_registration(
        &self,
        wr_id: u64,
        region: &Arc<FastMr>,
        fence: bool,
    ) -> Result<PostedMr> {
        if !region.is_in(&self._pd) {
            return Err(EINVAL);
        }
        let posted = PostedMr::new(region.clone())?;
        let wr = region.registration(wr_id, fence);
        // SAFETY: The structure is the one that the opcode requires. The region lives as long as
        // `posted`, which the caller keeps.
        unsafe { self.post_raw((&raw const wr).cast()) }?;
        Ok(posted)
    }

    /// Posts a request to the send queue. Context: any except the callback of a completion queue.
    ///
    /// # Safety
    ///
    /// `wr` points to a work request in the structure that its opcode requires, with a list that
    /// is initialised. A region in it lives until the request has completed or the queue pair is
    /// destroyed.
    #[inline(always)]
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

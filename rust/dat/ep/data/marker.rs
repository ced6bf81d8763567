// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Retires unsignalled requests, and posts markers for those that no completion would retire.
//!
//! The rules are in [`model::requests`](crate::model::requests). A marker is an RDMA write of no
//! bytes, which the peer's consumer does not notice. It takes a slot until it completes.
//!
//! A marker is posted when the connection begins to end. It completes like any other request, so
//! the end waits for the requests before it as well.

use crate::{
    dat::{
        ep::{
            Ep,
            Inner, //
        },
        prelude::*, //
    },
    model::{
        dto::{
            Dto,
            DtoResult, //
        },
        event::DtoStatus,
        handle::Direction, //
    },
    rdma::wr::{
        Remote,
        SendFlags,
        SendRequest,
        SgList, //
    },
};

impl Ep {
    /// Retires the unsignalled requests before the one in `slot`, which has completed: they have
    /// succeeded.
    pub(super) fn retire_before(&self, inner: &mut Inner, slot: u32) {
        if inner.requests.has_unsignalled() {
            self.retire_unsignalled(inner, slot);
        }
    }

    // Not inlined into the completion of each DTO, most of which have none.
    #[inline(never)]
    fn retire_unsignalled(&self, inner: &mut Inner, slot: u32) {
        while let Some((earlier, dto)) = inner.requests.retire_before(slot) {
            let result = DtoResult {
                status: DtoStatus::Success,
                length: dto.length,
                extra: 0,
            };
            inner.registrations.end(earlier, &dto, result.status);
            self.count_completion(inner, earlier, &dto, result);
        }
    }

    /// Posts a marker if the Endpoint is connected and its last request is unsignalled.
    pub(in crate::dat::ep) fn close_end_if_connected(&self, inner: &mut Inner) {
        if inner.phase.is_connected() {
            // A later call tries again.
            self.close_end(inner);
        }
    }

    /// As [`Ep::close_end_if_connected`], for a caller that waits for the last request.
    pub(in crate::dat) fn close_end_now(&self) {
        self.close_end_if_connected(&mut self.inner.lock());
    }

    /// As [`Ep::close_end_if_connected`], if nothing was posted since the last call, a second ago:
    /// the slots come back although the consumer posts nothing more. While the consumer posts, the
    /// marker could take the slot that its next request needs.
    pub(in crate::dat::ep) fn close_end_in_time(&self) {
        let mut inner = self.inner.lock();
        if inner.requests.is_idle_since_last_call() {
            self.close_end_if_connected(&mut inner);
        }
    }

    /// Posts a marker if the last request is unsignalled. Returns `false` if the device refuses it.
    fn close_end(&self, inner: &mut Inner) -> bool {
        !inner.requests.has_open_end() || self.post_marker(inner).is_ok()
    }

    #[cold]
    fn post_marker(&self, inner: &mut Inner) -> DatResult {
        let qp = inner.qp.as_ref().ok_or(Self::gone())?;
        let mut marker = Dto::marker();
        inner.mark(&mut marker);
        // By the rules of the model there is a slot.
        let posted = inner.requests.post(marker).ok_or(DatError::internal())?;
        let wr = self.request_id(inner, posted.slot);
        let nowhere = SendRequest::RdmaWrite(Remote::NOWHERE);
        qp.post_send(wr, nowhere, SendFlags::SIGNALLED, &SgList::new())
            .inspect_err(|_| inner.requests.cancel(posted.slot))?;
        self.trace_post(inner, posted.slot, &marker);
        Ok(())
    }

    /// As [`Ep::close_end`], when the connection begins to end. If the device refuses the marker,
    /// it carries out nothing more: the requests are given up.
    pub(in crate::dat::ep) fn close_end_or_give_up(&self, inner: &mut Inner) {
        if self.close_end(inner) {
            return;
        }
        let mut count = 0_u32;
        while inner.requests.give_up_end().is_some() {
            count = count.saturating_add(1);
        }
        if let Some(shares) = &inner.shares {
            shares.give_up(Direction::Request, count);
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts binds of Remote Memory Regions (RMRs).

use super::post::{
    no_slot,
    refused, //
};
use crate::{
    dat::{
        ep::{
            Ep,
            Inner, //
        },
        prelude::*, //
    },
    model::{
        completion::CompletionFlags,
        dto::Dto,
        ep::may_post_request,
        event::Operation,
        handle::{
            Direction,
            WrId, //
        },
    },
    rdma::{
        fast_mr::{
            FastMr,
            PostedMr, //
        },
        wr::{
            Remote,
            Request,
            SendFlags,
            SgList, //
        },
    },
};
use kernel::rbtree::{
    RBTree,
    RBTreeNodeReservation, //
};

/// A bind, or an unbind, to post.
pub(in crate::dat) struct Bind<'a> {
    /// Handle of the RMR.
    pub(in crate::dat) rmr: u64,
    /// Handle of its Protection Zone.
    pub(in crate::dat) pz: u64,
    /// Region to register; `None` for an unbind.
    pub(in crate::dat) region: Option<&'a Arc<FastMr>>,
    /// Consumer's value, which the completion returns.
    pub(in crate::dat) cookie: u64,
    /// `DAT_COMPLETION_FLAGS`.
    pub(in crate::dat) flags: u32,
}

/// Regions whose registration is in the send queue, by the slots of the requests.
pub(in crate::dat::ep) struct Binds(RBTree<u32, PostedMr>);

impl Binds {
    /// Creates an empty set.
    pub(in crate::dat::ep) fn none() -> Self {
        Self(RBTree::new())
    }

    /// Releases the region of a request that has ended, or that no QP will carry out.
    pub(in crate::dat::ep) fn end(&mut self, slot: u32) {
        drop(self.0.remove(&slot));
    }
}

impl Ep {
    /// Posts a bind or an unbind. Returns `false` if the request was flushed at once.
    ///
    /// An unbind is an RDMA write of no bytes: it completes in the order of the queue.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`Ep::post`], and PROTECTION_VIOLATION if the Endpoint has another Protection Zone.
    pub(in crate::dat) fn post_bind(&self, bind: &Bind<'_>) -> DatResult<bool> {
        self.try_bind(bind)
            .or_else(|error| {
                self.free_suppressed(error)?;
                self.try_bind(bind)
            })
            .or_else(|error| {
                self.await_ready_qp(error)?;
                self.try_bind(bind)
            })
    }

    fn try_bind(&self, bind: &Bind<'_>) -> DatResult<bool> {
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let mut inner = self.inner.lock();
        may_post_request(inner.phase)?;
        if inner.parts.pz()?.handle() != bind.pz {
            return Err(Kind::ProtectionViolation.into());
        }
        let operation = Operation::BindMw;
        let mode = inner.attr.mode(operation.direction());
        let flags = CompletionFlags::of_dto(bind.flags, operation, mode)
            .ok_or(DatError::Invalid(Arg::Flags))?;
        let dto = Dto {
            cookie: bind.cookie,
            operation,
            flags,
            length: bind.rmr,
            posted_at: 0,
        };
        if let Some(flushed) = self.flush_if_disconnected(&mut inner, &dto) {
            return flushed.map(|()| false);
        }
        inner.may_send()?;
        if let Some(region) = bind.region {
            self.post_barrier(&mut inner, region)?;
        }
        let slot = inner.requests.post(dto).ok_or(no_slot())?.slot;
        match self.post_bind_to_qp(&inner, slot, &dto, bind.region) {
            Ok(Some(posted)) => drop(inner.binds.0.insert(node.into_node(slot, posted))),
            Ok(None) => {}
            Err(error) => {
                inner.requests.cancel(slot);
                return Err(error);
            }
        }
        self.trace_post(&mut inner, slot, &dto);
        Ok(true)
    }

    /// Waits until a request whose region is not posted any more has released the region.
    pub(in crate::dat) fn await_end_of_bind(&self) {
        // The region is released under the lock.
        drop(self.inner.lock());
    }

    /// Posts an invalidation before a registration, if the driver needs it. It completes without an
    /// event.
    fn post_barrier(&self, inner: &mut Inner, region: &FastMr) -> DatResult {
        let qp = inner.qp.as_ref().ok_or(Self::gone())?;
        if !qp.repeats_registrations() {
            return Ok(());
        }
        let free = inner.requests.capacity();
        if free.saturating_sub(inner.requests.outstanding()) < 2 {
            return Err(no_slot());
        }
        let barrier = Dto {
            cookie: 0,
            operation: Operation::LmrInvalidate,
            flags: CompletionFlags::default(),
            length: 0,
            posted_at: 0,
        };
        let slot = inner.requests.post(barrier).ok_or(no_slot())?.slot;
        let wr = self.request_id(inner, slot);
        qp.post_invalidation(wr, region).map_err(|error| {
            inner.requests.cancel(slot);
            refused(error)
        })
    }

    pub(super) fn request_id(&self, inner: &Inner, slot: u32) -> u64 {
        WrId::new(slot, inner.life, Direction::Request, self.handle.key()).into_raw()
    }

    fn post_bind_to_qp(
        &self,
        inner: &Inner,
        slot: u32,
        dto: &Dto,
        region: Option<&Arc<FastMr>>,
    ) -> DatResult<Option<PostedMr>> {
        let qp = inner.qp.as_ref().ok_or(Self::gone())?;
        let wr = self.request_id(inner, slot);
        let fence = dto.flags.has(CompletionFlags::BARRIER_FENCE);
        match region {
            Some(region) => qp.post_registration(wr, region, fence).map(Some),
            None => {
                let nowhere = Request::RdmaWrite(Remote::NOWHERE);
                let signalled = true;
                qp.post_send(wr, nowhere, SendFlags { signalled, fence }, &SgList::new())
                    .map(|()| None)
            }
        }
        .map_err(refused)
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts requests that concern memory of this side only: binds of Remote Memory Regions (RMRs),
//! registrations and invalidations of Local Memory Regions (LMRs).

use super::{
    post::{
        no_slot,
        post_error, //
    },
    registrations::RequestObjects, //
};
use crate::{
    dat::{
        ep::{
            Ep,
            Inner, //
        },
        lmr::{
            FastLmr,
            FastLmrState,
            Outstanding,
            PreparedRegistration, //
        },
        prelude::*, //
    },
    model::{
        completion::CompletionFlags,
        dto::{
            Dto,
            PostMark, //
        },
        ep::may_post_request,
        event::Operation,
        fast_lmr::LmrInput,
        handle::{
            Direction,
            Handle,
            WrId, //
        },
        requests::Posted,
    },
    rdma::{
        fast_mr::{
            FastMr,
            PostedMr, //
        },
        wr::{
            Remote,
            SendFlags,
            SendRequest,
            SgList, //
        },
    },
    sys::task::CallContext,
};
use kernel::rbtree::RBTreeNodeReservation;

/// Work of a request.
pub(in crate::dat) enum LocalAction<'a> {
    /// Binds an RMR, given by its handle, by the registration of a region; unbinds it without one.
    Bind(u64, Option<&'a Arc<FastMr>>),
    /// Registers an LMR.
    Register(&'a mut PreparedRegistration),
    /// Invalidates an LMR.
    Invalidate(&'a Arc<FastLmr>),
}

/// A request to post.
pub(in crate::dat) struct LocalRequest<'a> {
    pub(in crate::dat) action: LocalAction<'a>,
    /// Handle of the Protection Zone of the memory.
    pub(in crate::dat) pz: u64,
    /// Consumer's value, which the completion returns.
    pub(in crate::dat) cookie: u64,
    /// `DAT_COMPLETION_FLAGS`.
    pub(in crate::dat) flags: u32,
}

impl LocalAction<'_> {
    fn operation(&self) -> Operation {
        match self {
            Self::Bind(..) => Operation::BindMw,
            Self::Register(_) => Operation::LmrFmr,
            Self::Invalidate(_) => Operation::LmrInvalidate,
        }
    }

    /// Returns the handle that the event reports in place of a length.
    fn subject(&self) -> u64 {
        match self {
            Self::Bind(rmr, _) => *rmr,
            Self::Register(_) | Self::Invalidate(_) => 0,
        }
    }

    fn lmr(&self) -> Option<Arc<FastLmr>> {
        match self {
            Self::Bind(..) => None,
            Self::Register(prepared) => Some(prepared.lmr().clone()),
            Self::Invalidate(lmr) => Some((*lmr).clone()),
        }
    }

    /// Checks the state of the LMR. Returns the region; `None` for an unbind.
    fn region(&self, lmr: Option<&FastLmrState>, ep: Handle) -> DatResult<Option<Arc<FastMr>>> {
        match (self, lmr) {
            (Self::Bind(_, region), _) => Ok(region.cloned()),
            (Self::Register(prepared), Some(lmr)) => {
                lmr.unless_released()?;
                Ok(Some(prepared.region()?.clone()))
            }
            (Self::Invalidate(_), Some(lmr)) => lmr.may_invalidate(ep).map(Some),
            (Self::Register(_) | Self::Invalidate(_), None) => Err(DatError::internal()),
        }
    }

    /// Changes the state of the LMR: the request was posted.
    fn posted(
        &mut self,
        lmr: Option<&mut FastLmrState>,
        ep: Handle,
        is_suppressed: bool,
    ) -> DatResult {
        match (self, lmr) {
            (Self::Register(prepared), Some(lmr)) => prepared.commit(lmr, ep, is_suppressed),
            (Self::Invalidate(_), Some(lmr)) => lmr.invalidate(ep, is_suppressed)?,
            (Self::Bind(..) | Self::Register(_) | Self::Invalidate(_), _) => {}
        }
        Ok(())
    }

    /// Changes the state of the LMR: the request was flushed at once. The caller abandons a
    /// registration.
    fn flushed(&self, lmr: Option<&mut FastLmrState>, ep: Handle) -> DatResult {
        if let (Self::Invalidate(_), Some(lmr)) = (self, lmr) {
            lmr.invalidate(ep, false)?;
            lmr.step(LmrInput::InvalidationEnded { ok: false })?;
        }
        Ok(())
    }
}

impl Ep {
    /// Posts a request. Returns `false` if it was flushed at once.
    ///
    /// Some drivers may execute again a registration that follows an unfinished request. With such
    /// a driver, and with unfinished requests, an invalidation of the region is posted first. The
    /// region is invalid already: the invalidation waits for those requests.
    ///
    /// Context: any. May sleep in [`CallContext::Process`] only.
    ///
    /// # Errors
    ///
    /// - INVALID_STATE if the state of the LMR or of the Endpoint does not allow the request.
    /// - PROTECTION_VIOLATION if the Endpoint is in another Protection Zone.
    /// - INVALID_PARAMETER (flags).
    /// - INSUFFICIENT_RESOURCES if the number of outstanding requests has reached the limit of the
    ///   attributes. A registration that follows an unfinished request may count as two.
    pub(in crate::dat) fn post_local(
        &self,
        request: &mut LocalRequest<'_>,
        context: CallContext,
    ) -> DatResult<bool> {
        let posted = self.try_post_local(request, context);
        if !context.may_sleep() {
            return posted;
        }
        posted
            .or_else(|error| {
                self.free_suppressed(error)?;
                self.try_post_local(request, context)
            })
            .or_else(|error| self.retry_when_ready(error, || self.try_post_local(request, context)))
    }

    fn try_post_local(
        &self,
        request: &mut LocalRequest<'_>,
        context: CallContext,
    ) -> DatResult<bool> {
        let node = RBTreeNodeReservation::new(context.allocation_flags())?;
        let (ep, lmr) = (self.handle, request.action.lmr());
        let mut inner = self.inner.lock();
        let mut state = lmr.as_ref().map(|lmr| lmr.lock());
        let region = request.action.region(state.as_deref(), ep)?;
        may_post_request(inner.phase)?;
        if inner.parts.pz()?.handle() != request.pz {
            return Err(Kind::ProtectionViolation.into());
        }
        let mut dto = Self::local_dto(&inner, request)?;
        if self.flush_if_ended(&mut inner, &dto)? {
            request.action.flushed(state.as_deref_mut(), ep)?;
            return Ok(false);
        }
        inner.may_send()?;
        inner.mark(&mut dto);
        let posted = self.post_local_dto(&mut inner, &dto, region.as_ref(), lmr.as_ref(), node);
        let slot = posted.map_err(|error| inner.post_refused(error))?;
        let is_suppressed = dto.flags.has(CompletionFlags::SUPPRESS);
        request
            .action
            .posted(state.as_deref_mut(), ep, is_suppressed)?;
        self.trace_post(&mut inner, slot, &dto);
        Ok(true)
    }

    /// Posts a request to the QP. Returns its slot.
    fn post_local_dto(
        &self,
        inner: &mut Inner,
        dto: &Dto,
        region: Option<&Arc<FastMr>>,
        lmr: Option<&Arc<FastLmr>>,
        node: RBTreeNodeReservation<u32, RequestObjects>,
    ) -> DatResult<u32> {
        if let (Operation::BindMw | Operation::LmrFmr, Some(region)) = (dto.operation, region) {
            self.post_barrier(inner, region)?;
        }
        let Posted { slot, signalled } = inner.requests.post(*dto).ok_or(no_slot())?;
        let fence = dto.flags.is_fenced();
        let flags = SendFlags { signalled, fence };
        let posted = self.post_local_to_qp(inner, slot, dto, flags, region);
        let posted = posted.inspect_err(|_| inner.requests.cancel(slot))?;
        if let Some(region) = posted {
            let lmr = lmr.map(Outstanding::new);
            let objects = RequestObjects { region, lmr };
            inner.registrations.begin(node, slot, objects);
        }
        Ok(slot)
    }

    fn local_dto(inner: &Inner, request: &LocalRequest<'_>) -> DatResult<Dto> {
        let operation = request.action.operation();
        let mode = inner.attr.mode(operation.direction());
        let flags = CompletionFlags::of_dto(request.flags, operation, mode)
            .ok_or(DatError::Invalid(Arg::Flags))?;
        Ok(Dto {
            cookie: request.cookie,
            operation,
            flags,
            length: request.action.subject(),
            posted: PostMark::NONE,
        })
    }

    /// Waits for a thread that is just releasing the region of a request that has ended.
    pub(in crate::dat) fn await_end_of_bind(&self) {
        // The region is released under the lock.
        drop(self.inner.lock());
    }

    /// Posts an invalidation before a registration, if the driver needs it. It completes without an
    /// event.
    ///
    /// It needs none if no earlier request is unfinished: the driver repeats requests from the
    /// oldest unfinished one on, and a registration finishes when it is carried out. A timer of the
    /// driver can expire between the two. An invalidation would not prevent that: see
    /// `docs/drivers.md`.
    fn post_barrier(&self, inner: &mut Inner, region: &Arc<FastMr>) -> DatResult {
        let qp = inner.qp.as_ref().ok_or(Self::gone())?;
        if !qp.repeats_registrations() || !inner.has_unfinished_requests() {
            return Ok(());
        }
        let capacity = inner.requests.capacity();
        if capacity.saturating_sub(inner.requests.outstanding()) < 2 {
            return Err(no_slot());
        }
        let mut barrier = Dto {
            cookie: 0,
            operation: Operation::LmrInvalidate,
            flags: CompletionFlags::MARKER,
            length: 0,
            posted: PostMark::NONE,
        };
        inner.mark(&mut barrier);
        let slot = inner.requests.post(barrier).ok_or(no_slot())?.slot;
        let wr = self.request_id(inner, slot);
        // It ends before the registration, which holds the region.
        match qp.post_invalidation(wr, region, false) {
            Ok(_) => Ok(()),
            Err(error) => {
                inner.requests.cancel(slot);
                Err(post_error(error))
            }
        }
    }

    pub(super) fn request_id(&self, inner: &Inner, slot: u32) -> u64 {
        WrId::new(slot, inner.life, Direction::Request, self.handle.key()).into_raw()
    }

    fn post_local_to_qp(
        &self,
        inner: &Inner,
        slot: u32,
        dto: &Dto,
        flags: SendFlags,
        region: Option<&Arc<FastMr>>,
    ) -> DatResult<Option<PostedMr>> {
        let qp = inner.qp.as_ref().ok_or(Self::gone())?;
        let wr = self.request_id(inner, slot);
        match (dto.operation, region) {
            (Operation::LmrInvalidate, Some(region)) => {
                qp.post_invalidation(wr, region, flags.fence).map(Some)
            }
            (_, Some(region)) => qp.post_registration(wr, region, flags).map(Some),
            (_, None) => {
                let nowhere = SendRequest::RdmaWrite(Remote::NOWHERE);
                qp.post_send(wr, nowhere, flags, &SgList::new())
                    .map(|()| None)
            }
        }
        .map_err(post_error)
    }
}

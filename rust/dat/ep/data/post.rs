// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts data transfer operations (DTOs).

use super::{
    examine::check_length,
    ready::not_ready, //
};
use crate::{
    dat::{
        base::Segment,
        ep::{
            Ep,
            Inner, //
        },
        evd::no_room,
        prelude::*, //
    },
    model::{
        dto::Dto,
        ep::{
            flushes_posts,
            may_post_recv,
            may_post_request, //
        },
        event::Operation,
        handle::{
            Direction,
            WrId, //
        },
        requests::Posted,
    },
    rdma::{
        qp::is_changing_state,
        wr::{
            SendFlags,
            SgList, //
        },
    },
};

/// A DTO to post.
#[derive(Clone, Copy)]
pub(crate) struct Post<'a> {
    /// Operation of the DTO.
    pub(crate) operation: Operation,
    /// `DAT_COMPLETION_FLAGS`.
    pub(crate) flags: u32,
    /// Consumer's value, which the completion returns.
    pub(crate) cookie: u64,
    /// Local memory.
    pub(crate) local: &'a [Segment],
    /// The peer's memory, for RDMA. Not checked if its length is 0.
    pub(crate) remote: Segment,
    /// Operands of the InfiniBand extensions.
    pub(crate) operands: Operands,
}

/// Operands of the InfiniBand extensions; 0 where an operation has none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Operands {
    /// Immediate data for the peer.
    pub(crate) immed_data: u32,
    /// Summand, or value to compare with.
    pub(crate) compare_add: u64,
    /// Replacement for a value that compares equal.
    pub(crate) swap: u64,
}

/// Reason why a DTO was not posted at once.
pub(crate) enum NotPosted {
    /// The receive has to wait for a connection.
    Waits,
    /// The post failed.
    Refused(DatError),
}

impl From<DatError> for NotPosted {
    fn from(error: DatError) -> Self {
        Self::Refused(error)
    }
}

impl Post<'_> {
    /// Value that an array of DTOs is filled with.
    pub(crate) const NOTHING: Self = Self {
        operation: Operation::Send,
        flags: 0,
        cookie: 0,
        local: &[],
        remote: Segment {
            address: 0,
            length: 0,
            context: 0,
        },
        operands: Operands {
            immed_data: 0,
            compare_add: 0,
            swap: 0,
        },
    };
}

impl Ep {
    /// Implements `dat_ep_post_send`, `_recv`, `_rdma_write`, `_rdma_read` and `_rdma_read_to_rmr`,
    /// and `dat_ib_post_rdma_write_immed`, `_fetch_and_add` and `_cmp_and_swap`.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - MODEL_NOT_SUPPORTED for an operation that the device does not support, and over software
    ///   iWARP for an RDMA read of no bytes.
    /// - INVALID_STATE if the state of the Endpoint does not allow the operation.
    /// - INVALID_PARAMETER for too many segments, for flags that the operation does not know or the
    ///   Endpoint is not configured for, or for an atomic operation on an unaligned address.
    /// - LENGTH_ERROR if the segments are longer than the device can transfer or than the remote
    ///   segment, or not of 64 bits for an atomic operation.
    /// - PROTECTION_VIOLATION for a segment outside the LMRs of the Endpoint's Protection Zone, or
    ///   outside the part that an RMR of that PZ is bound to.
    /// - PRIVILEGES_VIOLATION for a segment whose LMR does not allow this use. An RDMA read over
    ///   iWARP into memory of the kernel is one.
    /// - INSUFFICIENT_RESOURCES if the number of outstanding DTOs has reached the limit of the
    ///   attributes, if an RDMA read or an atomic operation may not be outstanding at all, or if a
    ///   DTO would be flushed at once and its EVD is full.
    // If the caller passes a constant operation, the compiler removes the code for the others.
    #[inline(always)]
    pub(crate) fn post(&self, post: &Post<'_>) -> DatResult {
        let posted = match self.post_at_once(post) {
            Err(NotPosted::Waits) => self.post_for_later(post),
            Err(NotPosted::Refused(error)) => Err(error),
            Ok(()) => return Ok(()),
        };
        posted
            .or_else(|error| self.retry_without_slot(post, error))
            .or_else(|error| self.retry_when_ready(error, || self.post_again(post)))
            .map_err(|error| self.context.ia.removal_or(error))
    }

    /// As [`Ep::post`], without anything that sleeps: waiting for a slot or for a QP that is being
    /// made ready, and keeping a receive for a later connection.
    ///
    /// Context: any.
    #[inline(always)]
    pub(crate) fn post_at_once(&self, post: &Post<'_>) -> Result<(), NotPosted> {
        self.context
            .ia
            .attr()
            .extensions
            .check_supported(post.operation)?;
        let mut inner = self.inner.lock();
        if inner.preposted_count.is_some() && post.operation == Operation::Receive {
            return Err(NotPosted::Waits);
        }
        Ok(self.post_now(&mut inner, post)?)
    }

    /// Posts to the QP.
    #[inline(always)]
    pub(in crate::dat::ep) fn post_now(&self, inner: &mut Inner, post: &Post<'_>) -> DatResult {
        // Constant operations for the frequent cases let the compiler remove branches.
        match post.operation {
            Operation::Receive => self.post_as(Operation::Receive, inner, post),
            Operation::Send => self.post_as(Operation::Send, inner, post),
            _ => self.post_other(inner, post),
        }
    }

    #[inline(never)]
    fn post_other(&self, inner: &mut Inner, post: &Post<'_>) -> DatResult {
        self.post_as(post.operation, inner, post)
    }

    /// As [`Ep::post_now`], where it is rare.
    #[cold]
    pub(super) fn post_again(&self, post: &Post<'_>) -> DatResult {
        self.post_as(post.operation, &mut self.inner.lock(), post)
    }

    #[inline(always)]
    fn post_as(&self, operation: Operation, inner: &mut Inner, post: &Post<'_>) -> DatResult {
        match operation {
            Operation::Receive => inner.may_post_recv()?,
            _ => may_post_request(inner.phase)?,
        }
        if operation.reads_remotely() && self.refuses_reads(inner) {
            return Err(no_slot());
        }
        let mut list = SgList::new();
        let dto = self.examine(operation, inner, post, &mut list)?;
        if flushes_posts(inner.phase) {
            // A copy for this rare call: the post itself then need not be in memory.
            return self.post_after_end(inner, dto, &{ *post }, &list);
        }
        match operation {
            Operation::Receive => self.post_to_qp(inner, dto, post.local, &list),
            _ => self.post_request(inner, dto, post, &list),
        }
    }

    /// Returns whether an RDMA read must be refused: the attributes permit none, or over iWARP the
    /// peer accepts none, and the driver would never complete it. Over other transports a read to
    /// such a peer breaks the connection.
    pub(in crate::dat::ep) fn refuses_reads(&self, inner: &Inner) -> bool {
        inner.attr.max_rdma_read_out == 0
            || (inner.phase.is_connected() && self.is_peer_without_reads(inner))
    }

    /// Returns whether the peer of the connection, or of the last one, accepts no RDMA reads, and
    /// the driver must not get any.
    fn is_peer_without_reads(&self, inner: &Inner) -> bool {
        let accepted = inner.connection.read_depth;
        self.context.ia.is_iwarp() && accepted.is_some_and(|depth| depth.initiator == 0)
    }

    /// Posts a DTO after the end of the connection: reports it as flushed, or lets the QP flush it
    /// after outstanding ones.
    #[cold]
    fn post_after_end(
        &self,
        inner: &mut Inner,
        dto: Dto,
        post: &Post<'_>,
        list: &SgList,
    ) -> DatResult {
        if self.flush_at_once(inner, &dto)? {
            return Ok(());
        }
        self.flush_by_qp(inner, dto, post, list)
    }

    /// Lets the QP flush a DTO that is posted after the end of the connection.
    pub(super) fn flush_by_qp(
        &self,
        inner: &mut Inner,
        mut dto: Dto,
        post: &Post<'_>,
        list: &SgList,
    ) -> DatResult {
        // The QP may still be in RTS.
        if dto.operation.reads_remotely() && self.is_peer_without_reads(inner) {
            return Err(no_slot());
        }
        inner.mark(&mut dto);
        let direction = dto.operation.direction();
        let posted = match direction {
            Direction::Receive => self.post_to_qp(inner, dto, post.local, list),
            Direction::Request => self.post_request(inner, dto, post, list),
        };
        posted.map_err(|error| inner.post_refused(error))?;
        if direction == Direction::Request {
            // The QP may be moving to ERR, and have carried out earlier requests unsignalled.
            self.close_end_or_give_up(inner);
        }
        Ok(())
    }

    /// Reports a DTO as flushed if it is posted after the end of the connection. Returns whether it
    /// did. A DTO that has to follow outstanding ones is not reported: the caller posts it to the
    /// QP, which flushes it.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (EVD) if the EVD is full.
    pub(in crate::dat::ep) fn flush_if_ended(
        &self,
        inner: &mut Inner,
        dto: &Dto,
    ) -> DatResult<bool> {
        if flushes_posts(inner.phase) {
            self.flush_at_once(inner, dto)
        } else {
            Ok(false)
        }
    }

    #[cold]
    fn flush_at_once(&self, inner: &mut Inner, dto: &Dto) -> DatResult<bool> {
        if inner.qp.is_none() {
            // A reset is replacing the QP, or the device was removed.
            return Err(inner.phase.invalid_state_error());
        }
        let direction = dto.operation.direction();
        if inner.outstanding(direction) != 0 {
            return Ok(false);
        }
        let evd = match direction {
            Direction::Request => inner.parts.request_evd(),
            Direction::Receive => inner.parts.recv_evd(),
        };
        let event = dto.flushed(self.handle());
        evd?.post(&event).map_err(|_| no_room())?;
        if direction == Direction::Receive {
            self.count_flushed(inner, 1);
        }
        Ok(true)
    }

    /// Posts a receive.
    #[inline(always)]
    pub(in crate::dat::ep) fn post_to_qp(
        &self,
        inner: &mut Inner,
        dto: Dto,
        local: &[Segment],
        list: &SgList,
    ) -> DatResult {
        let phase = inner.phase;
        // A reset is replacing the QP, or the device was removed, which is reported instead.
        let missing = || phase.invalid_state_error();
        let qp = inner.qp.as_ref().ok_or_else(missing)?;
        let slot = inner.receives.post(dto).ok_or(no_slot())?;
        inner.named.receives.name(slot, local);
        let wr = WrId::new(slot, inner.life, Direction::Receive, self.handle.key());
        if let Err(error) = qp.post_recv(wr.into_raw(), list) {
            inner.receives.cancel(slot);
            return Err(post_error(error));
        }
        self.trace_post(inner, slot, &dto);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn post_request(
        &self,
        inner: &mut Inner,
        dto: Dto,
        post: &Post<'_>,
        list: &SgList,
    ) -> DatResult {
        inner.may_send()?;
        let (request, fence) = self.work_request(&dto, post)?;
        let qp = inner.qp.as_ref().ok_or(Self::gone())?;
        check_length(&dto, qp)?;
        let Posted { slot, signalled } = inner.requests.post(dto).ok_or(no_slot())?;
        inner.named.requests.name(slot, post.local);
        let wr = WrId::new(slot, inner.life, Direction::Request, self.handle.key());
        let flags = SendFlags { signalled, fence };
        if let Err(error) = qp.post_send(wr.into_raw(), request, flags, list) {
            inner.requests.cancel(slot);
            return Err(post_error(error));
        }
        self.trace_post(inner, slot, &dto);
        Ok(())
    }
}

impl Inner {
    /// Checks whether the QP can send. A driver may accept a request that its device does not carry
    /// out in this state.
    ///
    /// # Errors
    ///
    /// [`not_ready`].
    pub(in crate::dat::ep) fn may_send(&self) -> DatResult {
        if self.connection.attempt.readies_qp {
            return Err(not_ready());
        }
        Ok(())
    }

    /// Checks whether a receive may be posted.
    ///
    /// # Errors
    ///
    /// INVALID_STATE in the present state, or if the receives come from a Shared Receive Queue.
    #[inline(always)]
    pub(in crate::dat::ep) fn may_post_recv(&self) -> DatResult {
        may_post_recv(self.phase)?;
        if self.parts.srq.is_some() {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateSrqOperational,
            ));
        }
        Ok(())
    }
}

/// Returns the error for too many outstanding DTOs.
pub(in crate::dat::ep) fn no_slot() -> DatError {
    DatError::new(Kind::InsufficientResources, Subtype::ResourceTep)
}

/// Returns the DAT error for a post that the device driver has refused.
#[cold]
pub(super) fn post_error(error: Error) -> DatError {
    if error == ENOMEM {
        no_slot()
    } else if is_changing_state(error) {
        not_ready()
    } else if error == EPERM {
        // Over iWARP the peer's response to an RDMA read is a remote write, and kernel memory is
        // registered without that right.
        DatError::new(Kind::PrivilegesViolation, Subtype::PrivilegesRdmaWrite)
    } else {
        error.into()
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Posting of data transfer operations (DTOs).

use super::Ep;
use crate::error::Result;
use crate::evd::Evd;
use crate::event::{DtoOperation, Event};
use crate::flags::CompletionFlags;
use crate::raw::{self, call};
use crate::sys::*;
use crate::time::Until;
use crate::Segment;
use std::marker::PhantomData;
use std::time::Duration;

/// A DTO for [`Ep::post_dto`] and [`Ep::submit`].
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Dto<'a>(pub(super) kdapl_dto, PhantomData<&'a [Segment]>);

impl<'a> Dto<'a> {
    /// Makes any operation; the arguments are those of [`Ep::post`].
    #[must_use]
    pub fn new(
        operation: DtoOperation,
        segments: &'a [Segment],
        remote: Option<Segment>,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Self {
        let dto = kdapl_dto {
            operation: operation.number(),
            flags: flags.0,
            cookie,
            iov: if segments.is_empty() { 0 } else { segments.as_ptr() as u64 },
            iov_count: segments.len() as u32,
            iov_size: size_of::<Segment>() as u32,
            remote: remote.unwrap_or_default(),
            ..Default::default()
        };
        Self(dto, PhantomData)
    }

    /// Returns the DTO in the form of a message.
    pub(crate) fn raw(&self) -> kdapl_dto {
        self.0
    }

    /// Makes a send; the arguments are those of [`Ep::post_send`].
    #[must_use]
    pub fn send(segments: &'a [Segment], cookie: u64, flags: CompletionFlags) -> Self {
        Self::new(DtoOperation::Send, segments, None, cookie, flags)
    }

    /// Makes a receive; the arguments are those of [`Ep::post_recv`].
    #[must_use]
    pub fn recv(segments: &'a [Segment], cookie: u64, flags: CompletionFlags) -> Self {
        Self::new(DtoOperation::Receive, segments, None, cookie, flags)
    }
}

/// Wait that follows the posts of [`Ep::submit`].
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    /// EVD to wait on.
    pub evd: &'a Evd,
    /// Time-out, as in [`Evd::wait`].
    pub timeout: Option<Duration>,
    /// Number of events to wait for, as in [`Evd::wait`].
    pub threshold: i32,
}

/// Result of [`Ep::submit`].
#[derive(Debug)]
pub struct Submitted {
    /// Number of DTOs posted.
    pub posted: usize,
    /// The event and the number of events left in the queue, if the call waited. An error is that
    /// of the first DTO that was refused, as for [`Ep::post`]; if all were posted, it is that of
    /// the wait. `INVALID_PARAMETER` (argument 2) for more than [`KDAPL_SUBMIT_MAX`] DTOs.
    pub event: Result<Option<(Event, u32)>>,
}

impl Ep {
    /// Posts a send of `segments`, gathered into one message. The completion on the request EVD
    /// carries `cookie`.
    ///
    /// # Errors
    /// `INVALID_STATE` unless connected; `INVALID_PARAMETER` for too many segments;
    /// `INSUFFICIENT_RESOURCES` if the maximum number of requests is outstanding.
    pub fn post_send(
        &self,
        segments: &[Segment],
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post(DtoOperation::Send, segments, None, cookie, flags)
    }

    /// Posts a send that invalidates `rmr_context`, one of the peer's RMRs, when it arrives.
    ///
    /// # Errors
    /// Those of [`post_send`](Self::post_send).
    pub fn post_send_with_invalidate(
        &self,
        segments: &[Segment],
        rmr_context: u32,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        let rmr = Segment { context: rmr_context, ..Default::default() };
        self.post(DtoOperation::SendWithInvalidate, segments, Some(rmr), cookie, flags)
    }

    /// Posts a receive, which scatters one message over `segments`. May be posted before
    /// connecting.
    ///
    /// # Errors
    /// Those of [`post_send`](Self::post_send).
    pub fn post_recv(
        &self,
        segments: &[Segment],
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post(DtoOperation::Receive, segments, None, cookie, flags)
    }

    /// Posts an RDMA Write of `segments` to the peer's `remote`. The peer gets no event.
    ///
    /// # Errors
    /// Those of [`post_send`](Self::post_send), and `LENGTH_ERROR` if `remote` is too short.
    pub fn post_rdma_write(
        &self,
        segments: &[Segment],
        remote: Segment,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post(DtoOperation::RdmaWrite, segments, Some(remote), cookie, flags)
    }

    /// Posts an RDMA Read of the peer's `remote` into `segments`. The peer gets no event.
    ///
    /// # Errors
    /// Those of [`post_rdma_write`](Self::post_rdma_write).
    pub fn post_rdma_read(
        &self,
        segments: &[Segment],
        remote: Segment,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post(DtoOperation::RdmaRead, segments, Some(remote), cookie, flags)
    }

    /// Posts an RDMA Read of the peer's `remote` into `local`, a segment with the context of a
    /// bound RMR. The completion has the operation `RdmaRead`. The peer gets no event.
    ///
    /// # Errors
    /// Those of [`post_rdma_write`](Self::post_rdma_write); `PROTECTION_VIOLATION` if no RMR of the
    /// PZ is bound with this context or `local` exceeds its part; `PRIVILEGES_VIOLATION` if it is
    /// bound without `REMOTE_WRITE`.
    pub fn post_rdma_read_to_rmr(
        &self,
        local: Segment,
        remote: Segment,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post(DtoOperation::RdmaReadToRmr, &[local], Some(remote), cookie, flags)
    }

    /// Posts any `operation`. RDMA operations need `remote`.
    ///
    /// # Errors
    /// Those of [`post_rdma_write`](Self::post_rdma_write), and `INVALID_PARAMETER` for an
    /// operation that the kernel does not know.
    pub fn post(
        &self,
        operation: DtoOperation,
        segments: &[Segment],
        remote: Option<Segment>,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post_dto(&Dto::new(operation, segments, remote, cookie, flags))
    }

    /// Posts a DTO.
    ///
    /// # Errors
    /// Those of [`post`](Self::post).
    pub fn post_dto(&self, dto: &Dto<'_>) -> Result<()> {
        let (device, handle) = (self.device(), self.handle());
        let mut message = kdapl_ep_post { handle: handle.0, dto: dto.0, ..Default::default() };
        if dto.0.operation == KDAPL_DTO_RECEIVE {
            return raw::call(device, call::EP_POST, &mut message);
        }
        let mut posts = self.posts();
        if posts.count(device) {
            return raw::call(device, call::EP_POST, &mut message);
        }
        if posts.map(device, handle, dto) {
            return Ok(());
        }
        message.hdr.flags = posts.flags(device, handle);
        raw::call(device, call::EP_POST, &mut message)?;
        posts.learn(device, dto);
        Ok(())
    }

    /// Returns the number of DTOs that were posted without a call so far: "Mapped posts" in
    /// `docs/ioctl/dto.md`.
    #[must_use]
    pub fn mapped_posts(&self) -> u64 {
        self.posts().total()
    }

    /// Posts all of `dtos` in their order and then, with a `wait`, waits like
    /// [`Evd::wait`](crate::Evd::wait), in one system call. Stops at the first DTO that is refused.
    pub fn submit(&self, dtos: &[Dto<'_>], wait: Option<Wait<'_>>) -> Submitted {
        if self.posts().begin_unlocked() {
            let submitted = self.submit_unlocked(dtos, wait);
            self.posts().end_unlocked();
            return submitted;
        }
        let posts = self.posts();
        let submitted = self.submit_unlocked(dtos, None);
        drop(posts);
        match (wait, &submitted.event) {
            (Some(wait), Ok(_)) => {
                let event = wait.evd.wait(wait.timeout, wait.threshold).map(Some);
                Submitted { event, ..submitted }
            }
            _ => submitted,
        }
    }

    fn submit_unlocked(&self, dtos: &[Dto<'_>], wait: Option<Wait<'_>>) -> Submitted {
        let mut event = kdapl_event::default();
        let mut message = kdapl_ep_submit {
            handle: self.handle().0,
            dtos: dtos.as_ptr() as u64,
            count: u32::try_from(dtos.len()).unwrap_or(u32::MAX),
            dto_size: size_of::<Dto<'_>>() as u32,
            ..Default::default()
        };
        if let Some(wait) = wait {
            message.evd = wait.evd.handle().0;
            message.timeout_ns = Until::after(wait.timeout).timeout_ns;
            message.threshold = wait.threshold;
            message.max_events = 1;
            message.events = std::ptr::from_mut(&mut event) as u64;
            message.event_size = size_of::<kdapl_event>() as u32;
        }
        let answer = raw::call(self.device(), call::EP_SUBMIT, &mut message);
        let taken = || (Event::decode(self.device(), &event), message.nmore);
        let event = answer.map(|()| wait.map(|_| taken()));
        Submitted { posted: message.posted as usize, event }
    }
}

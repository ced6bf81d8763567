// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Posting data transfer operations.

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
    /// Any operation, with what [`Ep::post`] takes.
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

    /// A send, with what [`Ep::post_send`] takes.
    #[must_use]
    pub fn send(segments: &'a [Segment], cookie: u64, flags: CompletionFlags) -> Self {
        Self::new(DtoOperation::Send, segments, None, cookie, flags)
    }

    /// A receive, with what [`Ep::post_recv`] takes.
    #[must_use]
    pub fn recv(segments: &'a [Segment], cookie: u64, flags: CompletionFlags) -> Self {
        Self::new(DtoOperation::Receive, segments, None, cookie, flags)
    }
}

/// What [`Ep::submit`] waits for.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    /// Where.
    pub evd: &'a Evd,
    /// As in [`Evd::wait`].
    pub timeout: Option<Duration>,
    /// As in [`Evd::wait`].
    pub threshold: i32,
}

/// What [`Ep::submit`] came to.
#[derive(Debug)]
pub struct Submitted {
    /// How many DTOs were posted.
    pub posted: usize,
    /// The event, and how many are left, if one was waited for. An error is that of the DTO
    /// behind those that were posted, as [`Ep::post`] has it; or if all were, that of the wait.
    /// `INVALID_PARAMETER` (argument 2) for more than [`KDAPL_SUBMIT_MAX`] DTOs.
    pub event: Result<Option<(Event, u32)>>,
}

impl Ep {
    /// Posts a send of `segments`, gathered into one message. `cookie` comes back in the
    /// completion on the request EVD.
    ///
    /// # Errors
    /// `INVALID_STATE` unless connected; `INVALID_PARAMETER` for too many segments;
    /// `INSUFFICIENT_RESOURCES` with all request slots in use.
    pub fn post_send(
        &self,
        segments: &[Segment],
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post(DtoOperation::Send, segments, None, cookie, flags)
    }

    /// Posts a receive, which scatters one message over `segments`; also before connecting.
    ///
    /// # Errors
    /// As [`post_send`](Self::post_send).
    pub fn post_recv(
        &self,
        segments: &[Segment],
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post(DtoOperation::Receive, segments, None, cookie, flags)
    }

    /// Posts an RDMA write of `segments` to the peer's `remote`; the peer sees no event.
    ///
    /// # Errors
    /// As [`post_send`](Self::post_send), and `LENGTH_ERROR` if `remote` is too short.
    pub fn post_rdma_write(
        &self,
        segments: &[Segment],
        remote: Segment,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post(DtoOperation::RdmaWrite, segments, Some(remote), cookie, flags)
    }

    /// Posts an RDMA read of the peer's `remote` into `segments`; the peer sees no event.
    ///
    /// # Errors
    /// As [`post_rdma_write`](Self::post_rdma_write).
    pub fn post_rdma_read(
        &self,
        segments: &[Segment],
        remote: Segment,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post(DtoOperation::RdmaRead, segments, Some(remote), cookie, flags)
    }

    /// Posts any `operation`; `remote` is for the RDMA ones.
    ///
    /// # Errors
    /// As [`post_rdma_write`](Self::post_rdma_write), and `INVALID_PARAMETER` for an operation
    /// that the kernel does not know.
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

    /// Posts what was put together before.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn post_dto(&self, dto: &Dto<'_>) -> Result<()> {
        let handle = self.handle().0;
        let mut message = kdapl_ep_post { handle, dto: dto.0, ..Default::default() };
        raw::call(self.device(), call::EP_POST, &mut message)
    }

    /// Posts all of `dtos` in their order, then waits as [`Evd::wait`](crate::Evd::wait) does, if there is
    /// something to wait for: all in one system call. Behind a DTO that is refused none is posted.
    pub fn submit(&self, dtos: &[Dto<'_>], wait: Option<Wait<'_>>) -> Submitted {
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
        let event = answer.and_then(|()| match wait {
            Some(_) => Ok(Some((Event::decode(self.device(), &event)?, message.nmore))),
            None => Ok(None),
        });
        Submitted { posted: message.posted as usize, event }
    }
}

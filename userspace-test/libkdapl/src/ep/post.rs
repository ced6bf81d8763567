// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Posting data transfer operations.

use super::Ep;
use crate::error::Result;
use crate::event::DtoOperation;
use crate::flags::CompletionFlags;
use crate::raw::{self, call};
use crate::sys::*;
use crate::Segment;

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
        let mut message = kdapl_ep_post {
            handle: self.handle().0,
            operation: operation.number(),
            flags: flags.0,
            cookie,
            iov: if segments.is_empty() { 0 } else { segments.as_ptr() as u64 },
            iov_count: segments.len() as u32,
            remote: remote.unwrap_or_default(),
            ..Default::default()
        };
        raw::call(self.device(), call::EP_POST, &mut message)
    }
}

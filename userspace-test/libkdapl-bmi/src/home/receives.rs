// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Receive buffers.
//!
//! All connections share one Shared Receive Queue (SRQ). It has as many receives as its peers may
//! send messages at once, up to a limit. Above the limit, a message may have to wait at its sender
//! until a buffer is free, which no consumer can delay: a buffer is posted again before its message
//! is processed. Over iWARP, a message that finds no receive ends its connection. There, and on
//! devices without SRQs, each connection has receives of its own.

use super::buffers::Buffers;
use super::Adapter;
use crate::options::Options;
use libkdapl::{CompletionFlags, Ep, Handle, Privileges, Srq};
use rustc_hash::{FxHashMap, FxHashSet};

/// Buffers that are registered together.
const CHUNK: usize = 64;

/// Bit of the cookies of receives.
pub(crate) const RECEIVE: u64 = 1 << 63;

/// The receive buffers.
pub(crate) struct Receives {
    /// The buffers. Those that are not posted are free.
    buffers: Buffers,
    srq: Option<Srq>,
    /// Receives that the SRQ may have, and those that it has.
    limit: usize,
    posted: usize,
    /// Buffers that Endpoints without the SRQ have.
    of_eps: FxHashMap<Handle, FxHashSet<usize>>,
}

impl Receives {
    pub(super) fn new(adapter: &Adapter, options: &Options) -> libkdapl::Result<Self> {
        let limit = options.shared_receives.min(adapter.limits.raw.max_recv_per_srq);
        let srq = match adapter.needs_own_receives() {
            true => None,
            false => Some(adapter.ia.create_srq(&adapter.pz, limit, 1)?),
        };
        Ok(Self {
            buffers: Buffers::new(options.message as usize, CHUNK, Privileges::LOCAL_WRITE),
            srq,
            limit: limit as usize,
            posted: 0,
            of_eps: FxHashMap::default(),
        })
    }

    /// Returns the SRQ, if the connections share their receives.
    pub(super) fn srq(&self) -> Option<&Srq> {
        self.srq.as_ref()
    }

    /// Returns whether each connection has receives of its own.
    pub(crate) fn are_own(&self) -> bool {
        self.srq.is_none()
    }

    /// Returns the registered bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.buffers.bytes()
    }

    /// Posts receives for `count` connections, whose peers may send `window` messages each: those
    /// of the new connection `ep`, or those that the SRQ lacks.
    pub(super) fn prepare(
        &mut self,
        adapter: &Adapter,
        ep: Option<&Ep>,
        (window, count): (usize, usize),
    ) -> libkdapl::Result<()> {
        let wanted = match self.srq {
            Some(_) => (window * count).min(self.limit).saturating_sub(self.posted),
            None => window,
        };
        for _ in 0..wanted {
            let buffer = self.buffers.take(adapter)?;
            self.post(buffer, ep)?;
        }
        Ok(())
    }

    /// Posts a buffer that is not posted. One that cannot be posted is free.
    fn post(&mut self, buffer: usize, ep: Option<&Ep>) -> libkdapl::Result<()> {
        let size = self.buffers.size();
        let (segments, cookie) = ([self.buffers.segment(buffer, size)], buffer as u64 | RECEIVE);
        let posted = match (&self.srq, ep) {
            (Some(srq), _) => srq.post_recv(&segments, cookie).map(|()| self.posted += 1),
            (None, Some(ep)) => {
                let posted = ep.post_recv(&segments, cookie, CompletionFlags::default());
                if posted.is_ok() {
                    self.of_eps.entry(ep.handle()).or_default().insert(buffer);
                }
                posted
            }
            (None, None) => {
                self.buffers.free(buffer);
                return Ok(());
            }
        };
        if posted.is_err() {
            self.buffers.free(buffer);
        }
        posted
    }

    /// Records that a receive has ended. Returns its buffer, unless it was taken back before.
    fn ended(&mut self, ep: Handle, cookie: u64) -> Option<usize> {
        let buffer = (cookie & !RECEIVE) as usize;
        if self.srq.is_some() {
            self.posted = self.posted.saturating_sub(1);
            return Some(buffer);
        }
        self.of_eps.get_mut(&ep)?.remove(&buffer).then_some(buffer)
    }

    /// Copies a message, and posts its buffer again. Returns an error if this is not possible: the
    /// connection `ep` has ended, or memory is short.
    pub(crate) fn take(
        &mut self,
        ep: &Ep,
        (cookie, length): (u64, usize),
        message: &mut Vec<u8>,
    ) -> libkdapl::Result<()> {
        let Some(buffer) = self.ended(ep.handle(), cookie) else { return Ok(()) };
        message.resize(length.min(self.buffers.size()), 0);
        let (memory, at) = self.buffers.memory(buffer);
        memory.read(at, message);
        self.post(buffer, Some(ep))
    }

    /// Takes back a buffer without a message. One of the SRQ is posted again.
    pub(crate) fn flushed(&mut self, ep: Handle, cookie: u64) {
        if let Some(buffer) = self.ended(ep, cookie) {
            // An error frees the buffer, and the next connection posts it.
            let _ = self.post(buffer, None);
        }
    }

    /// Takes back the receives of an Endpoint that was freed, of which no events come any more. One
    /// of the SRQ may be lost with the connection that it was for: it is replaced. `window` has the
    /// messages of a connection and the number of those that are left.
    pub(super) fn forget(&mut self, adapter: &Adapter, ep: Handle, window: (usize, usize)) {
        for buffer in self.of_eps.remove(&ep).into_iter().flatten() {
            self.buffers.free(buffer);
        }
        let outstanding = self.srq.as_ref().and_then(|srq| srq.query().ok());
        if let Some(query) = outstanding {
            self.posted = self.posted.min(query.outstanding as usize);
            // An error leaves the receives to the next connection.
            let _ = self.prepare(adapter, None, window);
        }
    }
}

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
use crate::bmi::engine::{RailId, SharedReceives};
use crate::options::Options;
use libkdapl::{CompletionFlags, Ep, Handle, Privileges, Srq, Subtype, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Buffers that are registered together.
const CHUNK: usize = 64;

/// Bit of the cookies of receives.
pub(crate) const RECEIVE: u64 = 1 << 63;

/// The receive buffers.
pub(crate) struct Receives {
    /// The buffers. Those that are not posted are free.
    buffers: Buffers,
    srq: Option<Srq>,
    count: SharedReceives,
    /// Receives whose events are dequeued and not processed yet. The waiting thread counts them
    /// without the lock.
    dequeued: Arc<AtomicUsize>,
    /// Buffers that Endpoints without the SRQ have.
    of_eps: FxHashMap<Handle, FxHashSet<usize>>,
    /// The same, of those that are being freed.
    of_ending: FxHashMap<RailId, FxHashSet<usize>>,
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
            count: SharedReceives::new(limit as usize),
            dequeued: Arc::default(),
            of_eps: FxHashMap::default(),
            of_ending: FxHashMap::default(),
        })
    }

    /// Returns the SRQ, if the connections share their receives.
    pub(super) fn srq(&self) -> Option<&Srq> {
        self.srq.as_ref()
    }

    /// Returns the count of receives whose events are dequeued and not processed yet.
    pub(crate) fn dequeued(&self) -> Arc<AtomicUsize> {
        self.dequeued.clone()
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
        if self.srq.is_none() {
            return (0..window).try_for_each(|_| self.add(adapter, ep));
        }
        while self.count.lacking(window * count) > 0 {
            self.add(adapter, ep)?;
        }
        Ok(())
    }

    fn add(&mut self, adapter: &Adapter, ep: Option<&Ep>) -> libkdapl::Result<()> {
        let buffer = self.buffers.take(adapter)?;
        self.post(buffer, ep)
    }

    /// Posts a buffer that is not posted. One that cannot be posted is free, also if the SRQ is
    /// full.
    fn post(&mut self, buffer: usize, ep: Option<&Ep>) -> libkdapl::Result<()> {
        let size = self.buffers.size();
        let (segments, cookie) = ([self.buffers.segment(buffer, size)], buffer as u64 | RECEIVE);
        let posted = match (&self.srq, ep) {
            (Some(srq), _) => srq.post_recv(&segments, cookie).map(|()| self.count.was_posted()),
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
        let Err(error) = posted else { return Ok(()) };
        self.buffers.free(buffer);
        if is_srq_full(&error) {
            self.count.was_refused();
            return Ok(());
        }
        Err(error)
    }

    /// Records that a receive has ended. Returns its buffer, unless it was taken back before.
    fn ended(&mut self, ep: Handle, cookie: u64) -> Option<usize> {
        let buffer = (cookie & !RECEIVE) as usize;
        self.dequeued.fetch_sub(1, Ordering::Relaxed);
        if self.srq.is_some() {
            self.count.has_ended();
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

    /// Keeps the receives of an Endpoint that is to be freed, so that nothing uses their buffers.
    pub(super) fn keep(&mut self, ep: Handle, rail: RailId) {
        if let Some(buffers) = self.of_eps.remove(&ep) {
            self.of_ending.insert(rail, buffers);
        }
    }

    /// Takes back the receives of an Endpoint that was freed, of which no events come any more. One
    /// of the SRQ may be lost with the connection that it was for: it is replaced. `window` has the
    /// messages of a connection and the number of those that are left.
    pub(super) fn forget(&mut self, adapter: &Adapter, rail: RailId, window: (usize, usize)) {
        for buffer in self.of_ending.remove(&rail).into_iter().flatten() {
            self.buffers.free(buffer);
        }
        let outstanding = self.srq.as_ref().and_then(|srq| srq.query().ok());
        if let Some(query) = outstanding {
            // The waiting thread may have dequeued one more that it has not counted yet. Then the
            // queue gets one receive more than the peers need.
            let dequeued = self.dequeued.load(Ordering::Relaxed);
            self.count.recount(query.outstanding as usize, dequeued);
            // An error leaves the receives to the next connection.
            let _ = self.prepare(adapter, None, window);
        }
    }
}

/// Returns whether the SRQ has as many receives as it can hold.
fn is_srq_full(error: &libkdapl::Error) -> bool {
    (error.kind(), error.subtype())
        == (Some(Type::INSUFFICIENT_RESOURCES), Some(Subtype::RESOURCE_SRQ))
}

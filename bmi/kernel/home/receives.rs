// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receive buffers.
//!
//! The connections over a device share one Shared Receive Queue (SRQ). It has as many receives as
//! its peers may send messages at once, up to a limit. Above the limit, a message may have to wait
//! at its sender until a buffer is free, which no consumer can delay: another buffer is posted
//! before a message is processed. Over iWARP, a message that finds no receive ends its connection.
//! There, and on devices without SRQs, each connection has receives of its own.

use super::devices::Adapter;
use crate::{
    engine::SharedReceives,
    options::Options, //
};
use kdat::{
    Buffer,
    Dto,
    Ep,
    Refused,
    Srq, //
};
use kernel::prelude::*;

/// Buffers that are registered together.
const CHUNK: usize = 64;

/// The receive buffers of a device.
pub(super) struct Receives {
    size: usize,
    srq: Option<Srq>,
    count: SharedReceives,
    free: KVVec<Buffer>,
}

impl Receives {
    pub(super) fn new(adapter: &Adapter, options: &Options) -> Self {
        let srq = match adapter.is_iwarp {
            true => None,
            false => adapter
                .pz
                .create_srq(options.shared_receives, options.segments())
                .ok(),
        };
        Self {
            size: options.message as usize,
            srq,
            count: SharedReceives::new(options.shared_receives as usize),
            free: KVVec::new(),
        }
    }

    /// Returns the SRQ, if the connections share their receives.
    pub(super) fn srq(&self) -> Option<&Srq> {
        self.srq.as_ref()
    }

    fn take(&mut self, adapter: &Adapter) -> kdat::Result<Buffer> {
        if self.free.is_empty() {
            for buffer in adapter.pz.buffers(CHUNK, self.size)? {
                self.free.push(buffer, GFP_KERNEL)?;
            }
        }
        match self.free.pop() {
            Some(buffer) => Ok(buffer),
            None => adapter.pz.buffer(self.size),
        }
    }

    /// Gives back a buffer, or drops it if there is no memory for the list.
    pub(super) fn give_back(&mut self, buffer: Buffer) {
        let _ = self.free.push(buffer, GFP_KERNEL);
    }

    /// Posts a receive. One that the SRQ has no room for is given back.
    fn post(&mut self, buffer: Buffer, ep: Option<&Ep>) -> kdat::Result {
        let posted = match (&self.srq, ep) {
            (Some(srq), _) => srq.post(buffer, 0),
            (None, Some(ep)) => ep.post(Dto::receive(buffer)),
            (None, None) => return Ok(()),
        };
        match posted {
            Ok(()) => self.count.was_posted(),
            Err(Refused { error, buffer, .. }) => {
                if let Some(buffer) = buffer {
                    self.give_back(buffer);
                }
                if !error.is_srq_full() {
                    return Err(error);
                }
                self.count.was_refused();
            }
        }
        Ok(())
    }

    /// Posts receives for a new connection, one of `count` whose peers may send `window` messages
    /// each: its own, or those that the SRQ lacks.
    pub(super) fn prepare(
        &mut self,
        adapter: &Adapter,
        ep: &Ep,
        (window, count): (usize, usize),
    ) -> kdat::Result {
        if self.srq.is_none() {
            return (0..window).try_for_each(|_| self.add(adapter, Some(ep)));
        }
        self.fill(adapter, window * count)
    }

    /// Posts the receives that the SRQ lacks.
    fn fill(&mut self, adapter: &Adapter, wanted: usize) -> kdat::Result {
        while self.count.lacking(wanted) > 0 {
            self.add(adapter, None)?;
        }
        Ok(())
    }

    fn add(&mut self, adapter: &Adapter, ep: Option<&Ep>) -> kdat::Result {
        let buffer = self.take(adapter)?;
        self.post(buffer, ep)
    }

    /// Replaces a receive that has ended with a message.
    pub(super) fn replace(&mut self, adapter: &Adapter, ep: &Ep) -> kdat::Result {
        self.count.has_ended();
        self.add(adapter, Some(ep))
    }

    /// Replaces receives of the SRQ that were lost with a connection. `count` connections are left.
    pub(super) fn forget(&mut self, adapter: &Adapter, (window, count): (usize, usize)) {
        let outstanding = self.srq.as_ref().and_then(|srq| srq.outstanding().ok());
        let Some(outstanding) = outstanding else {
            return;
        };
        // An upcall takes one event, and replaces its receive at once. If it waits for the lock,
        // the queue gets one receive more than the peers need.
        self.count.recount(outstanding as usize, 0);
        // An error leaves the receives to the next connection.
        let _ = self.fill(adapter, window * count);
    }

    /// Records that a receive has ended without a message. The next connection posts another.
    pub(super) fn flushed(&mut self, buffer: Option<Buffer>) {
        self.count.has_ended();
        if let Some(buffer) = buffer {
            self.give_back(buffer);
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receives that complete before the connection is reported as established.
//!
//! Over iWARP the device driver connects the queue pair of the active side by itself, and reports
//! that later. The completion of a message that the peer sends at once may be drained before.
//! ESTABLISHED must precede its event, so such events wait.

use crate::{
    dat::{
        ep::{
            Ep,
            Inner, //
        },
        evd::Evd,
        prelude::*, //
    },
    model::{
        ep::Phase,
        event::Event, //
    },
    rdma::{
        cm::CmId,
        device::Transport, //
    },
};
use kernel::alloc::AllocError;

/// Receive events that wait for ESTABLISHED, oldest first.
#[derive(Default)]
pub(in crate::dat::ep) struct Early(KVVec<Event>);

impl Ep {
    /// Allocates room for the event of every posted receive. The thread that connects calls it
    /// before the route is resolved, so that its memory cgroup is charged.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat::ep) fn prepare_early(&self, id: &Arc<CmId>) -> Result<(), AllocError> {
        if self.domain.ia.attr().transport != Transport::Iwarp {
            return Ok(());
        }
        let receives = self.inner.lock().attr.max_recv_dtos;
        let receives = usize::try_from(receives).map_err(|_| AllocError)?;
        let mut early = Early(KVVec::with_capacity(receives, GFP_KERNEL_ACCOUNT)?);
        let mut inner = self.inner.lock();
        if inner.owns_arc(id) {
            // The old value is dropped after the lock.
            core::mem::swap(&mut inner.early, &mut early);
        }
        Ok(())
    }
}

impl Inner {
    /// Stores the event of an early receive. Returns any other event to the caller.
    pub(in crate::dat::ep) fn keep_if_early(&mut self, evd: &Evd, event: Event) -> Option<Event> {
        if !matches!(self.phase, Phase::Connecting(_)) {
            return Some(event);
        }
        match self.early.0.push_within_capacity(event) {
            Ok(()) => {
                evd.reserve_pending();
                None
            }
            // On this transport no room was allocated, since no receive is early.
            Err(_) => Some(event),
        }
    }

    /// Reports the stored events, because the attempt has ended.
    pub(in crate::dat::ep) fn report_early(&mut self) {
        self.end_early(Evd::report);
    }

    /// Discards the stored events, because the Endpoint is freed.
    pub(in crate::dat::ep) fn forget_early(&mut self) {
        self.end_early(|_, _| {});
    }

    /// Empties the store. Calls `tell` for each event, and releases the room that was reserved for
    /// it.
    fn end_early(&mut self, tell: impl Fn(&Evd, &Event)) {
        if self.early.0.is_empty() {
            return;
        }
        if let Some(evd) = &self.parts.recv_evd {
            for event in self.early.0.iter() {
                tell(evd, event);
                evd.release_pending();
            }
            Evd::run_pump_and_notify(&evd.object());
        }
        // The memory is kept until the next attempt, since it cannot be freed under a spinlock.
        self.early.0.clear();
    }
}

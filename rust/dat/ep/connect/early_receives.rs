// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receives that complete before the connection is known to stand.
//!
//! On iWARP the provider connects the QP of the active side by itself, and tells of it later: what the
//! peer sends at once may be drained before. ESTABLISHED is to come first, so these events wait.

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

/// Events that wait for ESTABLISHED, oldest first.
#[derive(Default)]
pub(in crate::dat::ep) struct Early(KVVec<Event>);

impl Ep {
    /// Makes room for every receive that may be early. Before the route is resolved, by the thread that
    /// connects: its memory cgroup pays.
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
            // What was there is dropped after the lock.
            core::mem::swap(&mut inner.early, &mut early);
        }
        Ok(())
    }
}

impl Inner {
    /// Keeps the event of a receive back, if it is early. Gives it back otherwise.
    pub(in crate::dat::ep) fn keep_if_early(&mut self, evd: &Evd, event: Event) -> Option<Event> {
        if !matches!(self.phase, Phase::Connecting(_)) {
            return Some(event);
        }
        match self.early.0.push_within_capacity(event) {
            Ok(()) => {
                evd.reserve_pending();
                None
            }
            // No room was made: on this transport nothing is early.
            Err(_) => Some(event),
        }
    }

    /// Reports what was kept back, now that the attempt has come to an end.
    pub(in crate::dat::ep) fn report_early(&mut self) {
        self.end_early(Evd::report);
    }

    /// Forgets what was kept back: the Endpoint is freed.
    pub(in crate::dat::ep) fn forget_early(&mut self) {
        self.end_early(|_, _| {});
    }

    /// Keeps nothing back any more, once `tell` has had each event: their room is for others.
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
        // The memory stays until the next attempt: it is not given back under a lock.
        self.early.0.clear();
    }
}

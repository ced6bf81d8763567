// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Keepalive: breaks an idle connection whose peer is dead.
//!
//! The probe is a request of no bytes: an RDMA write, which the peer's device acknowledges, or over
//! iWARP an RDMA read, because a write completes there when TCP has the data. The peer's consumer
//! does not notice it. Probes have no slots: their work requests have the first number beyond those
//! of the slots. So the consumer can have as many requests outstanding as without a keepalive.

use super::{
    Ep,
    Inner, //
};
use crate::{
    dat::prelude::*,
    model::{
        event::DtoStatus,
        handle::{
            Direction,
            WrId, //
        },
        keepalive::Action,
    },
    rdma::{
        device::Transport,
        wr::{
            Remote,
            SendFlags,
            SendRequest,
            SgList, //
        },
    },
};

impl Inner {
    /// Returns the slot number of all probes.
    pub(super) fn probe_slot(&self) -> u32 {
        self.requests.capacity()
    }

    /// Returns whether the QP has a request whose completion was not taken, or a probe.
    pub(super) fn has_unfinished_requests(&self) -> bool {
        self.requests.outstanding() != 0 || self.connection.keepalive.probes() != 0
    }

    /// Counts a tick of the keepalive.
    fn tick(&mut self, keepalive_ms: u32) -> Action {
        let connection = &mut self.connection;
        let heard = connection.last_receive != connection.seen_receive;
        connection.seen_receive = connection.last_receive;
        (connection.keepalive).tick(keepalive_ms, heard, self.requests.outstanding() != 0)
    }

    /// Gives up the probes of a queue pair that was destroyed. Their completions may still be
    /// queued.
    pub(super) fn give_up_probes(&mut self) {
        let probes = core::mem::take(&mut self.connection.keepalive).probes();
        if let Some(shares) = &self.shares {
            shares.give_up(Direction::Request, probes);
        }
    }

    /// Returns whether a probe is unanswered after all completions were drained. Returns `false`
    /// for a full EVD, whose completion queues cannot be drained.
    fn peer_is_dead(&self) -> bool {
        self.phase.is_connected()
            && self.connection.keepalive.probes() != 0
            && self.parts.request_evd().is_ok_and(|evd| !evd.is_full())
    }
}

impl Ep {
    /// Counts a tick of the keepalive, if the Endpoint is connected and has one. Probes the peer,
    /// or breaks the connection.
    ///
    /// Context: process; sleeps.
    pub(super) fn keep_alive(self: &Arc<Self>) {
        let action = {
            let mut inner = self.inner.lock();
            let Some(time) = inner
                .attr
                .keepalive()
                .filter(|_| inner.phase.is_connected())
            else {
                return;
            };
            let action = inner.tick(time);
            if action == Action::Probe {
                self.post_probe(&mut inner);
            }
            action
        };
        if action == Action::GiveUp {
            self.give_up_peer();
        }
    }

    /// Posts a probe. If the driver refuses it, the next tick tries again.
    fn post_probe(&self, inner: &mut Inner) {
        let Some(qp) = &inner.qp else { return };
        let mut list = SgList::new();
        let request = match self.context.ia.attr().transport {
            Transport::Iwarp if !qp.answers_empty_reads() || self.must_not_read(inner) => return,
            Transport::Iwarp => {
                // A read over iWARP has one segment, also if it is empty.
                let _ = list.push(0, 0, 0);
                SendRequest::RdmaRead(Remote::NOWHERE)
            }
            _ => SendRequest::RdmaWrite(Remote::NOWHERE),
        };
        let slot = inner.probe_slot();
        let wr = WrId::new(slot, inner.life, Direction::Request, self.handle.key());
        if qp
            .post_send(wr.into_raw(), request, SendFlags::SIGNALLED, &list)
            .is_ok()
        {
            inner.connection.keepalive.probe_posted();
        }
    }

    /// Returns whether the peer would not answer a read over iWARP: it allows none, or this side
    /// has to wait for its first message (RFC 6581, section 4).
    fn must_not_read(&self, inner: &Inner) -> bool {
        let connection = &inner.connection;
        self.refuses_reads(inner) || (connection.is_passive && connection.last_receive.is_none())
    }

    /// Takes the completion of a probe. Ignores others: they belong to no request.
    ///
    /// Context: as for [`Ep::complete`].
    #[cold]
    pub(super) fn complete_probe(self: &Arc<Self>, inner: &mut Inner, wr: WrId, status: DtoStatus) {
        let is_probe = wr.direction == Direction::Request && wr.slot == inner.probe_slot();
        if !is_probe || !inner.connection.keepalive.probe_completed() {
            return;
        }
        match status {
            _ if !inner.phase.is_connected() => {}
            DtoStatus::Success => {}
            DtoStatus::Flushed => self.break_unless_cm_reports(),
            _ => self.break_soon(),
        }
    }

    /// Breaks the connection, unless the answer of the peer is queued.
    #[cold]
    fn give_up_peer(self: &Arc<Self>) {
        self.drain_evds();
        let inner = self.inner.lock();
        if inner.peer_is_dead() {
            // Under the lock: a reset cancels it afterwards, if the connection is over.
            self.break_soon();
        }
    }
}

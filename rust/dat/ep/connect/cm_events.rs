// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handles `rdma_cm` events of an Endpoint's connection manager (CM) ID, on the active and on the
//! passive side.

use crate::{
    dat::{
        base::PrivateData,
        ep::{
            Ep,
            Inner, //
        },
        prelude::*, //
    },
    model::ep::{
        Network,
        Phase, //
    },
    rdma::{
        cm::{
            self,
            CmId,
            ConnParam,
            Event,
            IdRef,
            Rejected, //
        },
        qp::ReadDepth, //
    },
};

impl Inner {
    /// Stores the local address and the peer's private data of a connection.
    fn store_answer(&mut self, id: &IdRef<'_>, data: &[u8]) {
        (self.connection.addresses.local, _) = id.addresses();
        if matches!(self.phase, Phase::Connecting(_)) {
            self.connection.peer_data = PrivateData::truncated(data);
        }
    }
}

impl Ep {
    /// Sends the connection request. The route is resolved and the receives are posted. From now on
    /// the peer may answer, and over iWARP send.
    ///
    /// Over iWARP the call creates a socket and may block. A separate thread makes it, with the
    /// identity of the adapter's user, because the handler's worker serves all users.
    pub(in crate::dat::ep) fn request(self: &Arc<Self>, id: &IdRef<'_>) {
        if !self.context.ia.is_iwarp() {
            return self.request_or_fail(id);
        }
        let own = self
            .inner
            .lock()
            .connection
            .id
            .clone()
            .filter(|own| own.is(id));
        let Some(own) = own else {
            return;
        };
        let (ep, reference) = (self.clone(), own.clone());
        let request = move |id: &IdRef<'_>| {
            ep.context
                .ia
                .mem_cgroup()
                .charged(|| ep.request_or_fail(id))
        };
        if CmId::call_out(own, self.context.ia.identity().clone(), request).is_err() {
            self.failed(id, Network::NonPeerRejected);
            // Other threads may have dropped their references to the ID by now, and it cannot be
            // destroyed in its own handler. The thread, had it started, would have held a reference
            // until the handler returns.
            self.drop_id_later(reference);
        }
    }

    /// Sends the request in this thread. A failure is reported to the consumer by an event.
    fn request_or_fail(self: &Arc<Self>, id: &IdRef<'_>) {
        if let Err(error) = self.try_request(id) {
            if cm::is_unreachable(error) {
                self.unsent(id, Network::Unreachable);
            } else if cm::is_local_port_in_use(error) {
                self.local_port_in_use(id);
            } else {
                self.failed(id, Network::NonPeerRejected);
            }
        }
    }

    fn try_request(&self, id: &IdRef<'_>) -> Result {
        let (qp, depth, srq, data) = {
            let mut inner = self.inner.lock();
            let qp = inner.qp.clone().filter(|_| inner.owns(id));
            let qp = qp.ok_or(ENODEV)?;
            inner.connection.attempt.repeat.note_request();
            (
                qp,
                inner.attr.read_depth(),
                inner.parts.srq.is_some(),
                inner.connection.attempt.own_data,
            )
        };
        let param = ConnParam {
            private_data: data.bytes(),
            depth,
            srq,
        };
        id.connect(&qp, &param)
    }

    /// Handles the accept of the peer: makes the QP ready, sends the confirmation, and reports the
    /// connection to the consumer.
    ///
    /// In this order: a consumer may disconnect all its connections once the last one is
    /// established. If that were reported first, the disconnect would overtake the confirmation,
    /// and the peer would see a connection end that has not begun.
    fn respond(self: &Arc<Self>, id: &IdRef<'_>, data: &[u8]) {
        if !self.begin_confirmation(id, data) {
            // The attempt has timed out, or the consumer has disconnected.
            id.refuse();
            return;
        }
        let Ok(ready) = self.connect_qp(id) else {
            id.refuse();
            // NON_PEER_REJECTED, unless a message has established the connection.
            let _ = self.feed(Network::Broken, Some(id));
            return;
        };
        let confirmed = id.confirm();
        let _ = self.feed(Network::Established, Some(id));
        if confirmed.is_err() {
            // The peer has disconnected already.
            let _ = self.feed(Network::PeerDisconnected, Some(id));
        }
        if self.is_over() {
            // A thread that ended the attempt meanwhile may have moved the QP to ERR before it was
            // made ready.
            self.fail_qp_later(ready.life);
        }
        self.disconnect_again_if_over(id);
    }

    /// Marks the connection as being confirmed. The QP receives as soon as it is being made ready,
    /// and a completed receive shows that the connection is established. Returns whether the
    /// attempt still continues.
    fn begin_confirmation(&self, id: &IdRef<'_>, data: &[u8]) -> bool {
        let mut inner = self.inner.lock();
        let matters = inner.owns(id) && matches!(inner.phase, Phase::Connecting(_));
        if matters {
            inner.store_answer(id, data);
            inner.connection.attempt.confirms = true;
            inner.connection.attempt.readies_qp = true;
        }
        matters
    }

    /// Returns whether the connection or the attempt has ended.
    fn is_over(&self) -> bool {
        self.inner.lock().phase.is_over()
    }

    /// Disconnects once more if the connection is over, which also answers a disconnect request of
    /// the peer.
    ///
    /// `rdma_cm` sends no disconnect before the confirmation of the connection. A consumer that
    /// disconnects at once may be faster than that, on either side.
    pub(super) fn disconnect_again_if_over(&self, id: &IdRef<'_>) {
        if self.is_over() {
            id.disconnect();
        }
    }

    /// Handles the establishment of the connection.
    fn established(self: &Arc<Self>, id: &IdRef<'_>, data: &[u8], depth: Option<ReadDepth>) {
        let store_answer = |inner: &mut Inner| {
            inner.store_answer(id, data);
            inner.connection.read_depth = depth.or(inner.connection.read_depth);
        };
        let _ = self.feed_with_change(Network::Established.into(), Some(id), store_answer);
    }

    /// Handles a reject of the request.
    fn rejected(self: &Arc<Self>, id: &IdRef<'_>, by: Rejected, data: &[u8]) {
        let (accepting, was_connected) = {
            let mut inner = self.inner.lock();
            if let (Phase::Connecting(_), Rejected::ByConsumer, true) =
                (inner.phase, by, inner.owns(id))
            {
                inner.connection.peer_data = PrivateData::truncated(data);
            }
            let accepting = matches!(inner.phase, Phase::Accepting(_));
            (accepting, inner.phase.is_connected())
        };
        // A peer that has not received the confirmation ends the connection by a reject.
        if was_connected {
            return self.end_by_peer_disconnect(id);
        }
        let rejection = match by {
            _ if accepting => Network::AcceptFailed,
            Rejected::ByConsumer => Network::PeerRejected,
            Rejected::ByTransport(_) => Network::NonPeerRejected,
        };
        let _ = self.feed(rejection, Some(id));
    }

    /// Handles the failure of an attempt.
    pub(super) fn failed(self: &Arc<Self>, id: &IdRef<'_>, failure: Network) {
        let accepting = matches!(self.inner.lock().phase, Phase::Accepting(_));
        let failure = if accepting {
            Network::AcceptFailed
        } else {
            failure
        };
        let _ = self.feed(failure, Some(id));
    }

    /// Handles one event of the ID.
    fn on_event(self: &Arc<Self>, id: &IdRef<'_>, event: Event<'_>) {
        match event {
            Event::AddrResolved => {
                let here = self
                    .context
                    .ia
                    .device()
                    .is_ok_and(|device| id.is_on(&device));
                if !here || id.resolve_route().is_err() {
                    self.unanswered(id);
                }
            }
            Event::RouteResolved => {
                if self.note_route_resolved(id) {
                    self.request(id);
                }
            }
            Event::Unreachable => self.unanswered(id),
            Event::ConnectResponse(data) => self.respond(id, data),
            Event::Established(data, depth) => {
                let is_iwarp = self.context.ia.is_iwarp();
                self.established(id, data, is_iwarp.then_some(depth));
                self.disconnect_again_if_over(id);
            }
            Event::Rejected(by, data) => self.rejected(id, by, data),
            Event::ConnectError => self.failed(id, Network::NonPeerRejected),
            Event::Disconnected => {
                // A peer does not disconnect before it has confirmed. The confirmation was lost, or
                // overtaken on the `ib_cm` queue of another processor.
                if matches!(self.inner.lock().phase, Phase::Accepting(_)) {
                    self.established(id, &[], None);
                }
                self.end_by_peer_disconnect(id);
                // The peer's disconnect may have crossed a disconnect from this side that was lost.
                self.disconnect_again_if_over(id);
            }
            // The adapter handles the removal of the device for all its objects.
            Event::DeviceRemoved | Event::Other => {}
        }
    }
}

impl cm::Handler for Ep {
    fn event(self: Arc<Self>, id: &IdRef<'_>, event: Event<'_>) {
        // This check is an early exit. Later steps check again under the lock, since the attempt
        // may end meanwhile, and the next one begin.
        let owned = self.inner.lock().owns(id);
        if owned {
            self.on_event(id, event);
        }
    }
}

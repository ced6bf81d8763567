// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What `rdma_cm` tells of an Endpoint's id, on either side.

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
        device::Transport, //
    },
};

impl Inner {
    /// What the id and the peer tell of a connection.
    fn hear(&mut self, id: &IdRef<'_>, data: &[u8]) {
        (self.connection.local, _) = id.addresses();
        if matches!(self.phase, Phase::Connecting(_)) {
            self.peer_data = PrivateData::truncated(data);
        }
    }
}

impl Ep {
    /// Sends the request: the route and the receives are there, and from now on the peer may answer,
    /// and on iWARP send.
    ///
    /// Over iWARP that may block, and a socket is made for it: not here, where others may wait, but in a
    /// thread, on behalf of who opened the adapter.
    pub(in crate::dat::ep) fn request(self: &Arc<Self>, id: &IdRef<'_>) {
        if self.domain.ia.attr().transport != Transport::Iwarp {
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
        let (ep, spare) = (self.clone(), own.clone());
        let request = move |id: &IdRef<'_>| ep.domain.ia.payer().pays(|| ep.request_or_fail(id));
        if CmId::call_out(own, self.domain.ia.party().clone(), request).is_err() {
            self.failed(id, Network::NonPeerRejected);
            // Others may have let go of the id by now, and it cannot be destroyed in its own handler. The
            // thread, where there is one, has it until the handler is over.
            self.part_later(spare);
        }
    }

    /// Sends the request here; tells the consumer if that fails.
    fn request_or_fail(self: &Arc<Self>, id: &IdRef<'_>) {
        if let Err(error) = self.try_request(id) {
            let failure = if cm::is_unreachable(error) {
                Network::Unreachable
            } else {
                Network::NonPeerRejected
            };
            self.failed(id, failure);
        }
    }

    fn try_request(&self, id: &IdRef<'_>) -> Result {
        let (qp, depth, data) = {
            let inner = self.inner.lock();
            let qp = inner.qp.clone().filter(|_| inner.owns(id));
            (
                qp.ok_or(ENODEV)?,
                inner.attr.read_depth(),
                inner.connection.own_data,
            )
        };
        let param = ConnParam {
            private_data: data.bytes(),
            depth,
        };
        id.connect(&qp, &param)
    }

    /// The peer accepted: makes the QP ready, tells the peer, and then the consumer.
    ///
    /// In this order: a consumer that disconnects all its connections once the last one stands would be
    /// quicker than the last confirmation, and its peer would hear of ends before that beginning.
    fn respond(self: &Arc<Self>, id: &IdRef<'_>, data: &[u8]) {
        let Ok(ready) = self.connect_qp(id) else {
            id.refuse();
            let _ = self.feed(Network::NonPeerRejected, Some(id));
            return;
        };
        if !self.begin_confirmation(id, data) {
            // The time was up first, or the consumer has disconnected while the QP was made ready.
            id.refuse();
            self.fail_qp_later(ready.life);
            return;
        }
        let confirmed = id.confirm();
        let _ = self.feed(Network::Established, Some(id));
        if confirmed.is_err() {
            // The peer has ended it already.
            let _ = self.feed(Network::PeerDisconnected, Some(id));
        }
        if self.is_over() {
            // Who ended the attempt while it was confirmed has left the QP alone.
            self.fail_qp_later(ready.life);
        }
        self.hang_up_if_over(id);
    }

    /// From now on the peer may send, and what comes says that the connection stands. Says whether the
    /// attempt still matters.
    fn begin_confirmation(&self, id: &IdRef<'_>, data: &[u8]) -> bool {
        let mut inner = self.inner.lock();
        let matters = inner.owns(id) && matches!(inner.phase, Phase::Connecting(_));
        if matters {
            inner.hear(id, data);
            inner.connection.confirms = true;
        }
        matters
    }

    /// Whether the connection, or the attempt, has come to its end.
    fn is_over(&self) -> bool {
        let phase = self.inner.lock().phase;
        matches!(
            phase,
            Phase::Flushing(_) | Phase::Disconnected | Phase::Freed
        )
    }

    /// Tells the peer once more that the connection is over, if it is; answers the peer that asks.
    ///
    /// A consumer that disconnects at once may be quicker than the confirmation of the connection,
    /// on either side; and `rdma_cm` sends no disconnect before that.
    fn hang_up_if_over(&self, id: &IdRef<'_>) {
        if self.is_over() {
            id.disconnect();
        }
    }

    /// The connection stands.
    fn established(self: &Arc<Self>, id: &IdRef<'_>, data: &[u8]) {
        let hear = |inner: &mut Inner| inner.hear(id, data);
        let _ = self.feed_behind(Network::Established.into(), Some(id), hear);
    }

    /// The request was turned down.
    fn rejected(self: &Arc<Self>, id: &IdRef<'_>, by: Rejected, data: &[u8]) {
        let (accepting, stood) = {
            let mut inner = self.inner.lock();
            if let (Phase::Connecting(_), Rejected::ByConsumer, true) =
                (inner.phase, by, inner.owns(id))
            {
                inner.peer_data = PrivateData::truncated(data);
            }
            let accepting = matches!(inner.phase, Phase::Accepting(_));
            (accepting, inner.phase.is_connected())
        };
        // So a peer leaves that has not heard of the confirmation.
        if stood {
            return self.peer_left(id);
        }
        let rejection = match by {
            _ if accepting => Network::AcceptFailed,
            Rejected::ByConsumer => Network::PeerRejected,
            Rejected::ByTransport(_) => Network::NonPeerRejected,
        };
        let _ = self.feed(rejection, Some(id));
    }

    /// Connecting failed, for what reason ever.
    fn failed(self: &Arc<Self>, id: &IdRef<'_>, failure: Network) {
        let accepting = matches!(self.inner.lock().phase, Phase::Accepting(_));
        let failure = if accepting {
            Network::AcceptFailed
        } else {
            failure
        };
        let _ = self.feed(failure, Some(id));
    }

    /// One event of the id.
    fn on_event(self: &Arc<Self>, id: &IdRef<'_>, event: Event<'_>) {
        match event {
            Event::AddrResolved => {
                let here = self
                    .domain
                    .ia
                    .device()
                    .is_ok_and(|device| id.is_on(&device));
                if !here || id.resolve_route().is_err() {
                    self.failed(id, Network::Unreachable);
                }
            }
            Event::RouteResolved => {
                if self.receives_are_there(id) {
                    self.request(id);
                }
            }
            Event::Unreachable => self.failed(id, Network::Unreachable),
            Event::ConnectResponse(data) => self.respond(id, data),
            Event::Established(data) => {
                self.established(id, data);
                self.hang_up_if_over(id);
            }
            Event::Rejected(by, data) => self.rejected(id, by, data),
            Event::ConnectError => self.failed(id, Network::NonPeerRejected),
            Event::Disconnected => {
                // Nobody ends what he has not confirmed: the confirmation was lost, or overtaken on another
                // processor's queue of `ib_cm`.
                if matches!(self.inner.lock().phase, Phase::Accepting(_)) {
                    self.established(id, &[]);
                }
                self.peer_left(id);
                // Its request may have crossed one of ours that was lost.
                self.hang_up_if_over(id);
            }
            // The adapter hears of that for all its objects.
            Event::DeviceRemoved | Event::Other => {}
        }
    }
}

impl cm::Handler for Ep {
    fn event(self: Arc<Self>, id: &IdRef<'_>, event: Event<'_>) {
        // Whatever follows looks again: the attempt may end meanwhile, and the next one begin.
        let owned = self.inner.lock().owns(id);
        if owned {
            self.on_event(id, event);
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Passive side of a connection: an Endpoint adopts the connection manager (CM) ID of an accepted
//! request, and connects its queue pair (QP).

use crate::{
    dat::{
        base::PrivateData,
        ep::{
            Addresses,
            Connection,
            Ep, //
        },
        prelude::*, //
    },
    model::ep::{
        Call,
        Network,
        Phase,
        ReadyGate, //
    },
    rdma::{
        addr::SockAddr,
        cm::{
            CmId,
            ConnParam, //
        },
    },
};

/// Origin of the Endpoint that a request is accepted with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::dat) enum AcceptingEp {
    /// It came with the request.
    OfRequest,
    /// The consumer has named it.
    OfConsumer,
}

impl Ep {
    /// Begins `dat_cr_accept`. No other call may use the Endpoint now. Returns the life of the
    /// Endpoint. An Endpoint of another request is refused. `gate` is the ready gate of the
    /// connection.
    ///
    /// Context: any.
    ///
    /// # Errors
    ///
    /// INVALID_STATE with the state's subtype unless the Endpoint is configured, and is unconnected
    /// or was created or reserved for a request.
    pub(in crate::dat) fn begin_accept(
        &self,
        origin: AcceptingEp,
        gate: ReadyGate,
    ) -> DatResult<u32> {
        let mut inner = self.inner.lock();
        let is_of_a_request = matches!(inner.phase, Phase::Passive(_) | Phase::Tentative(_));
        if is_of_a_request && origin == AcceptingEp::OfConsumer {
            return Err(inner.phase.invalid_state_error());
        }
        self.advance(&mut inner, Call::Accept)?;
        if inner.qp.is_none() {
            let _ = self.advance(&mut inner, Call::AcceptAborted);
            return Err(Self::gone());
        }
        inner.connection.peer_data = PrivateData::EMPTY;
        inner.connection.gate = gate;
        Ok(inner.life)
    }

    /// Completes `dat_cr_accept`: adopts the ID of the request, makes the QP ready, and sends the
    /// answer.
    ///
    /// `life` is the result of [`Ep::begin_accept`]. If the Endpoint has ended that life since, the
    /// request is refused without an event. `conn_qual` is the qualifier that the request came for.
    /// The result is an event.
    pub(in crate::dat) fn accept(
        self: &Arc<Self>,
        id: Arc<CmId>,
        life: u32,
        remote: SockAddr,
        conn_qual: u64,
        data: &PrivateData,
    ) {
        let locked = id.lock();
        id.set_handler(&locked, self.clone());
        let (local, _) = locked.addresses();
        let connection = Connection {
            id: Some(id.clone()),
            addresses: Addresses {
                local,
                remote,
                remote_qual: remote.port().into(),
                dup_qual: Some(conn_qual),
            },
            is_passive: true,
            ..Connection::none(local)
        };
        let old = self.take_over(connection, life);
        drop(locked);
        // The drop of an ID waits for its handlers.
        drop(old);
        let room = self.allocate_held(life).map_err(|_| ENOMEM);
        // The peer may send as soon as it is answered, so the receives are posted first. This takes
        // long, and `rdma_cm` workers that handle an event of this ID wait for the handler mutex,
        // so it is not held meanwhile. [`Ep::connect_qp`] detects an attempt that has ended since.
        self.post_preposted(&id);
        id.answer(|| self.answer(&id, room, data));
    }

    /// Connects the QP and answers the request. Refuses the request if `room` is an error.
    ///
    /// Context: process; sleeps.
    fn answer(self: &Arc<Self>, id: &CmId, room: Result, data: &PrivateData) {
        let locked = id.lock();
        let accepted = room
            .and_then(|()| self.connect_qp(&locked))
            .and_then(|ready| {
                let param = ConnParam {
                    private_data: data.bytes(),
                    depth: ready.depth,
                    srq: self.srq().is_some(),
                };
                locked.accept(&ready.qp, &param)
            });
        if accepted.is_err() {
            locked.refuse();
            let _ = self.feed(Network::AcceptFailed, Some(&locked));
        } else {
            // The consumer may have disconnected before `rdma_cm` had accepted.
            self.disconnect_again_if_over(&locked);
        }
    }

    /// Stores the connection of the request, unless the Endpoint was disconnected or freed
    /// meanwhile, or its device was removed. Returns the connection that is to be dropped.
    fn take_over(&self, mut connection: Connection, life: u32) -> Connection {
        let mut inner = self.inner.lock();
        match inner.phase {
            Phase::Accepting(_) if inner.life == life && inner.qp.is_some() => {
                // The consumer may have opened the gate meanwhile.
                connection.gate = inner.connection.gate;
                core::mem::replace(&mut inner.connection, connection)
            }
            _ => connection,
        }
    }
}

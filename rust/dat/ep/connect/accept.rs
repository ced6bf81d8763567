// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The passive side: an Endpoint takes over a request that was accepted.

use crate::{
    dat::{
        base::PrivateData,
        ep::{
            Connection,
            Ep,
            Target, //
        },
        prelude::*, //
    },
    model::ep::{
        Call,
        Network,
        Phase, //
    },
    rdma::{
        addr::SockAddr,
        cm::{
            CmId,
            ConnParam, //
        },
    },
};

impl Ep {
    /// `dat_cr_accept` begins: nothing else may be done with the Endpoint now. `own` says whether
    /// the Endpoint came with the request: one that came with another request is not for this one.
    /// Returns the life that it is accepted in.
    ///
    /// # Errors
    ///
    /// INVALID_STATE with the state's subtype unless it is configured, and unconnected or made or
    /// reserved for a request.
    pub(in crate::dat) fn begin_accept(&self, own: bool) -> DatResult<u32> {
        let mut inner = self.inner.lock();
        if let (Phase::Passive(_) | Phase::Tentative(_), false) = (inner.phase, own) {
            return Err(inner.phase.invalid_state_error());
        }
        self.advance(&mut inner, Call::Accept)?;
        if inner.qp.is_none() {
            let _ = self.advance(&mut inner, Call::AcceptAborted);
            return Err(Self::gone());
        }
        inner.peer_data = PrivateData::EMPTY;
        Ok(inner.life)
    }

    /// `dat_cr_accept` goes on: takes the id of the request, makes the QP ready, and answers.
    ///
    /// `life` is what [`Ep::begin_accept`] returned: what has ended it since has told so. `conn_qual` is
    /// what the request came for. How it went is an event.
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
            remote,
            remote_qual: remote.port().into(),
            target: Some(Target {
                address: remote,
                conn_qual,
            }),
            ..Connection::none(local)
        };
        let old = self.take_over(connection, life);
        drop(locked);
        // The drop of an id waits for its handlers.
        drop(old);
        // The peer may send as soon as it is answered. Others wait for an event of this id that waits
        // for the lock, so it is not held meanwhile; an end that is heard of shows below.
        self.hand_over(&id);
        let locked = id.lock();
        let accepted = self.connect_qp(&locked).and_then(|ready| {
            let param = ConnParam {
                private_data: data.bytes(),
                depth: ready.depth,
            };
            locked.accept(&ready.qp, &param)
        });
        if accepted.is_err() {
            locked.refuse();
            let _ = self.feed(Network::AcceptFailed, Some(&locked));
        }
        drop(locked);
    }

    /// Puts the connection of the request in place, unless the Endpoint was disconnected or freed
    /// meanwhile, or lost its device. Returns the connection that is left over.
    fn take_over(&self, connection: Connection, life: u32) -> Connection {
        let mut inner = self.inner.lock();
        match inner.phase {
            Phase::Accepting(_) if inner.life == life && inner.qp.is_some() => {
                core::mem::replace(&mut inner.connection, connection)
            }
            _ => connection,
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The passive side: an Endpoint takes over a request that was accepted.

use crate::{
    dat::{
        base::PrivateData,
        ep::{
            Ep,
            Target, //
        },
        prelude::*, //
    },
    model::ep::{
        Input,
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
            return Err(inner.phase.wrong());
        }
        self.advance(&mut inner, Input::Accept)?;
        if inner.qp.is_none() {
            let _ = self.advance(&mut inner, Input::AcceptAborted);
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
        let old = {
            let mut inner = self.inner.lock();
            match inner.phase {
                Phase::Accepting(_) if inner.life == life && inner.qp.is_some() => {
                    inner.connection.local = local;
                    inner.connection.remote = remote;
                    inner.connection.remote_qual = remote.port().into();
                    inner.connection.target = Some(Target {
                        address: remote,
                        conn_qual,
                    });
                    inner.connection.id.replace(id.clone())
                }
                // Disconnected, freed, or its device is gone.
                _ => None,
            }
        };
        drop(locked);
        // It waits for its handlers.
        drop(old);
        // The peer may send as soon as it is answered. Others wait for an event of self id that waits
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
            let _ = self.feed(Input::AcceptFailed, Some(&locked));
        }
        drop(locked);
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The passive side: an Endpoint takes over a request that was accepted.

use super::{
    Ep,
    Target, //
};
use crate::{
    dat::PrivateData,
    model::{
        code::DatResult,
        ep::{
            Input,
            Phase, //
        },
    },
    rdma::{
        addr::SockAddr,
        cm::{
            CmId,
            ConnParam, //
        },
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

impl Ep {
    /// `dat_cr_accept` begins: nothing else may be done with the Endpoint now. `own` says whether
    /// the Endpoint came with the request: one that came with another request is not for this one.
    ///
    /// # Errors
    ///
    /// INVALID_STATE with the state's subtype unless it is configured, and unconnected or made or
    /// reserved for a request.
    pub(in crate::dat) fn begin_accept(&self, own: bool) -> DatResult {
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
        Ok(())
    }

    /// `dat_cr_accept` goes on: takes the id of the request, makes the QP ready, and answers.
    ///
    /// `conn_qual` is what the request came for. How it went is an event.
    pub(in crate::dat) fn accept(
        this: &Arc<Self>,
        id: Arc<CmId>,
        remote: SockAddr,
        conn_qual: u64,
        data: &PrivateData,
    ) {
        let locked = id.lock();
        id.set_handler(&locked, this.clone());
        let (local, _) = locked.addresses();
        // What it replaces waits for its handlers when it is dropped: after the lock.
        let (qp, depth, _old) = {
            let mut inner = this.inner.lock();
            inner.local = local;
            inner.remote = remote;
            inner.remote_qual = remote.port().into();
            inner.target = Some(Target {
                address: remote,
                conn_qual,
            });
            let qp = match inner.phase {
                Phase::Accepting(_) => inner.qp.clone(),
                // Freed, or its device is gone.
                _ => None,
            };
            let old = match qp {
                Some(_) => inner.id.replace(id.clone()),
                None => None,
            };
            (qp, inner.attr.read_depth(), old)
        };
        let accepted = qp.ok_or(ENODEV).and_then(|qp| {
            // The peer may send as soon as it is answered.
            this.hand_over();
            let depth = qp.connect(&locked, depth)?;
            locked.accept(&ConnParam {
                private_data: data.bytes(),
                depth,
                qp_num: qp.number(),
            })
        });
        if accepted.is_err() {
            locked.refuse();
            let _ = Self::feed(this, Input::AcceptFailed, Some(&locked));
        }
        drop(locked);
    }
}

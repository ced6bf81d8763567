// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Queries of an Endpoint's parameters and status.

use crate::{
    dat::{
        base::PrivateData,
        ep::{
            Ep,
            EpAttr,
            Handles, //
        },
    },
    model::{
        ep::State,
        stat::Stat, //
    },
    rdma::addr::SockAddr, //
};

/// Parameters that [`Ep::query`] returns.
pub(crate) struct Param {
    pub(crate) ia: u64,
    pub(crate) handles: Handles,
    pub(crate) state: State,
    pub(crate) local: SockAddr,
    pub(crate) remote: SockAddr,
    pub(crate) remote_qual: u64,
    pub(crate) qp_num: u32,
    pub(crate) attr: EpAttr,
}

/// Status that [`Ep::status`] returns.
pub(crate) struct EpStatus {
    pub(crate) state: State,
    pub(crate) receives: u32,
    pub(crate) requests: u32,
}

impl Ep {
    /// Implements `dat_ep_query`.
    pub(crate) fn query(&self) -> Param {
        let inner = self.inner.lock();
        Param {
            ia: self.context.ia.handle(),
            handles: inner.parts.handles(),
            state: inner.phase.state(),
            local: inner.connection.addresses.local,
            remote: inner.connection.addresses.remote,
            remote_qual: inner.connection.addresses.remote_qual,
            qp_num: inner.qp.as_ref().map_or(0, |qp| qp.number()),
            attr: match inner.connection.read_depth {
                Some(depth) if inner.phase.is_connected() => inner.attr.with_read_depth(depth),
                _ => inner.attr,
            },
        }
    }

    /// Implements `dat_ep_get_status`.
    ///
    /// Posts a marker after unsignalled requests: a consumer may poll the status until its requests
    /// have completed.
    pub(crate) fn status(&self) -> EpStatus {
        let mut inner = self.inner.lock();
        self.close_end_if_connected(&mut inner);
        EpStatus {
            state: inner.phase.state(),
            receives: inner.receives_outstanding(),
            requests: inner.requests.outstanding_of_consumer(),
        }
    }

    /// Adds the Endpoint's numbers to the statistics of its adapter.
    pub(in crate::dat) fn add_to(&self, stat: &mut Stat) {
        let inner = self.inner.lock();
        stat.traffic.add(&inner.traffic);
        stat.receives = stat.receives.saturating_add(inner.receives_outstanding());
        let requests = inner.requests.outstanding_of_consumer();
        stat.requests = stat.requests.saturating_add(requests);
    }

    /// Returns the private data of the peer's accept or reject.
    pub(crate) fn peer_data(&self) -> PrivateData {
        self.inner.lock().connection.peer_data
    }

    /// Returns the address of the peer's private data. The data do not change before the Endpoint
    /// connects again or is freed.
    pub(crate) fn peer_data_at(&self) -> *const u8 {
        self.inner.lock().connection.peer_data.bytes().as_ptr()
    }

    /// Returns pointers to the local and the remote address. The addresses do not change during a
    /// connection.
    pub(crate) fn addresses_at(&self) -> (*const SockAddr, *const SockAddr) {
        let inner = self.inner.lock();
        let addresses = &inner.connection.addresses;
        (&raw const addresses.local, &raw const addresses.remote)
    }
}

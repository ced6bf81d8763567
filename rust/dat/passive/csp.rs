// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Common Service Points: listen at an address instead of for a connection qualifier.

use super::{
    face::face,
    point::{
        Endpoints,
        Offer,
        DEFAULT_BACKLOG, //
    },
    Domain,
    Listener, //
    Point,
};
use crate::{
    dat::{
        base::{
            InUse,
            Objects, //
        },
        evd::Evd,
        prelude::*, //
    },
    rdma::addr::SockAddr, //
};

face! {
    /// A Common Service Point.
    Csp: InvalidHandleCsp
}

/// The type of the streams that there are.
const SOCK_STREAM: u32 = kdapl_bindings::sock_type_SOCK_STREAM;

/// `DAT_COMM`: what kind of stream. 0 leaves it to the address.
pub(crate) struct Communicator {
    pub(crate) domain: u32,
    pub(crate) kind: u32,
    pub(crate) protocol: u32,
}

impl Communicator {
    /// Of streams to this address.
    fn of(address: SockAddr) -> Self {
        Self {
            domain: address.family().into(),
            kind: SOCK_STREAM,
            protocol: 0,
        }
    }

    /// Whether it is that of streams to this address.
    pub(in crate::dat) fn suits(&self, address: SockAddr) -> bool {
        let own = Self::of(address);
        [0, own.domain].contains(&self.domain)
            && [0, own.kind].contains(&self.kind)
            && self.protocol == own.protocol
    }
}

/// What [`Csp::query`] tells.
pub(crate) struct Param {
    pub(crate) communicator: Communicator,
    pub(crate) address: SockAddr,
    pub(crate) evd: u64,
}

impl Csp {
    /// `dat_csp_create` at an address of the adapter's device; port 0 is any free one. Returns the
    /// handle and the address.
    ///
    /// Requests may arrive before this returns. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_ADDRESS for one that is not the device's; PORT_IN_USE, CONN_QUAL_UNAVAILABLE.
    pub(in crate::dat) fn create(
        domain: &Arc<Domain>,
        csps: &Arc<Objects<Self>>,
        address: SockAddr,
        evd: InUse<Evd>,
    ) -> DatResult<(u64, SockAddr)> {
        let port_in_use = |error: DatError| match error.kind {
            Kind::ConnQualInUse => Kind::PortInUse.into(),
            _ => error,
        };
        let listener = Listener::at(domain.ia(), address).map_err(port_in_use)?;
        let offer = Offer {
            evd,
            backlog: DEFAULT_BACKLOG,
            endpoints: Endpoints::Consumer,
            once: false,
        };
        let point = Point::open(domain, csps, listener, offer).map_err(port_in_use)?;
        Ok((point.handle(), point.address()))
    }

    /// `dat_csp_query`.
    pub(crate) fn query(&self) -> Param {
        let address = self.point.address();
        Param {
            communicator: Communicator::of(address),
            address,
            evd: self.point.evd().handle(),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Common Service Points (CSPs), which listen on an address instead of for a connection qualifier.

use super::{
    point::{
        EpOrigin,
        PointConfig,
        DEFAULT_BACKLOG, //
    },
    service_point::service_point,
    Listener,
    PassiveContext,
    Point, //
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

service_point! {
    /// A Common Service Point.
    Csp: InvalidHandleCsp
}

/// Socket type of the supported streams.
const SOCK_STREAM: u32 = kdapl_bindings::sock_type_SOCK_STREAM;

/// Kind of a stream (`DAT_COMM`). 0 leaves a field to the address.
pub(crate) struct Communicator {
    pub(crate) domain: u32,
    pub(crate) kind: u32,
    pub(crate) protocol: u32,
}

impl Communicator {
    /// Returns the kind of streams to this address.
    fn of(address: SockAddr) -> Self {
        Self {
            domain: address.family().into(),
            kind: SOCK_STREAM,
            protocol: 0,
        }
    }

    /// Returns whether streams to this address are of this kind.
    pub(in crate::dat) fn suits(&self, address: SockAddr) -> bool {
        let own = Self::of(address);
        [0, own.domain].contains(&self.domain)
            && [0, own.kind].contains(&self.kind)
            && self.protocol == own.protocol
    }
}

/// Returns the address of a Common Service Point, its only one.
fn first(point: &Point) -> SockAddr {
    point.addresses.first().copied().unwrap_or_default()
}

/// Parameters that [`Csp::query`] returns.
pub(crate) struct Param {
    pub(crate) communicator: Communicator,
    pub(crate) address: SockAddr,
    pub(crate) evd: u64,
}

impl Csp {
    /// Implements `dat_csp_create` at an address of the adapter's device; port 0 selects a free
    /// one. Returns the handle and the address.
    ///
    /// Requests may arrive before this returns. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_ADDRESS for an address that the device does not have.
    /// - PORT_IN_USE, CONN_QUAL_UNAVAILABLE.
    pub(in crate::dat) fn create(
        context: &Arc<PassiveContext>,
        csps: &Arc<Objects<Self>>,
        address: SockAddr,
        evd: InUse<Evd>,
    ) -> DatResult<(u64, SockAddr)> {
        let port_in_use = |error: DatError| match error.kind() {
            Kind::ConnQualInUse => Kind::PortInUse.into(),
            _ => error,
        };
        let listener = Listener::at(context.ia(), address).map_err(port_in_use)?;
        let config = PointConfig {
            evd,
            backlog: DEFAULT_BACKLOG,
            ep_origin: EpOrigin::Consumer,
            once: false,
            takes_handoffs: false,
        };
        let point = Point::open(context, csps, listener, config).map_err(port_in_use)?;
        Ok((point.handle, first(&point)))
    }

    /// Implements `dat_csp_query`.
    pub(crate) fn query(&self) -> Param {
        let address = first(&self.point);
        Param {
            communicator: Communicator::of(address),
            address,
            evd: self.point.evd.handle(),
        }
    }
}

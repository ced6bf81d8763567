// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Common Service Points: listen at an address instead of for a connection qualifier.

use super::{
    ia::Ia,
    service::{
        self,
        face,
        Endpoints,
        Offer,
        Point,
        Seat,
        DEFAULT_BACKLOG, //
    },
};
use crate::{
    model::code::{
        DatError,
        DatResult,
        Kind, //
    },
    rdma::addr::SockAddr,
};
use kernel::sync::Arc;

face! {
    /// A Common Service Point.
    Csp
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
    fn suits(&self, address: SockAddr) -> bool {
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
    /// INVALID_HANDLE, INVALID_PARAMETER for an EVD that takes no connection requests (argument 4);
    /// COMM_NOT_SUPPORTED, INVALID_ADDRESS for one that is not the device's; PORT_IN_USE, CONN_QUAL_UNAVAILABLE.
    pub(crate) fn create(
        ia: &Arc<Ia>,
        communicator: &Communicator,
        address: SockAddr,
        evd: u64,
    ) -> DatResult<(u64, SockAddr)> {
        if !communicator.suits(address) {
            return Err(Kind::CommNotSupported.into());
        }
        let evd = service::use_evd(ia, evd, 4)?;
        let port_in_use = |error: DatError| match error.kind {
            Kind::ConnQualInUse => Kind::PortInUse.into(),
            _ => error,
        };
        let seat = Seat::at(ia, address).map_err(port_in_use)?;
        let offer = Offer {
            evd,
            backlog: DEFAULT_BACKLOG,
            endpoints: Endpoints::Consumer,
            once: false,
        };
        let point = Point::open::<Self>(ia, seat, offer).map_err(port_in_use)?;
        Ok((point.handle(), point.address()))
    }

    /// `dat_csp_free`. Connections stay, and requests that have arrived can still be answered.
    pub(crate) fn free(ia: &Ia, handle: u64) -> DatResult {
        Point::free::<Self>(ia, handle)
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

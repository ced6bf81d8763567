// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Listener of a service point, on a port of its own or on the shared one.

use super::{
    directory::Claim,
    Point, //
};
use crate::{
    dat::{
        base::IaBase,
        prelude::*, //
    },
    model::{
        allowance::Item,
        footprint,
        qualifier::{
            Qualifier,
            SHARED_PORT, //
        },
    },
    rdma::{
        addr::SockAddr,
        cm::{
            BindError,
            CmId, //
        },
    },
    sys::user::Hold, //
};

/// Claims a qualifier, and listens for it, until the drop. The fields are dropped in this order,
/// and never in a handler of `rdma_cm`.
pub(super) struct Listener {
    claim: Claim,
    /// ID that is bound to the service point's own port; `None` on the shared one.
    own: Option<CmId>,
    conn_qual: u64,
    address: SockAddr,
    /// Charges of the adapter's user.
    _holds: [Hold; 2],
}

/// Charges the user that opened the adapter for a service point, and for its listener.
fn charge(ia: &IaBase) -> DatResult<[Hold; 2]> {
    let user = ia.user();
    Ok([
        user.hold(Item::ServicePoint, 1)?,
        user.hold(Item::DriverMemory, footprint::identifier())?,
    ])
}

impl Listener {
    /// Claims a qualifier at the adapter's address. Does not listen yet. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - CONN_QUAL_IN_USE if any process has the qualifier there.
    /// - CONN_QUAL_UNAVAILABLE if the caller may not use it.
    /// - INSUFFICIENT_RESOURCES (memory) above the user's limits.
    pub(super) fn new(ia: &IaBase, qualifier: Qualifier) -> DatResult<Self> {
        let address = ia.attr().address;
        match qualifier {
            Qualifier::Port(port) => Self::at(ia, address.with_port(port)),
            Qualifier::Extended(conn_qual) => Ok(Self {
                _holds: charge(ia)?,
                claim: Claim::new(&ia.device()?, ia.net(), address, conn_qual)?,
                own: None,
                conn_qual,
                address: address.with_port(SHARED_PORT),
            }),
        }
    }

    /// Claims a free port of the adapter's address. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`Listener::at`].
    pub(super) fn any(ia: &IaBase) -> DatResult<Self> {
        Self::at(ia, ia.attr().address.with_port(0)).map_err(|error| match error.kind() {
            Kind::ConnQualInUse => Kind::ConnQualUnavailable.into(),
            _ => error,
        })
    }

    /// Claims this address and port; port 0 selects a free one. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - Errors of [`Listener::new`].
    /// - INVALID_ADDRESS for an address that the device does not have.
    pub(super) fn at(ia: &IaBase, address: SockAddr) -> DatResult<Self> {
        // The shared port must not be bound even for a moment, since the shared listener may need
        // it.
        if address.port() == SHARED_PORT {
            return Err(Kind::ConnQualUnavailable.into());
        }
        let device = ia.device()?;
        let _holds = charge(ia)?;
        let own = CmId::unheard(device.clone(), ia.net())?;
        let address = own.bind_listener(address)?;
        if address.port() == SHARED_PORT {
            return Err(Kind::ConnQualUnavailable.into());
        }
        let conn_qual = address.port().into();
        Ok(Self {
            claim: Claim::new(&device, ia.net(), address, conn_qual)?,
            own: Some(own),
            conn_qual,
            address,
            _holds,
        })
    }

    /// Returns the connection qualifier.
    pub(super) fn conn_qual(&self) -> u64 {
        self.conn_qual
    }

    /// Returns the address, with the port.
    pub(super) fn address(&self) -> SockAddr {
        self.address
    }

    /// Listens, and publishes the service point in the directory. From now on `point` gets
    /// requests.
    pub(super) fn listen(&mut self, point: &Arc<Point>, backlog: u32) -> DatResult {
        match &self.own {
            Some(id) => {
                id.set_handler(&id.lock(), point.clone());
                id.listen(backlog)?;
            }
            None => self.claim.listen()?,
        }
        self.claim.announce(point);
        Ok(())
    }
}

impl From<BindError> for DatError {
    fn from(error: BindError) -> Self {
        match error {
            BindError::PortTaken => Kind::ConnQualInUse.into(),
            BindError::NotAllowed => Kind::ConnQualUnavailable.into(),
            BindError::NoSuchAddress => {
                Self::new(Kind::InvalidAddress, Subtype::InvalidAddressUnsupported)
            }
            BindError::Other(error) => error.into(),
        }
    }
}

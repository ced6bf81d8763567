// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Listener of a service point, on a port of its own or on the shared one.
//!
//! It listens at each address that the adapter has when the service point is created. One ID of
//! `rdma_cm` for all addresses of a device does not exist: an ID that is bound to no address
//! listens on all devices, and takes the port of the other devices, too.

use super::{
    directory::QualifierClaim,
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
        port_address::PortAddress,
    },
    sys::{
        kvvec,
        user::FixedCharge, //
    },
};

/// Number of free ports that are tried, until one is free at all addresses.
const ATTEMPTS: u32 = 32;

/// Claims a qualifier at one address, and listens there. The fields are dropped in this order, and
/// never in a handler of `rdma_cm`.
struct Part {
    claim: QualifierClaim,
    /// ID that is bound to the service point's own port; `None` on the shared one.
    own: Option<CmId>,
    address: SockAddr,
    /// Charge of the adapter's user for the ID.
    _hold: FixedCharge,
}

impl Part {
    /// Claims a qualifier at an address. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`Listener::new`].
    fn new(ia: &IaBase, address: SockAddr, qualifier: Qualifier) -> DatResult<Self> {
        match qualifier {
            Qualifier::Port(port) => Self::at(ia, address.with_port(port)),
            Qualifier::Extended(conn_qual) => Ok(Self {
                // The listener is shared with other service points, and each pays for it.
                _hold: Self::charge(ia)?,
                claim: QualifierClaim::new(ia, address, conn_qual)?,
                own: None,
                address: address.with_port(SHARED_PORT),
            }),
        }
    }

    /// Charges the adapter's user with the driver's memory for a listener.
    fn charge(ia: &IaBase) -> DatResult<FixedCharge> {
        let kilobytes = footprint::listener(ia.is_iwarp());
        Ok(ia.user().hold(Item::DriverMemory, kilobytes)?)
    }

    /// Claims this address and port; port 0 selects a free one. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`Listener::at`].
    fn at(ia: &IaBase, address: SockAddr) -> DatResult<Self> {
        // The shared port must not be bound even for a moment, since the shared listener may need
        // it.
        if address.port() == SHARED_PORT {
            return Err(Kind::ConnQualUnavailable.into());
        }
        let _hold = Self::charge(ia)?;
        let own = CmId::without_handler(ia.device()?, ia.net())?;
        own.charge_port(ia.user(), ia.net(), address.port())?;
        let address = own.bind_listener(address, ia.port())?;
        if address.port() == SHARED_PORT {
            return Err(Kind::ConnQualUnavailable.into());
        }
        Ok(Self {
            claim: QualifierClaim::new(ia, address, address.port().into())?,
            own: Some(own),
            address,
            _hold,
        })
    }

    /// Listens, and publishes the service point in the directory.
    fn listen(&mut self, point: &Arc<Point>, backlog: u32) -> DatResult {
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

/// Claims a qualifier at the addresses of an adapter, and listens for it, until the drop.
pub(super) struct Listener {
    parts: KVVec<Part>,
    conn_qual: u64,
    /// Charge of the adapter's user for the service point.
    _hold: FixedCharge,
}

impl Listener {
    /// Claims a qualifier at each of the adapter's addresses. Does not listen yet. Context:
    /// process; sleeps.
    ///
    /// # Errors
    ///
    /// - CONN_QUAL_IN_USE if any process has the qualifier at one of them.
    /// - CONN_QUAL_UNAVAILABLE if the caller may not use it.
    /// - INVALID_ADDRESS if the device has none of them any more.
    /// - INSUFFICIENT_RESOURCES (memory) above the user's limits.
    pub(super) fn new(ia: &IaBase, qualifier: Qualifier) -> DatResult<Self> {
        let parts = KVVec::new();
        Self::on_all(ia, parts, &ia.addresses()?, qualifier)
    }

    /// Claims a port that is free at each of the adapter's addresses. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`Listener::new`], but CONN_QUAL_UNAVAILABLE if no port is free.
    pub(super) fn any(ia: &IaBase) -> DatResult<Self> {
        let addresses = ia.addresses()?;
        for _ in 0..ATTEMPTS {
            match Self::any_of_first(ia, &addresses) {
                Err(error) if error.kind() == Kind::ConnQualInUse => {}
                done => return done,
            }
        }
        Err(Kind::ConnQualUnavailable.into())
    }

    /// Claims a free port of the first address that the device has, at all addresses.
    fn any_of_first(ia: &IaBase, addresses: &[PortAddress]) -> DatResult<Self> {
        let mut refusal = DatError::internal();
        for (index, first) in addresses.iter().enumerate() {
            match Part::at(ia, first.address.with_port(0)) {
                Ok(part) => {
                    let port = part.address.port();
                    let mut parts = KVVec::new();
                    kvvec::push(&mut parts, part, GFP_KERNEL_ACCOUNT)?;
                    let rest = addresses.get(index.saturating_add(1)..).unwrap_or_default();
                    return Self::on_all(ia, parts, rest, Qualifier::Port(port));
                }
                Err(error) if error.kind() == Kind::InvalidAddress => refusal = error,
                Err(error) => return Err(error),
            }
        }
        Err(refusal)
    }

    /// Claims a qualifier at these addresses, besides the parts that exist. Omits an address that
    /// the device has not, or not any more.
    fn on_all(
        ia: &IaBase,
        mut parts: KVVec<Part>,
        addresses: &[PortAddress],
        qualifier: Qualifier,
    ) -> DatResult<Self> {
        let mut refusal = DatError::internal();
        for address in addresses {
            match Part::new(ia, address.address, qualifier) {
                Ok(part) => kvvec::push(&mut parts, part, GFP_KERNEL_ACCOUNT)?,
                Err(error) if error.kind() == Kind::InvalidAddress => refusal = error,
                Err(error) => return Err(error),
            }
        }
        if parts.is_empty() {
            return Err(refusal);
        }
        Self::of(ia, parts, qualifier.raw())
    }

    /// Claims this address and port; port 0 selects a free one. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - Errors of [`Listener::new`].
    /// - INVALID_ADDRESS for an address that the adapter does not have.
    pub(super) fn at(ia: &IaBase, address: SockAddr) -> DatResult<Self> {
        ia.check_address(address)?;
        let part = Part::at(ia, address)?;
        let port = part.address.port();
        let mut parts = KVVec::new();
        kvvec::push(&mut parts, part, GFP_KERNEL_ACCOUNT)?;
        Self::of(ia, parts, port.into())
    }

    fn of(ia: &IaBase, parts: KVVec<Part>, conn_qual: u64) -> DatResult<Self> {
        Ok(Self {
            _hold: ia.user().hold(Item::ServicePoint, 1)?,
            parts,
            conn_qual,
        })
    }

    /// Returns the connection qualifier.
    pub(super) fn conn_qual(&self) -> u64 {
        self.conn_qual
    }

    /// Returns the addresses, with the port.
    pub(super) fn addresses(&self) -> DatResult<KVVec<SockAddr>> {
        let mut addresses = kvvec::with_capacity(self.parts.len(), GFP_KERNEL_ACCOUNT)?;
        for part in &self.parts {
            kvvec::push(&mut addresses, part.address, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(addresses)
    }

    /// Listens, and publishes the service point in the directory. From now on `point` gets
    /// requests. Omits an address that the device has no longer, or whose family the driver does
    /// not listen at: erdma listens at addresses of IPv4 only.
    ///
    /// # Errors
    ///
    /// - INVALID_ADDRESS if no address is left.
    /// - Errors of [`Part::listen`].
    pub(super) fn listen(&mut self, point: &Arc<Point>, backlog: u32) -> DatResult {
        let mut refusal = DatError::internal();
        for mut part in core::mem::take(&mut self.parts) {
            match part.listen(point, backlog) {
                Ok(()) => kvvec::push(&mut self.parts, part, GFP_KERNEL_ACCOUNT)?,
                Err(error) if error.kind() == Kind::InvalidAddress => refusal = error,
                Err(error) => return Err(error),
            }
        }
        match self.parts.is_empty() {
            true => Err(refusal),
            false => Ok(()),
        }
    }

    /// Hides its IDs from requests: see [`CmId::hide`].
    pub(super) fn hide(&self) {
        self.ids().for_each(CmId::hide);
    }

    /// Waits for requests that have found its hidden IDs: see [`CmId::await_searches`].
    pub(super) fn await_searches(&self) {
        self.ids().for_each(CmId::await_searches);
    }

    /// Returns the IDs that are bound to the service point's own port.
    fn ids(&self) -> impl Iterator<Item = &CmId> {
        self.parts.iter().filter_map(|part| part.own.as_ref())
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

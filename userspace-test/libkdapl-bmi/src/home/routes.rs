// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Routes of rails: from which device to which address of the peer ([`Ways`]). If the first
//! connection to a peer fails, the next pair is tried, until all pairs of a device and a host were.

use super::DatHome;
use crate::address::Hosts;
use crate::bmi::engine::{Error, Hello, PeerId, RailId, Ways};
use rustc_hash::FxHashMap;
use std::net::SocketAddr;

/// Route of a rail that this side connects, or has accepted.
pub(super) struct Route {
    pub(super) device: u8,
    /// Address to connect to.
    address: Option<SocketAddr>,
    /// Other ways, while the session is connecting.
    retry: Option<Retry>,
}

/// Attempts to begin a session.
#[derive(Clone, Copy)]
struct Retry {
    hello: Hello,
    /// Ways that were not tried yet.
    left: usize,
    /// Number of the way that was tried last. Its device may be gone.
    way: usize,
}

/// Address of a peer.
pub(crate) struct Place {
    pub(crate) hosts: Hosts,
    /// Number of the way that is tried first.
    first: usize,
}

impl Place {
    pub(crate) fn new(hosts: Hosts) -> Self {
        Self { hosts, first: 0 }
    }
}

/// Routes of all rails, and addresses of all peers.
#[derive(Default)]
pub(crate) struct Routes {
    of_rails: FxHashMap<RailId, Route>,
    /// Addresses to which this side connects, or from which a peer has connected.
    pub(crate) places: FxHashMap<PeerId, Place>,
}

impl Routes {
    /// Returns the device of a rail.
    pub(super) fn device(&self, rail: RailId) -> Option<u8> {
        Some(self.of_rails.get(&rail)?.device)
    }

    /// Returns the address that a rail connects to.
    pub(super) fn address(&self, rail: RailId) -> Option<SocketAddr> {
        self.of_rails.get(&rail)?.address
    }

    /// Records the device at which a rail was accepted.
    pub(super) fn accepted(&mut self, rail: RailId, device: u8) {
        self.of_rails.insert(rail, Route { device, address: None, retry: None });
    }

    /// Notes that a rail is established, or is being closed: it is not connected again.
    pub(crate) fn settle(&mut self, rail: RailId) {
        if let Some(route) = self.of_rails.get_mut(&rail) {
            route.retry = None;
        }
    }

    /// Changes the route of a rail that has no Endpoint.
    pub(super) fn go_from(&mut self, rail: RailId, (device, address): (u8, SocketAddr)) {
        if let Some(route) = self.of_rails.get_mut(&rail) {
            (route.device, route.address) = (device, Some(address));
        }
    }

    /// Forgets a rail that is closed.
    pub(super) fn forget(&mut self, rail: RailId) {
        self.of_rails.remove(&rail);
    }
}

impl DatHome {
    fn ways(&self, hosts: usize) -> Ways {
        Ways::new(self.devices.count(), hosts, self.devices.living())
    }

    /// Chooses the route of a rail. Returns its device.
    pub(super) fn choose(&mut self, rail: RailId, hello: &Hello, anywhere: bool) -> u8 {
        let place = self.connections.routes.places.get(&rail.peer);
        let hosts = place.map_or(&[][..], |place| &place.hosts.0);
        let ways = self.ways(hosts.len());
        let first = self.connections.routes.of_rails.get(&RailId { rail: 0, ..rail });
        let beside = first.filter(|_| rail.rail > 0 && !anywhere);
        let (device, address) = match beside {
            Some(first) => (first.device, first.address),
            None => match place.and_then(|place| ways.of_rail(place.first, rail.rail)) {
                Some((device, host)) => (device, hosts.get(host).copied()),
                None => (0, None),
            },
        };
        let left = ways.living().saturating_sub(1);
        let way = place.and_then(|place| ways.taken(place.first));
        let way = way.filter(|_| rail.rail == 0);
        let retry = way.map(|way| Retry { hello: *hello, left, way });
        self.connections.routes.of_rails.insert(rail, Route { device, address, retry });
        device
    }

    /// Finds another route for a rail that has begun a session and was not established. Returns its
    /// private data and its device, if there is one.
    pub(super) fn choose_again(
        &mut self,
        rail: RailId,
        reason: Option<Error>,
    ) -> Option<(Hello, (u8, SocketAddr))> {
        let route = self.connections.routes.of_rails.get_mut(&rail)?;
        let retry = route.retry.as_mut();
        let retry = retry.filter(|_| reason != Some(Error::Version))?;
        retry.left = retry.left.checked_sub(1)?;
        let tried = *retry;
        let hosts = self.connections.routes.places.get(&rail.peer)?.hosts.0.len();
        let ways = self.ways(hosts);
        let way = ways.from(tried.way + 1)?;
        let (device, host) = ways.of_rail(way, rail.rail)?;
        let routes = &mut self.connections.routes;
        routes.of_rails.get_mut(&rail)?.retry = Some(Retry { way, ..tried });
        let place = routes.places.get_mut(&rail.peer)?;
        place.first = way;
        Some((tried.hello, (device, place.hosts.0.get(host).copied()?)))
    }
}

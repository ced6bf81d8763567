// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Routes of rails: from which device to which address of the peer ([`Ways`]). If the first
//! connection to a peer fails, the next pair is tried, until all pairs of a device and a host were.

use super::{DatHome, Report};
use crate::address::Hosts;
use crate::bmi::engine::{Attempts, Hello, PeerId, RailId, Short, Ways};
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
    attempts: Attempts,
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

    /// Notes that the last attempt to connect a rail has failed.
    pub(super) fn fail(&mut self, rail: RailId) {
        let route = self.of_rails.get_mut(&rail);
        if let Some(retry) = route.and_then(|route| route.retry.as_mut()) {
            retry.attempts.fail();
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
        let place = place.filter(|_| rail.rail == 0);
        let attempts = place.and_then(|place| Attempts::new(&ways, place.first));
        let retry = attempts.map(|attempts| Retry { hello: *hello, attempts });
        self.connections.routes.of_rails.insert(rail, Route { device, address, retry });
        device
    }

    /// Returns the next attempt for a rail that has begun a session and was not established, with
    /// its device and the number of its host, if there is a way left.
    fn next_attempt(&self, rail: RailId, short: Short) -> Option<(Retry, (u8, usize))> {
        let routes = &self.connections.routes;
        let mut retry = routes.of_rails.get(&rail)?.retry?;
        let ways = self.ways(routes.places.get(&rail.peer)?.hosts.0.len());
        let pair = retry.attempts.next(&ways, short)?;
        Some((retry, pair))
    }

    /// Returns whether a rail has a way left, from a device that is not short of Endpoints.
    pub(super) fn has_way(&self, rail: RailId, short: Short) -> bool {
        self.next_attempt(rail, short).is_some()
    }

    /// Chooses another route for a rail without Endpoint, which has begun a session and was not
    /// established, from a device that is not short of Endpoints. Returns its private data, if
    /// there is a way left.
    pub(super) fn choose_again(&mut self, rail: RailId, short: Short) -> Option<Hello> {
        let (retry, (device, host)) = self.next_attempt(rail, short)?;
        let routes = &mut self.connections.routes;
        let place = routes.places.get_mut(&rail.peer)?;
        place.first = retry.attempts.way();
        let address = place.hosts.0.get(host).copied();
        routes.of_rails.insert(rail, Route { device, address, retry: Some(retry) });
        self.reports.push_back(Report::Moved(rail, device));
        Some(retry.hello)
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Routes of rails: from which device to which address of the peer ([`Ways`]). If the first
//! connection to a peer fails, the next pair is tried, until all pairs of a device and a host were.

use super::{
    KernelHome,
    Report, //
};
use crate::{
    address::Hosts,
    engine::{
        Attempts,
        Hello,
        PeerId,
        RailId,
        Short,
        Ways, //
    },
    storage::extend, //
};
use core::net::SocketAddr;
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// Route of a rail that this side connects, or has accepted.
struct Route {
    device: u8,
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
struct Place {
    hosts: Hosts,
    /// Number of the way that is tried first.
    first: usize,
}

/// Routes of all rails, and addresses of all peers.
pub(crate) struct Routes {
    /// By the indices of peers, `rails` places for each.
    of_rails: KVVec<Option<(RailId, Route)>>,
    rails: usize,
    /// Addresses to which this side connects, or from which a peer has connected, by the indices of
    /// peers.
    places: KVVec<Option<Place>>,
}

impl Routes {
    pub(super) fn new(rails: u8) -> Self {
        Self {
            of_rails: KVVec::new(),
            rails: rails.into(),
            places: KVVec::new(),
        }
    }

    pub(super) fn make_room(&mut self, peers: usize) -> Result<(), AllocError> {
        let rails = self.rails_of(peers);
        extend(&mut self.of_rails, rails, || None)?;
        extend(&mut self.places, peers, || None)
    }

    /// Returns the number of rails that so many peers may have.
    pub(super) fn rails_of(&self, peers: usize) -> usize {
        peers.saturating_mul(self.rails)
    }

    /// Returns the place of a rail in tables.
    pub(super) fn index(&self, rail: RailId) -> usize {
        rail.peer.0.index() as usize * self.rails + usize::from(rail.rail)
    }

    fn of(&self, rail: RailId) -> Option<&Route> {
        let (found, route) = self.of_rails.get(self.index(rail))?.as_ref()?;
        (*found == rail).then_some(route)
    }

    fn of_mut(&mut self, rail: RailId) -> Option<&mut Route> {
        let index = self.index(rail);
        let (found, route) = self.of_rails.get_mut(index)?.as_mut()?;
        (*found == rail).then_some(route)
    }

    /// Sets the route of a rail. There is room for all rails of each peer.
    fn insert(&mut self, rail: RailId, route: Route) {
        let index = self.index(rail);
        if let Some(slot) = self.of_rails.get_mut(index) {
            *slot = Some((rail, route));
        }
    }

    /// Returns the device of a rail.
    pub(super) fn device(&self, rail: RailId) -> Option<u8> {
        Some(self.of(rail)?.device)
    }

    /// Returns the address that a rail connects to.
    pub(super) fn address(&self, rail: RailId) -> Option<SocketAddr> {
        self.of(rail)?.address
    }

    /// Records the device at which a rail was accepted.
    pub(super) fn accepted(&mut self, rail: RailId, device: u8) {
        let route = Route {
            device,
            address: None,
            retry: None,
        };
        self.insert(rail, route);
    }

    /// Notes that a rail is established, or is being closed: it is not connected again.
    pub(crate) fn settle(&mut self, rail: RailId) {
        if let Some(route) = self.of_mut(rail) {
            route.retry = None;
        }
    }

    /// Notes that the last attempt to connect a rail has failed.
    pub(super) fn fail(&mut self, rail: RailId) {
        if let Some(retry) = self.of_mut(rail).and_then(|route| route.retry.as_mut()) {
            retry.attempts.fail();
        }
    }

    /// Forgets a rail that is closed.
    pub(super) fn forget(&mut self, rail: RailId) {
        let index = self.index(rail);
        if let Some(slot) = self.of_rails.get_mut(index) {
            slot.take_if(|(found, _)| *found == rail);
        }
    }

    /// Returns the address of a peer.
    pub(crate) fn hosts(&self, peer: PeerId) -> Option<&Hosts> {
        let place = self.places.get(peer.0.index() as usize)?.as_ref()?;
        Some(&place.hosts)
    }

    /// Sets the address of a peer; `None` if it is not known.
    pub(crate) fn set_hosts(&mut self, peer: PeerId, hosts: Option<Hosts>) {
        if let Some(slot) = self.places.get_mut(peer.0.index() as usize) {
            *slot = hosts.map(|hosts| Place { hosts, first: 0 });
        }
    }
}

impl KernelHome {
    fn ways(&self, hosts: usize) -> Ways {
        Ways::new(self.devices.count(), hosts, self.devices.living())
    }

    /// Chooses the route of a rail. Returns its device.
    pub(super) fn choose(&mut self, rail: RailId, hello: &Hello, anywhere: bool) -> u8 {
        let routes = &self.connections.routes;
        let place = routes.places.get(rail.peer.0.index() as usize);
        let place = place.and_then(Option::as_ref);
        let hosts = place.map_or(&[][..], |place| place.hosts.all());
        let ways = self.ways(hosts.len());
        let first = routes.of(RailId { rail: 0, ..rail });
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
        let route = Route {
            device,
            address,
            retry: attempts.map(|attempts| Retry {
                hello: *hello,
                attempts,
            }),
        };
        self.connections.routes.insert(rail, route);
        device
    }

    /// Returns the next attempt for a rail that has begun a session and was not established, with
    /// its device and the number of its host, if there is a way left.
    fn next_attempt(&self, rail: RailId, short: Short) -> Option<(Retry, (u8, usize))> {
        let routes = &self.connections.routes;
        let mut retry = routes.of(rail)?.retry?;
        let ways = self.ways(routes.hosts(rail.peer)?.all().len());
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
        let place = routes.places.get_mut(rail.peer.0.index() as usize)?;
        let place = place.as_mut()?;
        place.first = retry.attempts.way();
        let address = place.hosts.all().get(host).copied();
        *routes.of_mut(rail)? = Route {
            device,
            address,
            retry: Some(retry),
        };
        self.report(Report::Moved(rail, device));
        Some(retry.hello)
    }
}

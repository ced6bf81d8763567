// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tables of the routes of rails, and of the addresses of peers.

use crate::{
    address::Hosts,
    engine::{
        Destination,
        PeerId,
        RailId,
        Route,
        Ways, //
    },
    storage::extend, //
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

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

    /// Returns the route of a rail.
    pub(super) fn of(&self, rail: RailId) -> Option<&Route> {
        let (found, route) = self.of_rails.get(self.index(rail))?.as_ref()?;
        (*found == rail).then_some(route)
    }

    /// Returns the route of a rail, to change it.
    pub(super) fn of_mut(&mut self, rail: RailId) -> Option<&mut Route> {
        let index = self.index(rail);
        let (found, route) = self.of_rails.get_mut(index)?.as_mut()?;
        (*found == rail).then_some(route)
    }

    /// Sets the route of a rail. There is room for all rails of each peer.
    pub(super) fn insert(&mut self, rail: RailId, route: Route) {
        let index = self.index(rail);
        if let Some(slot) = self.of_rails.get_mut(index) {
            *slot = Some((rail, route));
        }
    }

    /// Returns the device of a rail.
    pub(super) fn device(&self, rail: RailId) -> Option<u8> {
        Some(self.of(rail)?.device)
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

    /// Returns the hosts of a peer, and the ways to them from the devices that `ways` are made for.
    pub(super) fn destination(
        &self,
        peer: PeerId,
        ways: impl FnOnce(usize) -> Ways,
    ) -> Option<Destination<'_>> {
        let place = self.places.get(peer.0.index() as usize)?.as_ref()?;
        let hosts = place.hosts.all();
        Some(Destination {
            ways: ways(hosts.len()),
            hosts,
            first: place.first,
        })
    }

    /// Tries the way to a peer with this number first.
    pub(super) fn prefer(&mut self, peer: PeerId, way: usize) {
        let place = self.places.get_mut(peer.0.index() as usize);
        if let Some(place) = place.and_then(Option::as_mut) {
            place.first = way;
        }
    }

    /// Sets the address of a peer; `None` if it is not known.
    pub(crate) fn set_hosts(&mut self, peer: PeerId, hosts: Option<Hosts>) {
        if let Some(slot) = self.places.get_mut(peer.0.index() as usize) {
            *slot = hosts.map(|hosts| Place { hosts, first: 0 });
        }
    }
}

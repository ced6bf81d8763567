// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Routes of rails: from which device to which address of the peer.
//!
//! The n-th connection to a peer goes from the n-th device to the n-th host of its address. A
//! shorter list begins again. If the first connection fails, the next pair is tried, until all
//! pairs of a device and a host were.

use super::DatHome;
use crate::address::Hosts;
use crate::bmi::engine::{Error, Hello, PeerId, RailId};
use rustc_hash::FxHashMap;
use std::net::SocketAddr;

/// Route of a rail that this side connects, or has accepted.
pub(super) struct Route {
    pub(super) device: u8,
    /// Address to connect to.
    address: Option<SocketAddr>,
    /// The private data, and the ways that were not tried yet, while the session is connecting.
    retry: Option<(Hello, usize)>,
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

/// Ways from devices to hosts, by numbers: first the pairs of the n-th of both, then these pairs
/// with the hosts shifted, so that each pair has one number.
struct Ways {
    devices: usize,
    hosts: usize,
    living: Vec<u8>,
}

impl Ways {
    fn count(&self) -> usize {
        self.devices * self.hosts
    }

    /// Returns the number of pairs until both lists begin again at once.
    fn turns(&self) -> usize {
        let (mut common, mut rest) = (self.devices, self.hosts);
        while rest > 0 {
            (common, rest) = (rest, common % rest);
        }
        self.count() / common.max(1)
    }

    /// Returns the device and the host of a turn, if the device is there.
    fn pair(&self, turn: usize, shift: usize) -> Option<(u8, usize)> {
        let device = (turn % self.devices) as u8;
        let pair = (device, (turn + shift) % self.hosts);
        self.living.contains(&device).then_some(pair)
    }

    /// Returns the device and the host of a rail, if rail 0 takes the way `first`, or the next one
    /// whose device is there.
    fn of_rail(&self, first: usize, rail: u8) -> Option<(u8, usize)> {
        let turns = self.turns();
        let shift = first.checked_div(turns)?;
        let all = (first..first + turns).filter_map(|turn| self.pair(turn % turns, shift));
        let pairs: Vec<_> = all.collect();
        pairs.get(usize::from(rail).checked_rem(pairs.len())?).copied()
    }

    /// Returns the first way from this one on whose device is there.
    fn from(&self, way: usize) -> Option<usize> {
        let (count, turns) = (self.count(), self.turns());
        let mut ways = (way..way + count).map(|way| way % count);
        ways.find(|way| self.pair(way % turns, way / turns).is_some())
    }
}

impl DatHome {
    fn ways(&self, hosts: usize) -> Ways {
        let (devices, living) = (self.devices.count().into(), self.devices.living().collect());
        Ways { devices, hosts, living }
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
        let others = (ways.living.len() * ways.hosts).saturating_sub(1);
        let retry = (rail.rail == 0).then_some((*hello, others));
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
        let (hello, left) = route.retry.filter(|_| reason != Some(Error::Version))?;
        route.retry = Some((hello, left.checked_sub(1)?));
        let hosts = self.connections.routes.places.get(&rail.peer)?.hosts.0.len();
        let ways = self.ways(hosts);
        let place = self.connections.routes.places.get_mut(&rail.peer)?;
        // The device of this way may be gone: the next one was taken in its place.
        place.first = ways.from(ways.from(place.first)? + 1)?;
        let (device, host) = ways.of_rail(place.first, rail.rail)?;
        Some((hello, (device, place.hosts.0.get(host).copied()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::Ways;

    fn ways(devices: usize, hosts: usize, living: &[u8]) -> Ways {
        Ways { devices, hosts, living: living.to_vec() }
    }

    /// Returns the routes of four rails.
    fn routes(ways: &Ways, first: usize) -> [(u8, usize); 4] {
        [0, 1, 2, 3].map(|rail| ways.of_rail(first, rail).unwrap())
    }

    #[test]
    fn the_nth_rail_goes_from_the_nth_device_to_the_nth_host() {
        for devices in 1..=4 {
            for hosts in 1..=4 {
                let all = ways(devices, hosts, &[0, 1, 2, 3]);
                let expected = [0, 1, 2, 3].map(|rail| ((rail % devices) as u8, rail % hosts));
                assert_eq!(routes(&all, 0), expected, "{devices} devices, {hosts} hosts");
            }
        }
    }

    #[test]
    fn other_devices_go_to_their_own_hosts() {
        assert_eq!(routes(&ways(2, 2, &[1]), 0), [(1, 1); 4]);
        assert_eq!(routes(&ways(3, 3, &[0, 2]), 0), [(0, 0), (2, 2), (0, 0), (2, 2)]);
        assert_eq!(routes(&ways(1, 2, &[0]), 0), [(0, 0), (0, 1), (0, 0), (0, 1)]);
        assert_eq!(ways(2, 2, &[]).of_rail(0, 0), None);
        assert_eq!(ways(2, 0, &[0, 1]).of_rail(0, 0), None);
    }

    #[test]
    fn all_ways_are_tried() {
        for (devices, hosts) in (1..=4).flat_map(|d| (1..=4).map(move |hosts| (d, hosts))) {
            for living in [&[0, 1, 2, 3][..], &[0], &[0, 3], &[1, 2, 3]] {
                let living: Vec<_> =
                    living.iter().copied().filter(|d| usize::from(*d) < devices).collect();
                let ways = ways(devices, hosts, &living);
                let all = living.len() * hosts;
                let (mut tried, mut way) = (Vec::new(), 0);
                for _ in 0..all {
                    way = ways.from(way).unwrap();
                    tried.extend(ways.of_rail(way, 0));
                    way += 1;
                }
                tried.sort_unstable();
                tried.dedup();
                assert_eq!(tried.len(), all, "{devices} devices, {hosts} hosts, {living:?}");
            }
        }
    }

    #[test]
    fn pairs_of_their_own_are_tried_first() {
        let ways = ways(2, 2, &[0, 1]);
        let tried = [0, 1, 2, 3].map(|way| ways.of_rail(way, 0).unwrap());
        assert_eq!(tried, [(0, 0), (1, 1), (0, 1), (1, 0)]);
        assert_eq!(ways.from(4), Some(0));
        assert_eq!(routes(&ways, 2), [(0, 1), (1, 0), (0, 1), (1, 0)]);
    }
}

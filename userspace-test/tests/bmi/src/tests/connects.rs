// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connects by one way after the other, and connects that wait for Endpoints of several devices.

use crate::{
    bmi::engine::{
        Close,
        Connects,
        Destination,
        Ending,
        Endings,
        EndsEndpoints,
        Error,
        Hello,
        Key,
        PeerId,
        Postponed,
        RailId,
        Route,
        Short,
        Waiter,
        Waiters,
        Ways, //
    },
    sim::SMALL, //
};
use std::{
    cell::RefCell,
    collections::HashMap,
    net::SocketAddr,
    rc::Rc, //
};

/// Milliseconds after which a waiting connect fails.
const TIMEOUT: u64 = 30_000;

impl Waiters for Vec<Waiter> {
    fn push(&mut self, waiter: Waiter) -> bool {
        self.push(waiter);
        true
    }

    fn take(&mut self, place: usize) -> Option<Waiter> {
        (place < self.len()).then(|| self.remove(place))
    }

    fn put_back(&mut self, place: usize, waiter: Waiter) {
        self.insert(place, waiter);
    }
}

/// Endpoint of a device, which has one more when it is dropped.
struct Ep {
    device: u8,
    free: Rc<RefCell<Vec<u32>>>,
}

impl Drop for Ep {
    fn drop(&mut self) {
        self.free.borrow_mut()[usize::from(self.device)] += 1;
    }
}

/// A home that records its connects.
struct FakeHome {
    endings: Endings<Ep, Vec<Option<Ending<Ep>>>>,
    postponed: Postponed<Vec<Waiter>>,
    now: u64,
    /// Numbers of free Endpoints, by device.
    free: Rc<RefCell<Vec<u32>>>,
    lost: Vec<u8>,
    /// Hosts of the peers, by index.
    hosts: Vec<Vec<SocketAddr>>,
    routes: HashMap<RailId, Route>,
    eps: HashMap<RailId, Ep>,
    /// Connects that have begun: the peer, the device and the number of the host.
    begun: Vec<(u32, u8, usize)>,
    closed: Vec<(u32, Option<Error>)>,
}

impl FakeHome {
    /// Creates a home with so many Endpoints of each device, and peers with so many hosts each.
    fn new(free: &[u32], hosts: &[usize]) -> Self {
        let host = |host: usize| SocketAddr::from(([10, 0, 0, host as u8], 1));
        Self {
            endings: Endings::new((0..8).map(|_| None).collect()),
            postponed: Postponed::new(Vec::new(), TIMEOUT),
            now: 0,
            free: Rc::new(RefCell::new(free.to_vec())),
            lost: Vec::new(),
            hosts: hosts
                .iter()
                .map(|hosts| (0..*hosts).map(host).collect())
                .collect(),
            routes: HashMap::new(),
            eps: HashMap::new(),
            begun: Vec::new(),
            closed: Vec::new(),
        }
    }

    fn connect(&mut self, peer: u32) -> u8 {
        let device = self.choose(rail(peer), &hello(), false);
        self.begin_connect(rail(peer), &hello());
        device
    }

    /// Lets all attempts of a waiting connect from a device fail.
    fn fail_ways_from(&mut self, peer: u32, device: u8) {
        let hosts = self.hosts[peer as usize].clone();
        let to = Destination {
            ways: Ways::new(self.devices(), hosts.len(), [device].into_iter()),
            hosts: &hosts,
            first: 0,
        };
        let mut route = self.routes[&rail(peer)];
        while let Some((next, ..)) = route.next(&to, Short::default()) {
            route = next;
            route.fail();
        }
        self.set_route(rail(peer), route);
    }

    /// Ends a connection, or the attempt to make it, and lets the worker free its Endpoint.
    fn end(&mut self, peer: u32, reason: Option<Error>) {
        let device = self.device_of(rail(peer));
        self.connection_lost(rail(peer), device, reason);
        self.carry_out_waiting();
    }
}

impl EndsEndpoints for FakeHome {
    type Ep = Ep;
    type Places = Vec<Option<Ending<Ep>>>;

    fn endings(&mut self) -> &mut Endings<Ep, Self::Places> {
        &mut self.endings
    }

    fn ep_of(&self, _: RailId) -> Option<Ep> {
        unreachable!("no rail is disconnected")
    }

    fn take_ep(&mut self, rail: RailId) -> Option<Ep> {
        self.eps.remove(&rail)
    }

    fn disconnect_ep(_: &Ep, _: Close) -> bool {
        unreachable!("no rail is disconnected")
    }

    fn closed(&mut self, rail: RailId, reason: Option<Error>) {
        self.routes.remove(&rail);
        self.closed.push((rail.peer.0.index(), reason));
    }

    fn freed(&mut self, rail: RailId, reason: Option<Error>) {
        self.try_other_way(rail, reason);
    }
}

impl Connects for FakeHome {
    type Waiters = Vec<Waiter>;

    fn postponed(&mut self) -> &mut Postponed<Vec<Waiter>> {
        &mut self.postponed
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn destination(&self, peer: PeerId) -> Option<Destination<'_>> {
        let hosts = &self.hosts[peer.0.index() as usize];
        let living = (0..self.devices()).filter(|device| !self.lost.contains(device));
        let ways = Ways::new(self.devices(), hosts.len(), living);
        let first = 0;
        Some(Destination { ways, hosts, first })
    }

    fn route(&self, rail: RailId) -> Option<&Route> {
        self.routes.get(&rail)
    }

    fn route_mut(&mut self, rail: RailId) -> Option<&mut Route> {
        self.routes.get_mut(&rail)
    }

    fn set_route(&mut self, rail: RailId, route: Route) {
        self.routes.insert(rail, route);
    }

    fn moved(&mut self, rail: RailId, device: u8, _: usize) {
        assert_eq!(self.device_of(rail), device);
    }

    fn devices(&self) -> u8 {
        self.free.borrow().len() as u8
    }

    fn lose_device(&mut self, device: u8) {
        self.lost.push(device);
        if self.lost.len() == usize::from(self.devices()) {
            self.fail_all_postponed();
        }
    }

    fn try_connect(&mut self, rail: RailId, _: &Hello) -> Result<(), Error> {
        let route = *self.route(rail).unwrap();
        let peer = rail.peer.0.index();
        let address = route.address.ok_or(Error::Unreachable)?;
        let free = &mut self.free.borrow_mut()[usize::from(route.device)];
        *free = free.checked_sub(1).ok_or(Error::NoMemory)?;
        let (device, free) = (route.device, self.free.clone());
        self.eps.insert(rail, Ep { device, free });
        let hosts = &self.hosts[peer as usize];
        let host = hosts.iter().position(|host| *host == address).unwrap();
        self.begun.push((peer, device, host));
        Ok(())
    }

    fn forget_receives(&mut self, _: RailId) {}
}

fn rail(peer: u32) -> RailId {
    RailId {
        peer: PeerId(Key::from_raw(peer.into())),
        session: 1,
        rail: 0,
    }
}

fn hello() -> Hello {
    Hello {
        features: 0,
        message: 256,
        window: SMALL.window,
        rails: 1,
        rail: 0,
        instance: 9,
        session: 0,
        peer: 0,
    }
}

#[test]
fn a_connect_without_endpoint_takes_another_device_at_once() {
    let mut home = FakeHome::new(&[0, 1], &[1]);
    assert_eq!(home.connect(0), 0);
    assert_eq!(home.begun, [(0, 1, 0)]);
    assert!(home.closed.is_empty() && !home.postponed.shortage.take());
}

#[test]
fn each_way_is_tried_once_before_the_end() {
    let mut home = FakeHome::new(&[1, 1], &[2]);
    home.connect(0);
    for _ in 0..4 {
        assert!(home.closed.is_empty());
        home.end(0, Some(Error::TimedOut));
    }
    assert_eq!(home.begun, [(0, 0, 0), (0, 1, 1), (0, 0, 1), (0, 1, 0)]);
    assert_eq!(home.closed, [(0, Some(Error::TimedOut))]);
}

#[test]
fn a_settled_session_and_another_version_are_not_tried_again() {
    let mut home = FakeHome::new(&[2, 2], &[2, 2]);
    home.connect(0);
    home.settle_route(rail(0));
    home.end(0, None);
    home.connect(1);
    home.end(1, Some(Error::Version));
    assert_eq!(home.begun.len(), 2);
    assert_eq!(home.closed, [(0, None), (1, Some(Error::Version))]);
}

#[test]
fn a_free_of_any_device_ends_the_wait_of_one_connect() {
    for freed in [0, 1] {
        let mut home = FakeHome::new(&[1, 1], &[1; 4]);
        // Two connections, and two connects that wait: none of them has a way left.
        for peer in 0..4 {
            home.connect(peer);
        }
        assert_eq!(home.begun, [(0, 0, 0), (1, 1, 0)]);
        assert!(home.closed.is_empty() && home.postponed.shortage.take());
        let ends = u32::from(freed);
        home.settle_route(rail(ends));
        home.end(ends, None);
        assert!(home.retry_if_freed() && !home.retry_if_freed());
        assert_eq!(home.begun.last(), Some(&(2, freed, 0)), "the oldest one");
        assert_eq!(home.begun.len(), 3);
        assert_eq!(home.closed, [(ends, None)]);
    }
}

#[test]
fn a_younger_connect_does_not_wait_for_a_device_of_an_older_one() {
    let mut home = FakeHome::new(&[1, 1], &[1, 1, 2, 1]);
    for peer in 0..4 {
        home.connect(peer);
    }
    home.fail_ways_from(2, 1);
    home.settle_route(rail(1));
    home.end(1, None);
    assert!(home.retry_if_freed());
    assert_eq!(
        home.begun.last(),
        Some(&(3, 1, 0)),
        "peer 2 waits for device 0"
    );
    assert_eq!(home.postponed.get(0), Some(rail(2)));
    home.settle_route(rail(0));
    home.end(0, None);
    assert!(home.retry_if_freed());
    assert_eq!(
        home.begun.last().map(|(peer, device, _)| (*peer, *device)),
        Some((2, 0))
    );
    assert_eq!(home.postponed.get(0), None);
}

#[test]
fn a_connect_waits_for_a_time_and_fails_with_no_memory() {
    let mut home = FakeHome::new(&[0, 0], &[1, 1]);
    home.connect(0);
    home.now = 1_000;
    home.connect(1);
    home.now = TIMEOUT - 1;
    home.tick_postponed();
    assert!(home.closed.is_empty());
    home.now = TIMEOUT;
    home.tick_postponed();
    assert_eq!(home.closed, [(0, Some(Error::NoMemory))]);
    home.fail_postponed();
    assert_eq!(home.closed[1], (1, Some(Error::NoMemory)));
    home.fail_postponed();
    assert_eq!(home.closed.len(), 2);
}

#[test]
fn a_lost_device_is_left_out_and_the_last_one_ends_the_wait() {
    let mut home = FakeHome::new(&[1, 0], &[1, 1]);
    home.connect(0);
    home.connect(1);
    home.end(0, Some(Error::DeviceLost));
    assert_eq!(home.lost, [0]);
    assert!(home.retry_if_freed());
    assert_eq!(home.begun, [(0, 0, 0)], "no device has an Endpoint");
    home.lose_device(1);
    let mut ended = home.closed.clone();
    ended.sort_by_key(|(peer, _)| *peer);
    assert_eq!(ended, [0, 1].map(|peer| (peer, Some(Error::DeviceLost))));
}

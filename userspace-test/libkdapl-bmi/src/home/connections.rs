// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connections: an Endpoint for each rail.

use super::binds::REQUESTS;
use super::devices::{is_of_device, Device};
use super::routes::Routes;
use super::{DatHome, PeerPlace, Report};
use crate::address::Hosts;
use crate::bmi::engine::{
    reason_of, rejection, Connects, Destination, EndsEndpoints, Error, Hello, PeerId, Postponed,
    RailId, Route, Waiter, Waiters, Ways,
};
use crate::options::Options;
use libkdapl::{ConnectOptions, ConnectionEvent, Ep, EpAttr, EpConfig, Handle};
use rustc_hash::FxHashMap;
use std::time::Duration;

/// A connection.
struct Connection {
    rail: RailId,
    ep: Ep,
}

/// Identity of an Endpoint: the number of its device, and its handle there.
pub(crate) type EpId = (u8, Handle);

/// The connections, and the addresses of peers.
pub(crate) struct Connections {
    by_rail: FxHashMap<RailId, EpId>,
    by_ep: FxHashMap<EpId, Connection>,
    pub(crate) routes: Routes,
    timeout: Duration,
    /// Receives and requests of an Endpoint.
    receives: u32,
    requests: u32,
}

impl Connections {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            by_rail: FxHashMap::default(),
            by_ep: FxHashMap::default(),
            routes: Routes::default(),
            timeout: options.connect_timeout,
            receives: options.window().sum(),
            requests: u32::from(options.queue()) + REQUESTS,
        }
    }

    /// Returns the Endpoint of a rail.
    pub(super) fn ep(&self, rail: RailId) -> Option<&Ep> {
        let id = self.by_rail.get(&rail)?;
        Some(&self.by_ep.get(id)?.ep)
    }

    /// Returns the device of a rail.
    pub(super) fn device(&self, rail: RailId) -> Option<u8> {
        Some(self.routes.of_rails.get(&rail)?.device)
    }

    /// Returns the rail and the Endpoint with a handle.
    pub(crate) fn of(&self, ep: EpId) -> Option<(RailId, &Ep)> {
        self.by_ep.get(&ep).map(|connection| (connection.rail, &connection.ep))
    }

    fn insert(&mut self, rail: RailId, device: u8, ep: Ep) {
        let id = (device, ep.handle());
        self.by_rail.insert(rail, id);
        self.by_ep.insert(id, Connection { rail, ep });
    }

    /// Takes the Endpoint of a rail, and its device, out of the tables.
    pub(super) fn remove(&mut self, rail: RailId) -> Option<(u8, Ep)> {
        let id = self.by_rail.remove(&rail)?;
        self.by_ep.remove(&id).map(|connection| (id.0, connection.ep))
    }

    /// Returns the number of connections over all devices.
    fn count(&self) -> usize {
        self.by_ep.len()
    }

    /// Returns the messages that the peer of a connection may send, and the number of connections
    /// over a device.
    pub(super) fn window(&self, device: u8) -> (usize, usize) {
        let count = self.by_ep.keys().filter(|id| id.0 == device).count();
        (self.receives as usize, count)
    }
}

impl DatHome {
    /// Creates the Endpoint of a rail, and posts receives for it.
    fn create_ep(&mut self, rail: RailId) -> libkdapl::Result<Ep> {
        let number = self.connections.device(rail).unwrap_or(0);
        let count = self.connections.count() + 1;
        let Device { adapter, receives, .. } = self.devices.get_mut(number);
        adapter.make_room_for_events(count)?;
        let srq = receives.srq();
        let (writes, reads) = adapter.rdma_segments();
        let attr = EpAttr {
            max_recv_dtos: if srq.is_some() { 0 } else { self.connections.receives },
            max_request_dtos: self.connections.requests,
            max_recv_iov: 1,
            max_request_iov: 1,
            max_rdma_write_iov: writes,
            max_rdma_read_iov: reads,
            ..Default::default()
        };
        let ep = adapter.ia.create_ep_with(&EpConfig {
            pz: Some(&adapter.pz),
            recv: Some(&adapter.evd),
            request: Some(&adapter.evd),
            connect: Some(&adapter.evd),
            srq,
            attr: Some(attr),
        })?;
        self.connections.insert(rail, number, ep.clone());
        let window = self.connections.window(number);
        receives.prepare(adapter, Some(&ep), window)?;
        Ok(ep)
    }

    /// Returns the error of operations after a call of DAT that the device has refused.
    fn reason_of(&self, device: u8, error: &libkdapl::Error) -> Option<Error> {
        is_of_device(error).then(|| match self.devices.is_gone(device) {
            true => Error::DeviceLost,
            false => Error::Unreachable,
        })
    }

    /// Returns the error of a post: in place of one of DAT the loss of the device, if that is why.
    pub(crate) fn post_error(&self, error: libkdapl::Error) -> crate::Error {
        let are_gone = || self.devices.living().all(|device| self.devices.is_gone(device));
        match is_of_device(&error) && are_gone() {
            true => Error::DeviceLost.into(),
            false => error.into(),
        }
    }

    /// Ends all rails of a device.
    pub(crate) fn close_rails_of(&mut self, device: u8) {
        let connections = self.connections.by_ep.iter().filter(|(id, _)| id.0 == device);
        let rails: Vec<_> = connections.map(|(_, connection)| connection.rail).collect();
        for rail in rails {
            self.close_rail(rail, Some(Error::DeviceLost));
        }
    }

    pub(super) fn begin_accept(&mut self, request: u64, rail: RailId, hello: &Hello) {
        let Some((device, mut cr)) = self.crs.try_remove(request as usize) else {
            return self.close_rail(rail, Some(Error::Reset));
        };
        self.set_route(rail, Route::accepted(device));
        let remote = cr.query().ok().and_then(|query| query.remote);
        if let (Some(address), 0) = (remote, rail.rail) {
            let place = PeerPlace::new(Hosts(vec![address]));
            self.connections.routes.places.insert(rail.peer, place);
        }
        let created = self.create_ep(rail).or_else(|_| self.create_ep_after_ends(rail));
        let Ok(ep) = created else {
            let _ = cr.reject(&rejection());
            if rail.rail == 0 {
                // The next request may find an Endpoint.
                self.postponed.shortage.begin();
            }
            return self.close_rail(rail, Some(Error::NoMemory));
        };
        if cr.accept(&ep, &hello.encode()).is_err() {
            // The peer may have given up.
            let _ = cr.reject(&rejection());
            self.close_rail(rail, Some(Error::Reset));
        }
    }

    /// Carries out the tasks that wait, and creates the Endpoint of a rail then.
    fn create_ep_after_ends(&mut self, rail: RailId) -> libkdapl::Result<Ep> {
        // The first attempt may have created one without receives.
        self.free_unconnected(rail);
        self.carry_out_waiting();
        self.create_ep(rail)
    }

    /// Processes a connection event other than ESTABLISHED.
    pub(crate) fn connection_ended(&mut self, id: EpId, event: ConnectionEvent) {
        let Some((rail, ep)) = self.connections.of(id) else { return };
        let reason = match event {
            ConnectionEvent::PeerRejected => {
                Some(reason_of(&ep.private_data().unwrap_or_default()))
            }
            ConnectionEvent::Broken
            | ConnectionEvent::NonPeerRejected
            | ConnectionEvent::AcceptCompletionError
                if self.devices.is_gone(id.0) =>
            {
                Some(Error::DeviceLost)
            }
            event => reason(event),
        };
        self.connection_lost(rail, id.0, reason);
    }
}

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

impl Connects for DatHome {
    type Waiters = Vec<Waiter>;

    fn postponed(&mut self) -> &mut Postponed<Vec<Waiter>> {
        &mut self.postponed
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    fn destination(&self, peer: PeerId) -> Option<Destination<'_>> {
        let PeerPlace { hosts, first } = self.connections.routes.places.get(&peer)?;
        let ways = Ways::new(self.devices.count(), hosts.0.len(), self.devices.living());
        Some(Destination { ways, hosts: &hosts.0, first: *first })
    }

    fn route(&self, rail: RailId) -> Option<&Route> {
        self.connections.routes.of_rails.get(&rail)
    }

    fn route_mut(&mut self, rail: RailId) -> Option<&mut Route> {
        self.connections.routes.of_rails.get_mut(&rail)
    }

    fn set_route(&mut self, rail: RailId, route: Route) {
        self.connections.routes.of_rails.insert(rail, route);
    }

    fn moved(&mut self, rail: RailId, device: u8, way: usize) {
        if let Some(place) = self.connections.routes.places.get_mut(&rail.peer) {
            place.first = way;
        }
        self.reports.push_back(Report::Moved(rail, device));
    }

    fn devices(&self) -> u8 {
        self.devices.count()
    }

    /// Notes that a device was removed. Without another one, wakes all waiters. Connections end by
    /// events of their own.
    fn lose_device(&mut self, device: u8) {
        self.devices.lose(device);
        if self.is_lost() {
            self.wakes = u32::MAX;
            self.fail_all_postponed();
        }
    }

    fn try_connect(&mut self, rail: RailId, hello: &Hello) -> Result<(), Error> {
        if self.is_lost() {
            return Err(Error::DeviceLost);
        }
        let (device, route) = (self.device_of(rail), self.route(rail));
        let address = route.and_then(|route| route.address).ok_or(Error::Unreachable)?;
        let created = self.create_ep(rail);
        let lacking = |error| self.reason_of(device, &error).unwrap_or(Error::NoMemory);
        let ep = created.map_err(lacking)?;
        let private_data = hello.encode();
        let options = ConnectOptions {
            timeout: Some(self.connections.timeout),
            private_data: &private_data,
            ..Default::default()
        };
        let connecting = ep.connect_with(address, address.port().into(), &options);
        connecting.map_err(|error| self.reason_of(device, &error).unwrap_or(Error::Unreachable))
    }

    fn forget_receives(&mut self, rail: RailId) {
        let Some(device) = self.connections.device(rail) else { return };
        let window = self.connections.window(device);
        let Device { receives, adapter, .. } = self.devices.get_mut(device);
        receives.forget(adapter, rail, window);
    }
}

/// Returns the error of operations after an event.
fn reason(event: ConnectionEvent) -> Option<Error> {
    match event {
        ConnectionEvent::NonPeerRejected => Some(Error::Refused),
        ConnectionEvent::Unreachable => Some(Error::Unreachable),
        ConnectionEvent::TimedOut => Some(Error::TimedOut),
        _ => None,
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connections: an Endpoint for each rail.

use super::{
    binds::REQUESTS,
    devices::Device,
    routes::Routes,
    KernelHome,
    Report, //
    PLACES,
};
use crate::{
    address::{
        ip_of,
        Hosts, //
    },
    engine::{
        reason_of,
        rejection,
        Connects,
        Destination,
        EndsEndpoints,
        Error,
        Hello,
        PeerId,
        Postponed,
        RailId,
        Route,
        Waiter,
        Waiters,
        Ways, //
    },
    options::Options,
    storage::extend, //
};
use kdat::{
    Connection,
    Ep,
    EpAttr, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// Bytes of private data on each transport.
pub(crate) const PRIVATE_DATA: usize = 64;

/// Identity of an Endpoint: the number of its device, and its identity there.
pub(crate) type EpId = (u8, kdat::EpId);

/// The connections, and the addresses of peers.
pub(crate) struct Connections {
    /// Endpoints and their rails, in the order of the Endpoints' identities.
    eps: KVVec<(EpId, RailId)>,
    /// Endpoints, by the places of their rails.
    of_rails: KVVec<Option<(RailId, Arc<Ep>)>>,
    pub(crate) routes: Routes,
    timeout: u32,
    /// Receives and requests of an Endpoint.
    receives: u32,
    requests: u32,
    /// Segments of a message.
    segments: u32,
}

impl Connections {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            eps: KVVec::new(),
            of_rails: KVVec::new(),
            routes: Routes::new(options.rails),
            timeout: options.connect_timeout.saturating_mul(1000),
            receives: options.window().sum(),
            requests: u32::from(options.queue()) + REQUESTS,
            segments: options.segments(),
        }
    }

    pub(super) fn make_room(&mut self, peers: usize) -> Result<(), AllocError> {
        let rails = self.routes.rails_of(peers);
        extend(&mut self.of_rails, rails, || None)?;
        self.routes.make_room(peers)?;
        let more = rails.saturating_sub(self.eps.len());
        self.eps.reserve(more, GFP_KERNEL)
    }

    /// Returns the Endpoint of a rail.
    pub(super) fn ep(&self, rail: RailId) -> Option<&Arc<Ep>> {
        let (found, ep) = self.of_rails.get(self.routes.index(rail))?.as_ref()?;
        (*found == rail).then_some(ep)
    }

    /// Returns the device of a rail.
    pub(super) fn device(&self, rail: RailId) -> Option<u8> {
        self.routes.device(rail)
    }

    fn find(&self, ep: EpId) -> Result<usize, usize> {
        self.eps.binary_search_by_key(&ep, |(id, _)| *id)
    }

    /// Returns the rail of an Endpoint.
    pub(crate) fn rail_of(&self, ep: EpId) -> Option<RailId> {
        let place = self.find(ep).ok()?;
        self.eps.get(place).map(|(_, rail)| *rail)
    }

    /// Stores the Endpoint of a rail. There is room for all rails of each peer.
    fn insert(&mut self, rail: RailId, device: u8, ep: Arc<Ep>) {
        let (id, index) = ((device, ep.id()), self.routes.index(rail));
        if let (Err(place), Some(slot)) = (self.find(id), self.of_rails.get_mut(index)) {
            let _ = self.eps.insert_within_capacity(place, (id, rail));
            *slot = Some((rail, ep));
        }
    }

    /// Takes the Endpoint of a rail out of the tables.
    pub(super) fn remove(&mut self, rail: RailId) -> Option<Arc<Ep>> {
        let id = self.ep(rail)?.id();
        if let Ok(place) = self.find((self.device(rail)?, id)) {
            let _ = self.eps.remove(place);
        }
        let index = self.routes.index(rail);
        let slot = self.of_rails.get_mut(index)?;
        slot.take().map(|(_, ep)| ep)
    }

    /// Returns the messages that the peer of a connection may send, and the number of connections
    /// over a device.
    pub(super) fn window(&self, device: u8) -> (usize, usize) {
        let until = |last: u8| self.eps.partition_point(|((device, _), _)| *device <= last);
        let before = device.checked_sub(1).map_or(0, until);
        (self.receives as usize, until(device) - before)
    }
}

impl KernelHome {
    /// Creates the Endpoint of a rail, and posts receives for it.
    fn create_ep(&mut self, rail: RailId) -> kdat::Result {
        let connections = &mut self.connections;
        let number = connections.device(rail).unwrap_or(0);
        let (window, count) = connections.window(number);
        let Device {
            adapter, receives, ..
        } = self.devices.get_mut(number);
        adapter.make_room_for_events(count + 1)?;
        let srq = receives.srq().cloned();
        let (writes, reads) = adapter.rdma_segments();
        let attr = EpAttr {
            max_recv_dtos: if srq.is_some() {
                0
            } else {
                connections.receives as i32
            },
            max_request_dtos: connections.requests as i32,
            max_recv_iov: connections.segments as i32,
            max_request_iov: connections.segments as i32,
            max_rdma_read_in: adapter.limits.reads_in as i32,
            max_rdma_read_out: adapter.limits.reads_out as i32,
            max_rdma_write_iov: writes as i32,
            max_rdma_read_iov: reads as i32,
            ..Default::default()
        };
        let evds = (&adapter.evd).into();
        let ep = match &srq {
            Some(srq) => adapter.pz.create_ep_with_srq(evds, srq, Some(&attr))?,
            None => adapter.pz.create_ep(evds, Some(&attr))?,
        };
        receives.prepare(adapter, &ep, (window, count + 1))?;
        connections.insert(rail, number, Arc::new(ep, GFP_KERNEL)?);
        Ok(())
    }

    /// Returns the error of operations after a call of DAT that the device has refused.
    fn reason_of(&self, device: u8, error: kdat::Error) -> Option<Error> {
        error
            .is_of_device()
            .then(|| match self.devices.is_gone(device) {
                true => Error::DeviceLost,
                false => Error::Unreachable,
            })
    }

    pub(super) fn begin_accept(&mut self, request: u64, rail: RailId, hello: &Hello) {
        let Some((device, cr)) = self.crs.remove(request) else {
            return self.close_rail(rail, Some(Error::Reset));
        };
        self.connections
            .routes
            .insert(rail, Route::accepted(device));
        if rail.rail == 0 {
            let remote = cr.remote().ok().map(Hosts::from);
            self.connections.routes.set_hosts(rail.peer, remote);
        }
        if self.create_ep(rail).is_err() && self.create_ep_after_ends(rail).is_err() {
            let _ = cr.reject(&rejection());
            if rail.rail == 0 {
                // The next request may find an Endpoint.
                self.postponed.shortage.begin();
            }
            return self.close_rail(rail, Some(Error::NoMemory));
        }
        let ep = self.connections.ep(rail);
        if ep.is_none_or(|ep| cr.accept(ep, &hello.encode()).is_err()) {
            // The peer has given up.
            self.close_rail(rail, Some(Error::Reset));
        }
    }

    /// Carries out the tasks that wait, and creates the Endpoint of a rail then.
    fn create_ep_after_ends(&mut self, rail: RailId) -> kdat::Result {
        self.carry_out_waiting();
        self.create_ep(rail)
    }

    /// Processes a connection event other than ESTABLISHED.
    pub(crate) fn connection_ended(&mut self, id: EpId, event: Connection) {
        let Some(rail) = self.connections.rail_of(id) else {
            return;
        };
        let reason = match event {
            Connection::PeerRejected => {
                let mut data = [0; PRIVATE_DATA];
                let length = self.private_data(rail, &mut data);
                Some(reason_of(data.get(..length).unwrap_or(&[])))
            }
            Connection::Broken | Connection::NonPeerRejected | Connection::AcceptFailed
                if self.devices.is_gone(id.0) =>
            {
                Some(Error::DeviceLost)
            }
            Connection::NonPeerRejected => Some(Error::Refused),
            Connection::Unreachable => Some(Error::Unreachable),
            Connection::TimedOut => Some(Error::TimedOut),
            _ => None,
        };
        self.connection_lost(rail, id.0, reason);
    }

    /// Copies the private data of the peer's answer, and returns their length.
    pub(crate) fn private_data(&self, rail: RailId, data: &mut [u8]) -> usize {
        let length = self.connections.ep(rail).map(|ep| ep.private_data(data));
        length.and_then(Result::ok).unwrap_or(0).min(PRIVATE_DATA)
    }
}

impl Waiters for KVVec<Waiter> {
    fn push(&mut self, waiter: Waiter) -> bool {
        self.push(waiter, GFP_KERNEL).is_ok()
    }

    fn take(&mut self, place: usize) -> Option<Waiter> {
        self.remove(place).ok()
    }

    fn put_back(&mut self, place: usize, waiter: Waiter) {
        let _ = self.insert_within_capacity(place, waiter);
    }
}

impl Connects for KernelHome {
    type Waiters = KVVec<Waiter>;

    fn postponed(&mut self) -> &mut Postponed<KVVec<Waiter>> {
        &mut self.postponed
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn destination(&self, peer: PeerId) -> Option<Destination<'_>> {
        let devices = &self.devices;
        let ways = |hosts| Ways::new(devices.count(), hosts, devices.living());
        self.connections.routes.destination(peer, ways)
    }

    fn route(&self, rail: RailId) -> Option<&Route> {
        self.connections.routes.of(rail)
    }

    fn route_mut(&mut self, rail: RailId) -> Option<&mut Route> {
        self.connections.routes.of_mut(rail)
    }

    fn set_route(&mut self, rail: RailId, route: Route) {
        self.connections.routes.insert(rail, route);
    }

    fn moved(&mut self, rail: RailId, device: u8, way: usize) {
        self.connections.routes.prefer(rail.peer, way);
        self.report(Report::Moved(rail, device));
    }

    fn devices(&self) -> u8 {
        self.devices.count()
    }

    /// Notes that a device was removed. Without another one, wakes all waiters. Connections end by
    /// events of their own.
    fn lose_device(&mut self, device: u8) {
        self.devices.lose(device);
        if self.is_lost() {
            self.wakes = (1 << PLACES) - 1;
            self.fail_all_postponed();
        }
    }

    fn try_connect(&mut self, rail: RailId, hello: &Hello) -> Result<(), Error> {
        if self.is_lost() {
            return Err(Error::DeviceLost);
        }
        let (device, host) = (self.device_of(rail), self.route(rail));
        let host = host.and_then(|route| route.address);
        let host = host.ok_or(Error::Unreachable)?;
        self.create_ep(rail)
            .map_err(|error| self.reason_of(device, error).unwrap_or(Error::NoMemory))?;
        let ep = self.connections.ep(rail).ok_or(Error::NoMemory)?;
        let timeout = self.connections.timeout;
        let begun = ep.connect(&ip_of(host), host.port().into(), timeout, &hello.encode());
        begun.map_err(|error| self.reason_of(device, error).unwrap_or(Error::Unreachable))
    }

    fn forget_receives(&mut self, rail: RailId) {
        let Some(device) = self.connections.device(rail) else {
            return;
        };
        let window = self.connections.window(device);
        let Device {
            receives, adapter, ..
        } = self.devices.get_mut(device);
        receives.forget(adapter, window);
    }
}

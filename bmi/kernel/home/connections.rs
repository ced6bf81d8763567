// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connections: an Endpoint for each rail.

use super::{
    binds::REQUESTS,
    devices::Device,
    routes::Routes,
    KernelHome,
    PLACES, //
};
use crate::{
    address::{
        ip_of,
        Hosts, //
    },
    engine::{
        reason_of,
        rejection,
        EndsEndpoints,
        Error,
        Hello,
        RailId,
        Short, //
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

    /// Connects a rail, by another way if the first one fails at once.
    pub(super) fn begin_connect(&mut self, rail: RailId, hello: &Hello) {
        let mut short = Short::default();
        if let Err(error) = self.try_connect(rail, hello) {
            self.not_begun(rail, error, &mut short);
            self.go_on(rail, Some(error), &mut short);
        }
    }

    /// Continues with a rail without Endpoint: tries another way, or waits for an Endpoint, or
    /// reports the end for this reason.
    pub(super) fn go_on(&mut self, rail: RailId, reason: Option<Error>, short: &mut Short) {
        let Err(reason) = self.connect_again(rail, reason, short) else {
            return;
        };
        // Only a session without connections is worth an idle one.
        let waits = self.has_way(rail, Short::default()) && self.postponed.push(rail);
        if !waits {
            self.close_rail(rail, reason);
        }
    }

    /// Connects a rail without Endpoint by the next way that is left. `short` gets the devices that
    /// have no Endpoint.
    ///
    /// # Errors
    ///
    /// The reason of the last failure. There may be ways from devices that have no Endpoint.
    pub(super) fn connect_again(
        &mut self,
        rail: RailId,
        mut reason: Option<Error>,
        short: &mut Short,
    ) -> Result<(), Option<Error>> {
        while let Some(hello) = self.choose_again(rail, *short) {
            let Err(error) = self.try_connect(rail, &hello) else {
                return Ok(());
            };
            self.not_begun(rail, error, short);
            reason = Some(error);
        }
        Err(reason)
    }

    /// Notes that a connect has not begun. Without an Endpoint, the way counts as not tried.
    fn not_begun(&mut self, rail: RailId, error: Error, short: &mut Short) {
        let device = self.connections.device(rail).unwrap_or(0);
        let had_ep = self.free_unconnected(rail);
        if error == Error::NoMemory {
            return short.add(device);
        }
        if had_ep {
            self.postponed.ep_was_freed();
        }
        self.connections.routes.fail(rail);
        self.note_loss(device, Some(error));
    }

    /// Notes that a device was removed, if that is why a connect has failed. Without another
    /// device, an event says so.
    fn note_loss(&mut self, device: u8, reason: Option<Error>) {
        if reason == Some(Error::DeviceLost) && self.devices.count() > 1 {
            self.lose_device(device);
        }
    }

    fn try_connect(&mut self, rail: RailId, hello: &Hello) -> Result<(), Error> {
        let device = self.connections.device(rail).unwrap_or(0);
        if self.is_lost() {
            return Err(Error::DeviceLost);
        }
        let host = self.connections.routes.address(rail);
        let host = host.ok_or(Error::Unreachable)?;
        self.create_ep(rail)
            .map_err(|error| self.reason_of(device, error).unwrap_or(Error::NoMemory))?;
        let ep = self.connections.ep(rail).ok_or(Error::NoMemory)?;
        let timeout = self.connections.timeout;
        let begun = ep.connect(&ip_of(host), host.port().into(), timeout, &hello.encode());
        begun.map_err(|error| self.reason_of(device, error).unwrap_or(Error::Unreachable))
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

    /// Notes that a device was removed. Without another one, wakes all waiters, and fails the
    /// connects that wait for an Endpoint. Connections end by events of their own.
    pub(crate) fn lose_device(&mut self, device: u8) {
        self.devices.lose(device);
        if !self.is_lost() {
            return;
        }
        self.wakes = (1 << PLACES) - 1;
        while let Some(rail) = self.postponed.pop() {
            self.close_rail(rail, Some(Error::DeviceLost));
        }
    }

    pub(super) fn begin_accept(&mut self, request: u64, rail: RailId, hello: &Hello) {
        let Some((device, cr)) = self.crs.remove(request) else {
            return self.close_rail(rail, Some(Error::Reset));
        };
        self.connections.routes.accepted(rail, device);
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
        self.note_loss(id.0, reason);
        if reason == Some(Error::Version) {
            // Each way leads to the same peer.
            self.connections.routes.settle(rail);
        }
        // The free of the Endpoint sleeps. After it, another way is tried.
        self.close_rail(rail, reason);
    }

    /// Copies the private data of the peer's answer, and returns their length.
    pub(crate) fn private_data(&self, rail: RailId, data: &mut [u8]) -> usize {
        let length = self.connections.ep(rail).map(|ep| ep.private_data(data));
        length.and_then(Result::ok).unwrap_or(0).min(PRIVATE_DATA)
    }
}

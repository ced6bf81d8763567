// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connections: an Endpoint for each rail.

use super::{
    binds::REQUESTS,
    KernelHome,
    PLACES, //
};
use crate::{
    address::PeerAddress,
    engine::{
        reason_of,
        rejection,
        EndsEndpoints,
        Error,
        Hello,
        PeerId,
        RailId,
        Shortage, //
    },
    options::Options,
    storage::extend, //
};
use core::mem;
use kdat::{
    Connection,
    Ep,
    EpAttr,
    EpId, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// Bytes of private data on each transport.
pub(crate) const PRIVATE_DATA: usize = 64;

/// The connections, and the addresses of peers.
pub(crate) struct Connections {
    /// Endpoints and their rails, in the order of the Endpoints' identities.
    eps: KVVec<(EpId, RailId)>,
    /// Endpoints by the indices of peers, `rails` places for each.
    of_peers: KVVec<Option<(RailId, Arc<Ep>)>>,
    rails: usize,
    /// Addresses to which this side connects, by the indices of peers.
    addresses: KVVec<Option<PeerAddress>>,
    timeout: u32,
    /// Receives and requests of an Endpoint.
    receives: u32,
    requests: u32,
    /// Segments of a message.
    segments: u32,
    pub(crate) shortage: Shortage,
    /// An Endpoint was freed, and no connect was tried again since then.
    was_freed: bool,
    /// Connects that wait for an Endpoint, and when they began: the oldest one first.
    postponed: KVVec<(RailId, Hello, u64)>,
    /// Milliseconds at the last tick.
    now: u64,
}

impl Connections {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            eps: KVVec::new(),
            of_peers: KVVec::new(),
            rails: options.rails.into(),
            addresses: KVVec::new(),
            timeout: options.connect_timeout.saturating_mul(1000),
            receives: options.window().sum(),
            requests: u32::from(options.queue()) + REQUESTS,
            segments: options.segments(),
            shortage: Shortage::default(),
            was_freed: false,
            postponed: KVVec::new(),
            now: 0,
        }
    }

    pub(super) fn make_room(&mut self, peers: usize) -> Result<(), AllocError> {
        let rails = self.rails_of(peers);
        extend(&mut self.of_peers, rails, || None)?;
        extend(&mut self.addresses, peers, || None)?;
        let more = rails.saturating_sub(self.eps.len());
        self.eps.reserve(more, GFP_KERNEL)
    }

    /// Returns the place of a rail.
    fn place(&self, rail: RailId) -> usize {
        rail.peer.0.index() as usize * self.rails + usize::from(rail.rail)
    }

    /// Returns the Endpoint of a rail.
    pub(super) fn ep(&self, rail: RailId) -> Option<&Arc<Ep>> {
        let (found, ep) = self.of_peers.get(self.place(rail))?.as_ref()?;
        (*found == rail).then_some(ep)
    }

    fn find(&self, ep: EpId) -> Result<usize, usize> {
        self.eps.binary_search_by_key(&ep, |(id, _)| *id)
    }

    /// Returns the rail of an Endpoint.
    pub(crate) fn rail_of(&self, ep: EpId) -> Option<RailId> {
        let place = self.find(ep).ok()?;
        self.eps.get(place).map(|(_, rail)| *rail)
    }

    /// Returns the number of rails that so many peers may have.
    pub(super) fn rails_of(&self, peers: usize) -> usize {
        peers.saturating_mul(self.rails)
    }

    /// Returns the number of connections.
    pub(crate) fn count(&self) -> usize {
        self.eps.len()
    }

    /// Stores the Endpoint of a rail. There is room for all rails of each peer.
    fn insert(&mut self, rail: RailId, ep: Arc<Ep>) {
        let (id, index) = (ep.id(), self.place(rail));
        if let (Err(place), Some(slot)) = (self.find(id), self.of_peers.get_mut(index)) {
            let _ = self.eps.insert_within_capacity(place, (id, rail));
            *slot = Some((rail, ep));
        }
    }

    /// Takes the Endpoint of a rail out of the tables.
    pub(super) fn remove(&mut self, rail: RailId) -> Option<Arc<Ep>> {
        let id = self.ep(rail)?.id();
        if let Ok(place) = self.find(id) {
            let _ = self.eps.remove(place);
        }
        let index = self.place(rail);
        let slot = self.of_peers.get_mut(index)?;
        slot.take().map(|(_, ep)| ep)
    }

    /// Notes that an Endpoint was freed.
    pub(super) fn ep_was_freed(&mut self) {
        self.shortage.ep_was_freed(self.now);
        self.was_freed = true;
    }

    /// Forgets a connect that waits for an Endpoint.
    pub(super) fn forget_postponed(&mut self, rail: RailId) {
        self.postponed.retain(|(waiting, ..)| *waiting != rail);
    }

    /// Returns the messages that the peer of a connection may send, and the number of connections.
    pub(super) fn window(&self) -> (usize, usize) {
        (self.receives as usize, self.count())
    }

    /// Lets a connect wait for an Endpoint. Returns whether there was memory for that.
    fn postpone(&mut self, rail: RailId, hello: &Hello) -> bool {
        self.shortage.begin();
        let connect = (rail, *hello, self.now);
        self.postponed.push(connect, GFP_KERNEL).is_ok()
    }

    /// Returns the address of a peer.
    pub(crate) fn address(&self, peer: PeerId) -> Option<&PeerAddress> {
        self.addresses.get(peer.0.index() as usize)?.as_ref()
    }

    /// Sets the address of a peer; `None` for one that was freed.
    pub(crate) fn set_address(&mut self, peer: PeerId, address: Option<PeerAddress>) {
        if let Some(slot) = self.addresses.get_mut(peer.0.index() as usize) {
            *slot = address;
        }
    }
}

impl KernelHome {
    /// Creates the Endpoint of a rail, and posts receives for it.
    fn create_ep(&mut self, rail: RailId) -> kdat::Result {
        let eps = self.connections.count() + 1;
        self.adapter.make_room_for_events(eps)?;
        let (adapter, connections) = (&self.adapter, &mut self.connections);
        let srq = self.receives.srq().cloned();
        let segments = |limit: u32| limit.clamp(1, kdat::MAX_SEGMENTS as u32) as i32;
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
            max_rdma_write_iov: segments(adapter.limits.write_segments),
            max_rdma_read_iov: segments(adapter.limits.read_segments),
            ..Default::default()
        };
        let evds = (&adapter.evd).into();
        let ep = match &srq {
            Some(srq) => adapter.pz.create_ep_with_srq(evds, srq, Some(&attr))?,
            None => adapter.pz.create_ep(evds, Some(&attr))?,
        };
        let window = (connections.receives as usize, connections.count() + 1);
        self.receives.prepare(adapter, &ep, window)?;
        connections.insert(rail, Arc::new(ep, GFP_KERNEL)?);
        Ok(())
    }

    pub(super) fn begin_connect(&mut self, rail: RailId, hello: &Hello) {
        let Err(error) = self.try_connect(rail, hello) else {
            return;
        };
        // Only a session without connections is worth an idle one.
        let may_wait = rail.rail == 0 && error == Error::NoMemory;
        if !may_wait || !self.connections.postpone(rail, hello) {
            self.close_rail(rail, Some(error));
        }
    }

    /// Tries the oldest connect that waits for an Endpoint again. Without one it keeps its turn.
    fn retry_postponed(&mut self) {
        let Some((rail, hello, _)) = self.connections.postponed.first().copied() else {
            return;
        };
        let outcome = self.try_connect(rail, &hello);
        if outcome == Err(Error::NoMemory) {
            self.connections.shortage.go_on(self.connections.now);
            return;
        }
        let _ = self.connections.postponed.remove(0);
        if let Err(error) = outcome {
            self.close_rail(rail, Some(error));
        }
    }

    /// Asks another session to leave if a connect waits, since the one that was asked stays.
    pub(crate) fn session_stays(&mut self) {
        let (waits, now) = (!self.connections.postponed.is_empty(), self.connections.now);
        self.connections.shortage.session_stays(waits, now);
    }

    /// Fails the last connect that waits for an Endpoint, unless another one may be had soon: there
    /// is no idle session.
    pub(crate) fn fail_postponed(&mut self) {
        if self.connections.shortage.expects_ep(self.connections.now) {
            return;
        }
        if let Some((rail, ..)) = self.connections.postponed.pop() {
            self.close_rail(rail, Some(Error::NoMemory));
        }
    }

    /// Lets time pass: tries again, and fails the connects that have waited for too long. `now` is
    /// in milliseconds.
    pub(crate) fn tick_postponed(&mut self, now: u64) {
        self.connections.now = now;
        if self.connections.shortage.tick(now) {
            self.retry_postponed();
        }
        self.expire_postponed(now);
    }

    fn expire_postponed(&mut self, now: u64) {
        let timeout = u64::from(self.connections.timeout / 1000);
        while let Some((rail, _, since)) = self.connections.postponed.first().copied() {
            if now < since.saturating_add(timeout) {
                return;
            }
            let _ = self.connections.postponed.remove(0);
            self.close_rail(rail, Some(Error::NoMemory));
        }
    }

    fn try_connect(&mut self, rail: RailId, hello: &Hello) -> Result<(), Error> {
        let address = self.connections.address(rail.peer).copied();
        let address = address.ok_or(Error::Unreachable)?;
        self.create_ep(rail)
            .map_err(|error| self.reason_of(error).unwrap_or(Error::NoMemory))?;
        let ep = self.connections.ep(rail).ok_or(Error::NoMemory)?;
        let timeout = self.connections.timeout;
        let begun = ep.connect(&address.ip(), address.port(), timeout, &hello.encode());
        begun.map_err(|error| self.reason_of(error).unwrap_or(Error::Unreachable))
    }

    /// Returns the error of operations after a call of DAT that the device has refused.
    fn reason_of(&self, error: kdat::Error) -> Option<Error> {
        error.is_of_device().then(|| match self.device_is_gone() {
            true => Error::DeviceLost,
            false => Error::Unreachable,
        })
    }

    /// Returns whether the device was removed. The events of its connections come before the one
    /// that says so, thus this asks by a call that needs the device.
    fn device_is_gone(&self) -> bool {
        let needs_device = || self.adapter.pz.buffer(1);
        self.is_lost || needs_device().is_err_and(|error| error.is_of_device())
    }

    /// Notes that the device was removed. Wakes all waiters, and fails the connects that wait for
    /// an Endpoint. Connections end by events of their own.
    pub(crate) fn lose_device(&mut self) {
        self.is_lost = true;
        self.wakes = (1 << PLACES) - 1;
        while let Some((rail, ..)) = self.connections.postponed.pop() {
            self.close_rail(rail, Some(Error::DeviceLost));
        }
    }

    pub(super) fn begin_accept(&mut self, request: u64, rail: RailId, hello: &Hello) {
        let Some(cr) = self.crs.remove(request) else {
            return self.close_rail(rail, Some(Error::Reset));
        };
        if rail.rail == 0 {
            let remote = cr.remote().ok().and_then(PeerAddress::new);
            self.connections.set_address(rail.peer, remote);
        }
        if self.create_ep(rail).is_err() && self.create_ep_after_ends(rail).is_err() {
            let _ = cr.reject(&rejection());
            if rail.rail == 0 {
                // The next request may find an Endpoint.
                self.connections.shortage.begin();
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
                if self.device_is_gone() =>
            {
                Some(Error::DeviceLost)
            }
            Connection::NonPeerRejected => Some(Error::Refused),
            Connection::Unreachable => Some(Error::Unreachable),
            Connection::TimedOut => Some(Error::TimedOut),
            _ => None,
        };
        self.close_rail(rail, reason);
    }

    /// Tries the oldest connect that waits for an Endpoint again if one was freed. Returns whether
    /// one was.
    pub(crate) fn retry_if_freed(&mut self) -> bool {
        let was_freed = mem::take(&mut self.connections.was_freed);
        if was_freed {
            self.retry_postponed();
        }
        was_freed
    }

    /// Copies the private data of the peer's answer, and returns their length.
    pub(crate) fn private_data(&self, rail: RailId, data: &mut [u8]) -> usize {
        let length = self.connections.ep(rail).map(|ep| ep.private_data(data));
        length.and_then(Result::ok).unwrap_or(0).min(PRIVATE_DATA)
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connections: an Endpoint for each rail.

use super::transfers::MOST_SEGMENTS;
use super::{DatHome, Report};
use crate::bmi::engine::{Close, Error, Hello, PeerId, RailId};
use crate::options::Options;
use libkdapl::{ConnectOptions, ConnectionEvent, Ep, EpAttr, EpConfig, Handle};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Binds and unbinds that an Endpoint can have outstanding, besides the engine's requests.
const BINDS: u32 = 64;

/// A connection.
struct Connection {
    rail: RailId,
    ep: Ep,
}

/// The connections, and the addresses of peers.
pub(crate) struct Connections {
    by_rail: HashMap<RailId, Handle>,
    by_ep: HashMap<Handle, Connection>,
    /// Addresses to which this side connects, or from which a peer has connected.
    pub(crate) addresses: HashMap<PeerId, SocketAddr>,
    timeout: Duration,
    /// Receives and requests of an Endpoint.
    receives: u32,
    requests: u32,
}

impl Connections {
    pub(super) fn new(options: &Options) -> Self {
        let config = options.config();
        Self {
            by_rail: HashMap::new(),
            by_ep: HashMap::new(),
            addresses: HashMap::new(),
            timeout: options.connect_timeout,
            receives: config.window.sum(),
            requests: u32::from(config.queue) + BINDS,
        }
    }

    /// Returns the Endpoint of a rail.
    pub(super) fn ep(&self, rail: RailId) -> Option<&Ep> {
        let handle = self.by_rail.get(&rail)?;
        Some(&self.by_ep.get(handle)?.ep)
    }

    /// Returns the rail and the Endpoint with a handle.
    pub(crate) fn of(&self, ep: Handle) -> Option<(RailId, &Ep)> {
        self.by_ep.get(&ep).map(|connection| (connection.rail, &connection.ep))
    }

    /// Returns the number of connections.
    pub(crate) fn count(&self) -> usize {
        self.by_ep.len()
    }

    fn insert(&mut self, rail: RailId, ep: Ep) {
        self.by_rail.insert(rail, ep.handle());
        self.by_ep.insert(ep.handle(), Connection { rail, ep });
    }

    fn remove(&mut self, rail: RailId) {
        if let Some(handle) = self.by_rail.remove(&rail) {
            self.by_ep.remove(&handle);
        }
    }
}

impl DatHome {
    /// Creates the Endpoint of a rail, and posts receives for it.
    fn create_ep(&mut self, rail: RailId) -> libkdapl::Result<Ep> {
        let adapter = &self.adapter;
        let srq = self.receives.srq();
        let attr = EpAttr {
            max_recv_dtos: if srq.is_some() { 0 } else { self.connections.receives },
            max_request_dtos: self.connections.requests,
            max_recv_iov: 1,
            max_request_iov: MOST_SEGMENTS as u32,
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
        self.connections.insert(rail, ep.clone());
        let window = (self.connections.receives as usize, self.connections.count());
        self.receives.prepare(adapter, &ep, window)?;
        Ok(ep)
    }

    pub(super) fn begin_connect(&mut self, rail: RailId, hello: &Hello) {
        if let Err(error) = self.try_connect(rail, hello) {
            self.close_rail(rail, Some(error));
        }
    }

    fn try_connect(&mut self, rail: RailId, hello: &Hello) -> Result<(), Error> {
        let address = self.connections.addresses.get(&rail.peer).copied();
        let address = address.ok_or(Error::Unreachable)?;
        let ep = self.create_ep(rail).map_err(|_| Error::NoMemory)?;
        let private_data = hello.encode();
        let options = ConnectOptions {
            timeout: Some(self.connections.timeout),
            private_data: &private_data,
            ..Default::default()
        };
        let connecting = ep.connect_with(address, address.port().into(), &options);
        connecting.map_err(|_| Error::Unreachable)
    }

    pub(super) fn begin_accept(&mut self, request: u64, rail: RailId, hello: &Hello) {
        let Some(mut cr) = self.crs.try_remove(request as usize) else {
            return self.close_rail(rail, Some(Error::Reset));
        };
        if let Some(address) = cr.query().ok().and_then(|query| query.remote) {
            self.connections.addresses.insert(rail.peer, address);
        }
        let accepted = self.create_ep(rail).and_then(|ep| cr.accept(&ep, &hello.encode()));
        if accepted.is_err() {
            // Dropping the request rejects it.
            self.close_rail(rail, Some(Error::NoMemory));
        }
    }

    pub(super) fn begin_disconnect(&mut self, rail: RailId, close: Close) {
        let how = match close {
            Close::Graceful => libkdapl::Close::Graceful,
            Close::Abrupt => libkdapl::Close::Abrupt,
        };
        // The event of the end follows, also if it is on its way already.
        let begun = self.ep(rail).is_some_and(|ep| ep.disconnect(how).is_ok());
        if !begun {
            self.close_rail(rail, None);
        }
    }

    /// Frees the Endpoint of a rail, and reports its end. Nothing is outstanding on it.
    fn close_rail(&mut self, rail: RailId, reason: Option<Error>) {
        self.connections.remove(rail);
        self.reports.push_back(Report::Closed(rail, reason));
    }

    /// Processes a connection event other than ESTABLISHED.
    pub(crate) fn connection_ended(&mut self, ep: Handle, event: ConnectionEvent) {
        let Some((rail, _)) = self.connections.of(ep) else { return };
        self.close_rail(rail, reason(event));
    }
}

/// Returns the error of operations after an event.
fn reason(event: ConnectionEvent) -> Option<Error> {
    match event {
        ConnectionEvent::PeerRejected | ConnectionEvent::NonPeerRejected => Some(Error::Refused),
        ConnectionEvent::Unreachable => Some(Error::Unreachable),
        ConnectionEvent::TimedOut => Some(Error::TimedOut),
        _ => None,
    }
}

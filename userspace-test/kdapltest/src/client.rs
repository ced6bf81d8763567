// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Client side: connecting and disconnecting.

use crate::cli::ClientArgs;
use crate::device;
use crate::protocol::{decode_offer, Request};
use crate::side::{lost, Peer, Plan, Side};
use anyhow::{anyhow, bail, ensure, Context, Error, Result};
use libkdapl::{
    Close, ConnectOptions, ConnectionEvent, DtoOperation, DtoStatus, Ep, Event, Ia, Segment,
};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use toolkit::stop;

/// Additional time for the event that reports an expired connect.
const GRACE: Duration = Duration::from_secs(5);

/// An open device and the address of the server.
pub struct Target {
    pub ia: Ia,
    pub device: String,
    pub address: IpAddr,
    /// The same for a connect, with the scope of a link-local address.
    remote: SocketAddr,
    pub port: u16,
    pub timeout: Duration,
    /// A connection to the server was established.
    reached: AtomicBool,
}

impl Target {
    pub fn open(args: &ClientArgs) -> Result<Self> {
        let (ia, device) = device::open(&args.device)?;
        let remote = match args.server() {
            Some(host) => ia.resolve(host)?,
            None => SocketAddr::new(device::own_address(&ia, &device)?, 0),
        };
        let timeout = Duration::from_secs(args.device.timeout);
        let (address, port) = (remote.ip(), args.device.port);
        Ok(Self { ia, device, address, remote, port, timeout, reached: AtomicBool::new(false) })
    }

    /// Starts to connect an Endpoint to the server.
    pub fn call(&self, ep: &Ep, private_data: &[u8]) -> libkdapl::Result<()> {
        let timeout = Some(self.timeout);
        let options = ConnectOptions { timeout, private_data, ..Default::default() };
        ep.connect_with(self.remote, self.port.into(), &options)
    }

    /// Returns the server as errors name it.
    pub fn peer(&self) -> Peer {
        Peer {
            name: format!("the server at {}, port {}", self.address, self.port),
            remedy: "see what it printed, and start 'kdapltest server' there again",
        }
    }

    /// Connects a new side; `before` posts its receives. Returns the side and the server's memory.
    pub fn connect(
        &self,
        plan: &Plan,
        request: &Request,
        before: impl FnOnce(&Side) -> Result<()>,
    ) -> Result<(Side, Segment)> {
        let mut side = Side::new(&self.ia, plan, self.peer())?;
        before(&side)?;
        self.call(&side.ep, &request.encode()).with_context(|| device::state(&self.device))?;
        // The kernel's time-out event normally arrives before this wait expires.
        match side.next_within(self.timeout + GRACE)? {
            Event::Connection { event: ConnectionEvent::Established, .. } => self.reached(),
            event => return Err(self.not_connected(&side.ep, &event)),
        }
        let offer = decode_offer(&side.ep.private_data()?)?;
        Ok((side, offer))
    }

    /// Records that a connection to the server was established.
    pub fn reached(&self) {
        self.reached.store(true, Ordering::Relaxed);
    }

    /// Returns an error text for an event that is not ESTABLISHED.
    pub fn not_connected(&self, ep: &Ep, event: &Event) -> Error {
        let Event::Connection { event, .. } = event else {
            return anyhow!("expected a connection event, got {event}");
        };
        device::removed_soon(&self.ia).unwrap_or_else(|| self.refused(ep, *event))
    }

    fn refused(&self, ep: &Ep, event: ConnectionEvent) -> Error {
        let (address, port) = (self.address, self.port);
        let reason = ep.private_data().unwrap_or_default();
        let reason = String::from_utf8_lossy(&reason);
        let reason = reason.trim_end_matches('\0');
        match event {
            ConnectionEvent::PeerRejected if !reason.is_empty() => {
                anyhow!("the server at {address} rejected the connection: {reason}")
            }
            // It listened before, so it has ended since.
            event if self.reached.load(Ordering::Relaxed) => lost(&self.ia, &self.peer(), event),
            ConnectionEvent::NonPeerRejected => anyhow!(
                "nobody listens at {address} on port {port}, or too many connect at a time: start \
                 'kdapltest server' there, or use a smaller --parallel or --threads"
            ),
            ConnectionEvent::TimedOut | ConnectionEvent::Unreachable => anyhow!(
                "{address} does not answer ({event}): check the address (ping {address}) and \
                 that its RDMA device is up ('kdapltest devices' there)"
            ),
            other => anyhow!("no connection to {address}: {other}"),
        }
    }
}

/// Ends a connection after its measurement. An error of the measurement names the peer. After a
/// stop was requested, an error is not reported, and the connection ends with the process.
pub fn finish(side: &mut Side, outcome: Result<()>) -> Result<()> {
    let outcome = outcome.and_then(|()| disconnect(side)).map_err(|error| side.explain(error));
    stop::forgive(outcome).map(drop)
}

/// Disconnects, and takes all events up to DISCONNECTED, which must be the last.
pub fn disconnect(side: &mut Side) -> Result<()> {
    side.farewell()?;
    side.ep.disconnect(Close::Graceful)?;
    loop {
        match side.next()? {
            Event::Connection { event: ConnectionEvent::Disconnected, .. } => break,
            Event::Dto(dto) if dto.status == DtoStatus::Flushed => {}
            // All answers were taken; sends may complete late.
            Event::Dto(dto) if dto.status == DtoStatus::Success => {
                ensure!(
                    dto.operation != DtoOperation::Receive,
                    "a message came that was not asked for"
                );
            }
            event => bail!("expected DISCONNECTED, got {event}"),
        }
    }
    if let Some(event) = side.try_next()? {
        bail!("an event came after DISCONNECTED: {event}");
    }
    Ok(())
}

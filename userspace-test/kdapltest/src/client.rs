// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The client's way to a connection and back.

use crate::cli::{ClientArgs, DeviceArgs};
use crate::protocol::{decode_offer, Request};
use crate::side::{Plan, Side};
use anyhow::{anyhow, bail, ensure, Context, Result};
use libkdapl::{Close, ConnectionEvent, DtoOperation, DtoStatus, Ep, Event, Ia, Segment};
use std::net::IpAddr;
use std::time::Duration;

/// Entries of the asynchronous EVD.
const ASYNC_QLEN: i32 = 8;
/// How much later than its time the end of a connect may be told.
const GRACE: Duration = Duration::from_secs(5);

/// An open device, and where the server is.
pub struct Target {
    pub ia: Ia,
    pub device: String,
    pub address: IpAddr,
    pub port: u16,
    pub timeout: Duration,
}

/// Opens the device that `args` name, or the first that is up.
pub fn open_device(args: &DeviceArgs) -> Result<(Ia, String)> {
    let name = match &args.device {
        Some(name) => name.clone(),
        None => {
            let devices = libkdapl::devices()?;
            let usable = devices.iter().find(|d| d.port_active && d.address.is_some());
            let Some(device) = usable.or(devices.first()) else {
                bail!(
                    "this machine has no RDMA device: make a soft-RoCE one on a network device \
                     that has an address, for example: rdma link add rxe0 type rxe netdev eth0"
                );
            };
            device.name.clone()
        }
    };
    let ia = Ia::open(&name, ASYNC_QLEN).with_context(|| format!("device '{name}'"))?;
    Ok((ia, name))
}

/// The address of the IA itself.
pub fn own_address(ia: &Ia, device: &str) -> Result<IpAddr> {
    let query = ia.query()?;
    let Some(address) = query.address else {
        bail!(
            "device '{device}' has no IP address: give {} one (ip addr add ... dev {}), or name \
             the server with --server",
            query.netdev_name,
            query.netdev_name
        );
    };
    Ok(address.ip())
}

impl Target {
    pub fn open(args: &ClientArgs) -> Result<Self> {
        let (ia, device) = open_device(&args.device)?;
        let address = match args.server {
            Some(address) => address,
            None => own_address(&ia, &device)?,
        };
        let timeout = Duration::from_secs(args.device.timeout);
        Ok(Self { ia, device, address, port: args.device.port, timeout })
    }

    /// Connects a new side; `before` posts its receives. Also returns the server's memory.
    pub fn connect(
        &self,
        plan: &Plan,
        request: &Request,
        before: impl FnOnce(&Side) -> Result<()>,
    ) -> Result<(Side, Segment)> {
        let mut side = Side::new(&self.ia, plan)?;
        before(&side)?;
        side.ep.connect(self.address, self.port.into(), Some(self.timeout), &request.encode())?;
        // The event that tells of a time-out comes in time itself.
        match side.next_within(self.timeout + GRACE)? {
            Event::Connection { event: ConnectionEvent::Established, .. } => {}
            event => return Err(self.not_connected(&side.ep, &event)),
        }
        let offer = decode_offer(&side.ep.private_data()?)?;
        Ok((side, offer))
    }

    /// What to tell a person of an event that is no connection.
    pub fn not_connected(&self, ep: &Ep, event: &Event) -> anyhow::Error {
        let (address, port) = (self.address, self.port);
        let Event::Connection { event, .. } = event else {
            return anyhow!("expected the connection's event, got {event}");
        };
        match event {
            ConnectionEvent::PeerRejected => {
                let reason = ep.private_data().unwrap_or_default();
                let reason = String::from_utf8_lossy(&reason);
                anyhow!("the server at {address} refuses: {}", reason.trim_end_matches('\0'))
            }
            ConnectionEvent::NonPeerRejected => anyhow!(
                "nobody listens at {address} on port {port}: start 'kdapltest server' there"
            ),
            ConnectionEvent::TimedOut | ConnectionEvent::Unreachable => anyhow!(
                "{address} does not answer ({event}): check the address (ping {address}) and \
                 that its RDMA device is up ('kdapltest devices' there)"
            ),
            other => anyhow!("no connection to {address}: {other}"),
        }
    }
}

/// Disconnects and takes every event up to DISCONNECTED, which must come last.
pub fn disconnect(side: &mut Side) -> Result<()> {
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Endpoints of this program that are connected to each other.

use anyhow::{bail, ensure, Context, Result};
use libkdapl::{
    Buffer, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpAttr, Evd, EvdFlags,
    Event, Ia, Lmr, Privileges, Psp, Pz,
};
use std::net::IpAddr;
use std::time::Duration;

/// Maximum time to wait for an event.
pub const PATIENCE: Duration = Duration::from_secs(30);
const PORT: u64 = 7199;
/// Length of a message.
pub const BYTES: usize = 64;
/// Maximum number of sends in flight.
const WINDOW: u32 = 32;

/// An Interface Adapter, and all objects that endpoints need except the queue under test.
pub struct Ends {
    pub ia: Ia,
    pub address: IpAddr,
    pz: Pz,
    pub lmr: Lmr,
    _psp: Psp,
    pub requests: Evd,
    /// EVD for completions of sends.
    pub sent: Evd,
    /// EVD for the connection events of both sides.
    connected: Evd,
    /// EVD for the receives of the senders, which post none.
    unused: Evd,
}

/// Two connected endpoints: a sender and a receiver.
pub struct Pair {
    pub sender: Ep,
    pub receiver: Ep,
}

impl Ends {
    /// Opens the first device whose port is up.
    pub fn open() -> Result<Self> {
        let devices = libkdapl::devices()?;
        let device = devices.iter().find(|device| device.port_active).context("no RDMA device")?;
        let address = device.address.context("the RDMA device has no address")?;
        let ia = Ia::open(&device.name, 64)?;
        let pz = ia.create_pz()?;
        let lmr = ia.register(&pz, Buffer::new(2 * BYTES)?, Privileges::ALL)?;
        let requests = ia.create_evd(EvdFlags::CR, 16)?;
        let _psp = ia.create_psp(PORT, &requests)?;
        let sent = ia.create_evd(EvdFlags::DTO, 2 * WINDOW as i32)?;
        let connected = ia.create_evd(EvdFlags::CONNECTION, 2048)?;
        let unused = ia.create_evd(EvdFlags::DTO, 1)?;
        Ok(Self { ia, address, pz, lmr, _psp, requests, sent, connected, unused })
    }

    /// Creates an endpoint whose receives report to `recv`, and whose connection reports to
    /// `connection`.
    pub fn ep(&self, recv: &Evd, connection: &Evd, attr: EpAttr) -> Result<Ep> {
        Ok(self.ia.create_ep(&self.pz, recv, &self.sent, connection, Some(attr))?)
    }

    /// Creates an endpoint for connection tests.
    pub fn bare_ep(&self, connection: &Evd) -> Result<Ep> {
        self.ep(&self.unused, connection, queues(1, WINDOW))
    }

    /// Creates two connected endpoints. Messages for the receiver arrive on `recv`.
    pub fn pair(&self, recv: &Evd, receives: u32) -> Result<Pair> {
        self.pair_with(recv, receives, WINDOW)
    }

    /// As [`Ends::pair`], with this number of requests in flight.
    pub fn pair_with(&self, recv: &Evd, receives: u32, requests: u32) -> Result<Pair> {
        // Discard events from the end of earlier pairs.
        while self.connected.dequeue().is_ok() {}
        let sender = self.ep(&self.unused, &self.connected, queues(1, requests))?;
        let receiver = self.ep(recv, &self.connected, queues(receives, requests))?;
        self.connect(&sender)?;
        self.accept(&receiver)?;
        for _ in 0..2 {
            established(&self.connected.wait(Some(PATIENCE), 1)?.0)?;
        }
        Ok(Pair { sender, receiver })
    }

    /// Starts to connect to this program.
    pub fn connect(&self, ep: &Ep) -> Result<()> {
        Ok(ep.connect(self.address, PORT, Some(PATIENCE), &[])?)
    }

    /// Starts to connect to a port without a listener.
    pub fn connect_to_nobody(&self, ep: &Ep) -> Result<()> {
        Ok(ep.connect(self.address, PORT + 1, Some(PATIENCE), &[])?)
    }

    /// Accepts the pending request.
    pub fn accept(&self, ep: &Ep) -> Result<()> {
        answer(self.requests.wait(Some(PATIENCE), 1)?.0, ep)
    }

    /// Posts a receive.
    pub fn receive(&self, pair: &Pair, cookie: u64) -> Result<()> {
        let segment = [self.lmr.segment(BYTES, BYTES)];
        Ok(pair.receiver.post_recv(&segment, cookie, CompletionFlags::default())?)
    }

    /// Posts a send.
    pub fn send(&self, pair: &Pair) -> Result<()> {
        let segment = [self.lmr.segment(0, BYTES)];
        Ok(pair.sender.post_send(&segment, 0, CompletionFlags::default())?)
    }

    /// Waits until `count` sends have completed. Their messages are then in the receivers' queues.
    pub fn all_sent(&self, count: u32) -> Result<()> {
        (0..count).try_for_each(|_| {
            arrived(&self.sent.wait(Some(PATIENCE), 1)?.0, DtoOperation::Send).map(drop)
        })
    }

    /// Sends `count` messages, distributed over `pairs` in turn. All have arrived when it returns.
    pub fn send_all(&self, pairs: &[Pair], count: u32) -> Result<()> {
        let turn = |number: u32| &pairs[number as usize % pairs.len()];
        (0..count).try_for_each(|number| self.receive(turn(number), number.into()))?;
        for first in (0..count).step_by(WINDOW as usize) {
            let last = count.min(first + WINDOW);
            (first..last).try_for_each(|number| self.send(turn(number)))?;
            self.all_sent(last - first)?;
        }
        Ok(())
    }
}

/// Returns the attributes of an endpoint with so many receives and requests.
fn queues(receives: u32, requests: u32) -> EpAttr {
    EpAttr { max_recv_dtos: receives, max_request_dtos: requests, ..Default::default() }
}

/// Accepts a request.
pub fn answer(event: Event, ep: &Ep) -> Result<()> {
    match event {
        Event::ConnectionRequest { mut cr, .. } => Ok(cr.accept(ep, &[])?),
        other => bail!("{other} instead of a request"),
    }
}

pub fn established(event: &Event) -> Result<()> {
    let up = matches!(event, Event::Connection { event: ConnectionEvent::Established, .. });
    ensure!(up, "{event} instead of ESTABLISHED");
    Ok(())
}

/// Returns the cookie of a successful operation.
pub fn arrived(event: &Event, operation: DtoOperation) -> Result<u64> {
    match event {
        Event::Dto(dto) if dto.status == DtoStatus::Success && dto.operation == operation => {
            Ok(dto.cookie)
        }
        other => bail!("{other} instead of a {operation}"),
    }
}

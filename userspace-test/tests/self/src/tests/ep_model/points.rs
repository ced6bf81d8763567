// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The server's service points and their requests.

use super::act::{EpName, Point, POINTS};
use super::side::code;
use super::world::{attempt_of, World};
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, same};
use crate::rust::model::code::{order, Arg, DatError};
use crate::rust::model::ep::{step, Call, Configuration, Effects, Phase};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    ConnectionEvent, Cr, Csp, Ep, EpCreator, Error, Evd, EvdFlags, Event, Handle, Ia, Psp,
    PspOptions, Qos, Rsp,
};
use std::net::SocketAddr;
use std::time::Duration;

/// A bit that makes a qualifier wider than a port.
const WIDE_BIT: u64 = 1 << 44;

/// A request that waits for its answer.
struct PendingRequest {
    cr: Cr,
    attempt: u32,
    /// The reserved endpoint, or the endpoint that the provider created.
    ep: Option<Handle>,
}

/// A reserved service point and its endpoint.
struct Reserved {
    rsp: Rsp,
    who: EpName,
    called: bool,
}

/// All service points, each with the oldest of its requests.
pub struct ServicePoints {
    held: [Option<PendingRequest>; 5],
    reserved: Option<Reserved>,
    _public: [Psp; 3],
    _common: Csp,
    evds: [Evd; 5],
    ports: [u64; 5],
    /// Qualifier of the next RSP. The port of the last one may be freed a little later.
    next: u64,
    /// Two ends that are connected through [`Point::Copied`], after the first use.
    original: Option<[End; 2]>,
}

impl ServicePoints {
    /// Creates service points at these ports. The port of [`Point::Reserved`] has no listener. The
    /// ports after it are for the RSPs.
    pub fn new(context: &Context, ia: &Ia, ports: [u64; 5]) -> Result<Self> {
        let evd = || ia.create_evd(EvdFlags::CR, 128);
        let evds = [evd()?, evd()?, evd()?, evd()?, evd()?];
        let host = context.host_of(ia)?;
        let listen = |point: Point, endpoints| {
            let conn_qual = Some(ports[point as usize]);
            let options = PspOptions { conn_qual, endpoints, ..Default::default() };
            ia.create_psp_with(&evds[point as usize], &options)
        };
        let common = Point::Common as usize;
        let address = SocketAddr::new(host.address, ports[common] as u16);
        Ok(Self {
            held: [None, None, None, None, None],
            reserved: None,
            _public: [
                listen(Point::Public, EpCreator::Consumer)?,
                listen(Point::Copied, EpCreator::Consumer)?,
                listen(Point::Provider, EpCreator::Provider)?,
            ],
            _common: ia.create_csp(Some(address), &evds[common])?,
            evds,
            ports,
            next: ports[Point::Reserved as usize] + 1,
            original: None,
        })
    }

    /// Returns the connection for `dup_connect`.
    fn original(&mut self, context: &Context, client: &Ia, server: &Ia) -> Result<&Ep> {
        let index = Point::Copied as usize;
        if self.original.is_none() {
            let (address, patience) = (context.server_address(), Some(context.patience()));
            let ends = [End::new(client, Shape::default())?, End::new(server, Shape::default())?];
            ends[0].ep.connect(address, self.ports[index], patience, &[])?;
            // No other request can have arrived there, or been handed over.
            let Event::ConnectionRequest { mut cr, .. } = context.next(&self.evds[index])? else {
                bail!("expected a request");
            };
            cr.accept(&ends[1].ep, &[])?;
            for end in &ends {
                connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
            }
            self.original = Some(ends);
        }
        self.original.as_ref().map(|ends| &ends[0].ep).context("the connection was just made")
    }

    /// Returns the qualifier of a service point, whether it listens or not.
    pub fn port(&self, point: Point) -> u64 {
        self.ports[point as usize]
    }
}

impl World<'_> {
    /// Connects to a service point with the call for its kind.
    pub fn call(&mut self, point: Point, time: Duration, data: &[u8]) -> Result<Result<(), Error>> {
        let (address, port) = (self.context.server_address(), self.points.port(point));
        let (client, server) = (&self.client.end, &self.server.end);
        let time = Some(time);
        Ok(match point {
            Point::Public | Point::Provider | Point::Reserved => {
                client.ep.connect(address, port, time, data)
            }
            Point::Copied => {
                let original = self.points.original(self.context, &client.ia, &server.ia)?;
                client.ep.dup_connect(original, time, data, Qos::BestEffort)
            }
            Point::Common => {
                client.ep.common_connect(SocketAddr::new(address, port as u16), time, data)
            }
        })
    }

    /// Records a connect to the RSP. Returns whether there may be no listener.
    pub fn call_reserved(&mut self) -> bool {
        let Some(reserved) = &mut self.points.reserved else {
            return true;
        };
        let before = std::mem::replace(&mut reserved.called, true);
        let who = reserved.who;
        self.side(who).network.requested = true;
        before
    }

    /// Reserves an endpoint for an RSP. Frees the RSP of another endpoint.
    pub fn reserve(&mut self, who: EpName, wide: bool) -> Result<()> {
        if self.points.reserved.as_ref().is_some_and(|reserved| reserved.who != who) {
            self.free_rsp()?;
        }
        let port = self.points.next | if wide { WIDE_BIT } else { 0 };
        self.points.next += 1;
        let evd = self.points.evds[2].clone();
        let side = self.side(who);
        let outcome = side.end.ia.create_rsp(port, &evd, Some(&side.end.ep));
        let rsp = match outcome {
            Ok(rsp) => Some(rsp),
            Err(error) => {
                side.call(Call::Reserve, Err(error))?;
                None
            }
        };
        if let Some(rsp) = rsp {
            side.call(Call::Reserve, Ok(()))?;
            side.network.requested = false;
            // The RSP before has had its request.
            self.points.reserved = Some(Reserved { rsp, who, called: false });
            self.points.ports[2] = port;
        }
        Ok(())
    }

    /// Frees the RSP. Its endpoint is unconnected again if no request has arrived.
    pub fn free_rsp(&mut self) -> Result<()> {
        let Some(Reserved { rsp, who, .. }) = self.points.reserved.take() else {
            return Ok(());
        };
        let side = self.side(who);
        let outcome = rsp.free();
        side.answer("the free of an RSP", outcome, |phase| match phase {
            Phase::Reserved(_) => step(phase, Call::Release.into()),
            _ => Ok((phase, Effects::NONE)),
        })?;
        side.network.requested = false;
        self.client.network.turned |= self.attempt.to_reserved;
        Ok(())
    }

    /// Takes the oldest request, unless one is held. Waits for it for that time.
    pub fn fetch(&mut self, point: Point, wait: Duration) -> Result<()> {
        let index = point as usize;
        if self.points.held[index].is_some() {
            return Ok(());
        }
        let mut cr = match self.points.evds[index].wait(Some(wait), 1) {
            Ok((Event::ConnectionRequest { cr, .. }, _)) => cr,
            Ok((other, _)) => bail!("expected a request, got {other}"),
            Err(error) if error.is_timeout() || error.is_empty() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let query = cr.query()?;
        if point == Point::Provider && self.guest.is_free() {
            let Some(ep) = cr.provided_ep()? else {
                bail!("the request has no endpoint");
            };
            self.guest.take_over(ep, Phase::Tentative(Configuration::Incomplete));
        }
        if let (Point::Reserved, Some(who)) = (point, self.owner(query.local_ep)) {
            let side = self.side(who);
            side.possible_states.requested(side.network)?;
        }
        let attempt = attempt_of(&query.private_data)?;
        self.points.held[index] = Some(PendingRequest { cr, attempt, ep: query.local_ep });
        Ok(())
    }

    /// Returns the owner of an endpoint.
    fn owner(&self, ep: Option<Handle>) -> Option<EpName> {
        let sides = [(&self.server, EpName::Server), (&self.guest, EpName::Guest)];
        let found = sides.iter().find(|(side, _)| Some(side.end.ep.handle()) == ep);
        found.map(|(_, who)| *who)
    }

    /// Accepts the held request with an endpoint, which may be the wrong one.
    pub fn accept(&mut self, point: Point, who: EpName) -> Result<()> {
        self.fetch(point, Duration::ZERO)?;
        let Some(mut held) = self.points.held[point as usize].take() else {
            return Ok(());
        };
        let network = self.accepts(held.attempt);
        let side = self.side(who);
        let own = held.ep.map(|ep| ep == side.end.ep.handle());
        // The request names its own endpoint.
        let ep = (own != Some(true)).then_some(&side.end.ep);
        let outcome = held.cr.accept(ep, &[]);
        let accepted = side.answer("an accept", outcome, |phase| match (own, phase) {
            (Some(false), Phase::Freed) | (None, Phase::Passive(_) | Phase::Tentative(_)) => {
                Err(phase.invalid_state_error())
            }
            (Some(false), _) => Err(DatError::Invalid(Arg::Ep)),
            _ => step(phase, Call::Accept.into()),
        })?;
        if accepted {
            (side.attempt, side.ended) = (Some(held.attempt), false);
            side.network = network;
            self.client.network.accepted |= network.accepted;
        } else {
            self.points.held[point as usize] = Some(held);
        }
        Ok(())
    }

    /// Rejects the held request. Returns whether there was one.
    pub fn reject(&mut self, point: Point) -> Result<bool> {
        self.fetch(point, Duration::ZERO)?;
        let Some(mut held) = self.points.held[point as usize].take() else {
            return Ok(false);
        };
        held.cr.reject(b"no")?;
        if let Some(who) = self.owner(held.ep) {
            self.side(who).call(Call::Release, Ok(()))?;
        }
        self.client.network.rejected |= held.attempt == self.attempt.number;
        Ok(true)
    }

    /// Hands the held request of one service point over to another.
    pub fn hand_off(&mut self, from: Point, to: Point) -> Result<()> {
        self.fetch(from, Duration::ZERO)?;
        let Some(mut held) = self.points.held[from as usize].take() else {
            return Ok(());
        };
        if to == Point::Copied {
            // The first request at that point is the one of the connection for `dup_connect`.
            self.points.original(self.context, &self.client.end.ia, &self.server.end.ia)?;
        }
        let outcome = held.cr.handoff(self.points.port(to));
        // An RSP takes one request. A connect in progress may be that one.
        let (may, must) = match &self.points.reserved {
            _ if to != Point::Reserved => (true, true),
            Some(reserved) => (true, !reserved.called),
            None => (false, false),
        };
        match code(&outcome)? {
            0 => ensure!(may, "handed over to {to:?}, which has no listener"),
            refused => {
                ensure!(!must, "{refused:#x} of a handoff from {from:?} to {to:?}");
                let nobody = DatError::Invalid(Arg::ConnQual).code(order::dat_cr_handoff);
                same("code", refused, nobody)?;
                self.points.held[from as usize] = Some(held);
                return Ok(());
            }
        }
        // For the endpoint of the request this is the same as a reject.
        if let Some(who) = self.owner(held.ep) {
            self.side(who).call(Call::Release, Ok(()))?;
        }
        if to == Point::Reserved {
            self.call_reserved();
            // A connect in progress arrives too late.
            self.client.network.turned |= self.attempt.to_reserved;
        }
        self.seen.handed += 1;
        Ok(())
    }

    /// Rejects all requests that have arrived.
    pub fn reject_all(&mut self) -> Result<()> {
        for point in POINTS {
            while self.reject(point)? {}
        }
        Ok(())
    }
}

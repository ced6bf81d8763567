// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! An endpoint with its queues and memory, and a connected pair of them.

use crate::context::Context;
use crate::expect;
use crate::repeat::unheard;
use anyhow::Result;
use libkdapl::{
    Buffer, CompletionFlags, ConnectOptions, ConnectionEvent, Cr, Ep, EpAttr, Evd, EvdFlags, Event,
    Extensions, Ia, Lmr, Privileges, Psp, Pz, Segment,
};
use std::time::Duration;

/// Options of an [`End`].
#[derive(Clone, Copy)]
pub struct Shape {
    /// One EVD for all events.
    pub merged: bool,
    pub receives: u32,
    pub requests: u32,
    pub memory: usize,
    /// Time-out for a silent peer; 0 for the default.
    pub peer_timeout_ms: u32,
    /// Keepalive; 0 for the default, which is none.
    pub keepalive_ms: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            merged: false,
            receives: 16,
            requests: 16,
            memory: 64 << 10,
            peer_timeout_ms: 0,
            keepalive_ms: 0,
        }
    }
}

/// Returns all privileges that a region of this adapter may have.
pub fn every_privilege(ia: &Ia) -> Result<Privileges> {
    let has_atomics = ia.query()?.extensions.contains(Extensions::FETCH_AND_ADD);
    Ok(if has_atomics { Privileges::ALL | Privileges::REMOTE_ATOMIC } else { Privileges::ALL })
}

/// An endpoint with its queues, and memory that allows every operation.
pub struct End {
    pub ep: Ep,
    pub lmr: Lmr,
    pub recv: Evd,
    pub request: Evd,
    pub connect: Evd,
    pub pz: Pz,
    pub ia: Ia,
}

impl End {
    pub fn new(ia: &Ia, shape: Shape) -> Result<Self> {
        Self::in_zone(ia, ia.create_pz()?, shape)
    }

    /// As [`End::new`], in a zone that may have other endpoints.
    pub fn in_zone(ia: &Ia, pz: Pz, shape: Shape) -> Result<Self> {
        let (dtos, connection) = (EvdFlags::DTO, EvdFlags::CONNECTION);
        let (recv, request, connect) = if shape.merged {
            let qlen = (shape.receives + shape.requests + 4) as i32;
            let all = ia.create_evd(dtos | connection | EvdFlags::CR, qlen)?;
            (all.clone(), all.clone(), all)
        } else {
            (
                ia.create_evd(dtos, shape.receives as i32)?,
                ia.create_evd(dtos, shape.requests as i32)?,
                ia.create_evd(connection, 4)?,
            )
        };
        let attr = EpAttr {
            max_recv_dtos: shape.receives,
            max_request_dtos: shape.requests,
            peer_timeout_ms: shape.peer_timeout_ms,
            keepalive_ms: shape.keepalive_ms,
            ..Default::default()
        };
        let ep = ia.create_ep(&pz, &recv, &request, &connect, Some(attr))?;
        let lmr = ia.register(&pz, Buffer::new(shape.memory)?, every_privilege(ia)?)?;
        Ok(Self { ep, lmr, recv, request, connect, pz, ia: ia.clone() })
    }

    /// Creates another endpoint on the same queues.
    pub fn another_ep(&self) -> Result<Ep> {
        Ok(self.ia.create_ep(&self.pz, &self.recv, &self.request, &self.connect, None)?)
    }

    pub fn receive(&self, offset: usize, length: usize, cookie: u64) -> Result<()> {
        let segment = [self.lmr.segment(offset, length)];
        Ok(self.ep.post_recv(&segment, cookie, CompletionFlags::default())?)
    }

    pub fn send(&self, offset: usize, length: usize, cookie: u64) -> Result<()> {
        let segment = [self.lmr.segment(offset, length)];
        Ok(self.ep.post_send(&segment, cookie, CompletionFlags::default())?)
    }

    pub fn write(&self, offset: usize, length: usize, to: Segment, cookie: u64) -> Result<()> {
        let segment = [self.lmr.segment(offset, length)];
        Ok(self.ep.post_rdma_write(&segment, to, cookie, CompletionFlags::default())?)
    }

    pub fn read(&self, offset: usize, length: usize, from: Segment, cookie: u64) -> Result<()> {
        let segment = [self.lmr.segment(offset, length)];
        Ok(self.ep.post_rdma_read(&segment, from, cookie, CompletionFlags::default())?)
    }

    /// Fills the whole memory with random bytes, and returns them.
    pub fn scramble(&self, context: &Context) -> Vec<u8> {
        let mut bytes = vec![0; self.lmr.buffer().len()];
        context.rng().fill(&mut bytes);
        self.lmr.buffer().write(0, &bytes);
        bytes
    }
}

/// A listener and the EVD of its requests.
pub struct Listener {
    pub psp: Psp,
    pub evd: Evd,
    pub port: u64,
}

impl Listener {
    pub fn new(context: &Context, ia: &Ia) -> Result<Self> {
        Self::on(ia, context.port())
    }

    pub fn on(ia: &Ia, port: u64) -> Result<Self> {
        let evd = ia.create_evd(EvdFlags::CR, 128)?;
        let psp = ia.create_psp(port, &evd)?;
        Ok(Self { psp, evd, port })
    }

    /// Returns the next request. It must be for this listener.
    #[track_caller]
    pub fn request(&self, context: &Context) -> Result<Cr> {
        match context.next(&self.evd)? {
            Event::ConnectionRequest { cr, service_point, conn_qual, .. } => {
                expect::same("listener of the request", service_point, self.psp.handle())?;
                expect::same("qualifier of the request", conn_qual, self.port)?;
                Ok(cr)
            }
            event => unheard!("expected a connection request, got {event}"),
        }
    }
}

/// Sides of a pair whose ready gates are closed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gated {
    pub client: bool,
    pub server: bool,
}

/// Two connected ends, each with its own IA, one on each host.
pub struct Pair {
    pub client: End,
    pub server: End,
    pub listener: Listener,
}

impl Pair {
    pub fn new(context: &Context, shape: Shape) -> Result<Self> {
        let (client, server) = context.open_both()?;
        Self::between(context, &client, &server, shape)
    }

    /// Checks that the client's end of the connection is reported as `expected`, and the server's
    /// as DISCONNECTED or BROKEN: it may fail by itself, or learn of the client's end first.
    pub fn ends(&self, context: &Context, expected: ConnectionEvent) -> Result<()> {
        expect::ended(context, &context.next(&self.client.connect)?, expected)?;
        expect::connection_over(&context.next(&self.server.connect)?)
    }

    /// Connects two adapters, which may have other connections.
    pub fn between(context: &Context, client: &Ia, server: &Ia, shape: Shape) -> Result<Self> {
        let pair = Self::of(context, client, server, shape)?;
        pair.connect(context)?;
        Ok(pair)
    }

    /// Creates both ends, for a caller that changes and then [connects](Self::connect) them.
    pub fn unconnected(context: &Context, shape: Shape) -> Result<Self> {
        let (client, server) = context.open_both()?;
        Self::of(context, &client, &server, shape)
    }

    fn of(context: &Context, client: &Ia, server: &Ia, shape: Shape) -> Result<Self> {
        let listener = Listener::new(context, server)?;
        let client = End::new(client, shape)?;
        let server = End::new(server, shape)?;
        Ok(Self { client, server, listener })
    }

    pub fn connect(&self, context: &Context) -> Result<()> {
        self.connect_gated(context, Gated::default())
    }

    /// Starts to connect, with an open or a closed ready gate.
    pub fn request(&self, context: &Context, timeout: Duration, gated: bool) -> Result<()> {
        let options = ConnectOptions { timeout: Some(timeout), gated, ..Default::default() };
        let address = (context.server_address(), 0).into();
        Ok(self.client.ep.connect_with(address, self.listener.port, &options)?)
    }

    /// Connects with closed ready gates. Each side whose gate is open has got ESTABLISHED.
    pub fn connect_gated(&self, context: &Context, gated: Gated) -> Result<()> {
        self.request(context, context.patience(), gated.client)?;
        let mut cr = self.listener.request(context)?;
        if gated.server {
            cr.accept_gated(&self.server.ep, &[])?;
        } else {
            cr.accept(&self.server.ep, &[])?;
        }
        for (end, is_gated) in [(&self.client, gated.client), (&self.server, gated.server)] {
            if !is_gated {
                expect::connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
            }
        }
        Ok(())
    }
}

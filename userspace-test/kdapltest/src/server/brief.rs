// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Short connections, for the measurement of connection set-up. They use the server's own event
//! queue and thread. The connections of one client share memory.

use super::connection::Arrival;
use super::Served;
use crate::cli::CONNECTIONS_MAX;
use crate::connect::DTOS;
use crate::protocol::Request;
use anyhow::{bail, ensure, Context, Result};
use libkdapl::{
    Buffer, CompletionFlags, ConnectionEvent, Cr, DtoEvent, DtoOperation, DtoStatus, Ep, EpAttr,
    Evd, Event, Handle, Ia, Lmr, Privileges, Pz, Segment,
};
use std::collections::hash_map::{Entry, HashMap};
use std::time::{Duration, Instant};
use toolkit::stop::Stopped;

/// Maximum size of a message.
const MESSAGE_MAX: u32 = 4096;

/// Result of a client, and the number of its connections that have ended.
pub type Ended = (Served, u32);

/// All short connections.
#[derive(Default)]
pub struct Brief {
    /// Protection zone, created for the first connection.
    pz: Option<Pz>,
    open: HashMap<Handle, Connection>,
    runs: HashMap<u64, Run>,
}

struct Connection {
    ep: Ep,
    slot: u32,
    run: u64,
    /// Its message was received.
    received: bool,
}

/// Connections of one client, and their result.
struct Run {
    served: Served,
    open: u32,
    ended: u32,
    /// Time of the last event.
    last: Instant,
    message_size: u32,
    /// `None` if the connections transfer no data.
    lmr: Option<Lmr>,
    free_slots: Vec<u32>,
}

impl Brief {
    /// Accepts a request on a new endpoint, whose events arrive on `evd`.
    pub fn accept(&mut self, ia: &Ia, evd: &Evd, arrival: &mut Arrival) -> Result<()> {
        let Arrival { cr, request, served, .. } = arrival;
        let pz = match &mut self.pz {
            Some(pz) => pz,
            none => none.insert(ia.create_pz()?),
        };
        let run = match self.runs.entry(request.run) {
            Entry::Occupied(run) => run.into_mut(),
            Entry::Vacant(place) => place.insert(Run::new(ia, pz, request, served)?),
        };
        let slot = run.free_slots.pop().with_context(|| {
            format!("more than {CONNECTIONS_MAX} connections at a time: use a smaller --parallel")
        })?;
        match run.accept(ia, pz, evd, cr, slot) {
            Ok(ep) => {
                run.open += 1;
                run.last = Instant::now();
                let connection = Connection { ep, slot, run: request.run, received: false };
                self.open.insert(connection.ep.handle(), connection);
                Ok(())
            }
            Err(error) => {
                run.free_slots.push(slot);
                Err(error)
            }
        }
    }

    /// Handles an event. Returns the result of a client when its last connection has ended.
    pub fn event(&mut self, event: &Event) -> Option<Ended> {
        let handle = match event {
            Event::Connection { ep, .. } => *ep,
            Event::Dto(dto) => dto.ep,
            _ => return None,
        };
        // A client that dies leaves events of endpoints that were freed because their accept
        // failed.
        let connection = self.open.get_mut(&handle)?;
        let run = self.runs.get_mut(&connection.run)?;
        run.served.wakeups += 1;
        run.last = Instant::now();
        match event {
            Event::Connection { event: ConnectionEvent::Established, .. } => None,
            Event::Connection { event, .. } => {
                if let Some(error) = run.too_early(connection, *event) {
                    run.served.error = Some(error);
                }
                self.end(handle)
            }
            Event::Dto(dto) => {
                if let Err(error) = run.transferred(connection, dto) {
                    run.served.error = Some(format!("{error:#}"));
                }
                None
            }
            _ => None,
        }
    }

    /// Frees an endpoint. A client has ended with its last connection, or with its last open one
    /// after an error.
    fn end(&mut self, handle: Handle) -> Option<Ended> {
        let connection = self.open.remove(&handle)?;
        let run = self.runs.get_mut(&connection.run)?;
        if let Err(error) = connection.ep.free() {
            run.served.error = Some(format!("an endpoint cannot be freed: {error}"));
        }
        run.free_slots.push(connection.slot);
        run.open -= 1;
        run.ended += 1;
        let failed = run.served.error.is_some() && run.open == 0;
        if !failed && run.ended < run.served.connections {
            return None;
        }
        self.runs.remove(&connection.run).map(Run::into_ended)
    }

    /// Returns the results of clients that have had no connection for `patience`.
    pub fn lost(&mut self, patience: Duration) -> Vec<Ended> {
        let lost = |run: &Run| run.open == 0 && run.last.elapsed() > patience;
        let runs: Vec<u64> =
            self.runs.iter().filter(|(_, run)| lost(run)).map(|(id, _)| *id).collect();
        runs.iter().filter_map(|id| self.runs.remove(id)).map(Run::into_ended).collect()
    }

    /// Returns the results of all clients, when the server is to end.
    pub fn stopped(&mut self) -> Vec<Ended> {
        let stopped = |mut run: Run| {
            run.served.error = Some(Stopped.to_string());
            run.into_ended()
        };
        self.runs.drain().map(|(_, run)| stopped(run)).collect()
    }
}

impl Run {
    fn new(ia: &Ia, pz: &Pz, request: &Request, served: &Served) -> Result<Self> {
        let (size, slots) = (request.message_size, request.connections.min(CONNECTIONS_MAX));
        ensure!(
            size <= MESSAGE_MAX,
            "{size} bytes are more than {MESSAGE_MAX}: use a smaller --data"
        );
        let memory = (slots * size) as usize;
        let register = || ia.register(pz, Buffer::new(memory)?, Privileges::ALL);
        Ok(Self {
            served: served.clone(),
            open: 0,
            ended: 0,
            last: Instant::now(),
            message_size: size,
            lmr: if size > 0 { Some(register()?) } else { None },
            free_slots: (0..slots).rev().collect(),
        })
    }

    /// Returns the memory of the connection in `slot`.
    fn segment(&self, slot: u32, length: usize) -> Option<Segment> {
        Some(self.lmr.as_ref()?.segment((slot * self.message_size) as usize, length))
    }

    fn accept(&self, ia: &Ia, pz: &Pz, evd: &Evd, cr: &mut Cr, slot: u32) -> Result<Ep> {
        let attr = EpAttr { max_recv_dtos: DTOS, max_request_dtos: DTOS, ..Default::default() };
        let ep = ia.create_ep(pz, evd, evd, evd, Some(attr))?;
        if let Some(segment) = self.segment(slot, self.message_size as usize) {
            ep.post_recv(&[segment], 0, CompletionFlags::default())?;
        }
        cr.accept(&ep, &[])?;
        Ok(ep)
    }

    /// Returns the error of a connection whose end was not expected.
    fn too_early(&self, on: &Connection, end: ConnectionEvent) -> Option<String> {
        let client = &self.served.client;
        if end != ConnectionEvent::Disconnected {
            return Some(format!("lost the client at {client}: a connection ended with {end}"));
        }
        let early = self.message_size > 0 && !on.received;
        early.then(|| format!("lost the client at {client}: a connection ended without a message"))
    }

    /// Returns the result. It is an error if connections are missing.
    fn into_ended(self) -> Ended {
        let Self { mut served, ended, .. } = self;
        if ended < served.connections {
            let first = served.error.take().unwrap_or_else(|| {
                format!("lost the client at {}: it was killed or stopped", served.client)
            });
            let of = served.connections;
            served.error = Some(format!("{first}; {ended} of {of} connections were made"));
        }
        (served, ended)
    }

    /// Handles a completion: sends a received message back from its buffer.
    fn transferred(&mut self, on: &mut Connection, dto: &DtoEvent) -> Result<()> {
        match (dto.operation, dto.status) {
            (_, DtoStatus::Flushed) | (DtoOperation::Send, DtoStatus::Success) => Ok(()),
            (DtoOperation::Receive, DtoStatus::Success) => {
                on.received = true;
                self.served.messages += 1;
                self.served.bytes += dto.length;
                let segment = self.segment(on.slot, dto.length as usize);
                let segment = segment.context("unexpected message")?;
                Ok(on.ep.post_send(&[segment], 0, CompletionFlags::default())?)
            }
            (operation, status) => bail!("{operation} ended with {status}"),
        }
    }
}

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

/// Maximum size of a message.
const MESSAGE_MAX: u32 = 4096;

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
}

/// Connections of one client, and their result.
struct Run {
    served: Served,
    ended: u32,
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
        let slot = run.free_slots.pop().context("too many short connections at a time")?;
        match run.accept(ia, pz, evd, cr, slot) {
            Ok(ep) => {
                self.open.insert(ep.handle(), Connection { ep, slot, run: request.run });
                Ok(())
            }
            Err(error) => {
                run.free_slots.push(slot);
                Err(error)
            }
        }
    }

    /// Handles an event. Returns the result of a client when its last connection has ended.
    pub fn event(&mut self, event: &Event) -> Result<Option<Served>> {
        let handle = match event {
            Event::Connection { ep, .. } => *ep,
            Event::Dto(dto) => dto.ep,
            other => bail!("unexpected event: {other}"),
        };
        let Some(connection) = self.open.get(&handle) else {
            bail!("event of a freed endpoint: {event}");
        };
        let run = self.runs.get_mut(&connection.run).context("a connection without a client")?;
        run.served.wakeups += 1;
        match event {
            Event::Connection { event: ConnectionEvent::Established, .. } => Ok(None),
            Event::Connection { event, .. } => {
                if *event != ConnectionEvent::Disconnected {
                    run.served.error = Some(format!("a connection ended with {event}"));
                }
                self.end(handle)
            }
            Event::Dto(dto) => {
                if let Err(error) = run.transferred(connection, dto) {
                    run.served.error = Some(format!("{error:#}"));
                }
                Ok(None)
            }
            other => bail!("unexpected event: {other}"),
        }
    }

    fn end(&mut self, handle: Handle) -> Result<Option<Served>> {
        let Some(connection) = self.open.remove(&handle) else { return Ok(None) };
        connection.ep.free()?;
        let Some(run) = self.runs.get_mut(&connection.run) else { return Ok(None) };
        run.free_slots.push(connection.slot);
        run.ended += 1;
        if run.ended < run.served.connections {
            return Ok(None);
        }
        Ok(self.runs.remove(&connection.run).map(|run| run.served))
    }
}

impl Run {
    fn new(ia: &Ia, pz: &Pz, request: &Request, served: &Served) -> Result<Self> {
        let (size, slots) = (request.message_size, request.connections.min(CONNECTIONS_MAX));
        ensure!(size <= MESSAGE_MAX, "{size} bytes exceed the maximum of {MESSAGE_MAX}");
        let memory = (slots * size) as usize;
        let register = || ia.register(pz, Buffer::new(memory)?, Privileges::ALL);
        Ok(Self {
            served: served.clone(),
            ended: 0,
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

    /// Handles a completion: sends a received message back from its buffer.
    fn transferred(&mut self, on: &Connection, dto: &DtoEvent) -> Result<()> {
        match (dto.operation, dto.status) {
            (_, DtoStatus::Flushed) | (DtoOperation::Send, DtoStatus::Success) => Ok(()),
            (DtoOperation::Receive, DtoStatus::Success) => {
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

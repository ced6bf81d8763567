// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Short connections, whose making is what counts: all on the server's own event queue and
//! looked after by its own thread; those of one client share memory.

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

/// The largest message.
const MESSAGE_MAX: u32 = 4096;

/// All of them.
#[derive(Default)]
pub struct Brief {
    /// Made for the first of them.
    pz: Option<Pz>,
    open: HashMap<Handle, Connection>,
    runs: HashMap<u64, Run>,
}

struct Connection {
    ep: Ep,
    slot: u32,
    run: u64,
}

/// The connections of one client, and what they came to.
struct Run {
    served: Served,
    ended: u32,
    message_size: u32,
    /// None if there is no message.
    lmr: Option<Lmr>,
    free_slots: Vec<u32>,
}

impl Brief {
    /// Accepts on a new endpoint, whose events come on `evd`.
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
        let slot = run.free_slots.pop().context("too many short connections at once")?;
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

    /// Takes an event; returns what a client's connections came to when the last has ended.
    pub fn event(&mut self, event: &Event) -> Result<Option<Served>> {
        let handle = match event {
            Event::Connection { ep, .. } => *ep,
            Event::Dto(dto) => dto.ep,
            other => bail!("not expected while serving: {other}"),
        };
        let Some(connection) = self.open.get(&handle) else {
            bail!("an event came of an endpoint that was freed: {event}");
        };
        let run = self.runs.get_mut(&connection.run).context("a connection of no client")?;
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
            other => bail!("not expected while serving: {other}"),
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
        ensure!(size <= MESSAGE_MAX, "{size} bytes are more than {MESSAGE_MAX}");
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

    /// The memory of the connection in `slot`.
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

    /// Sends a message back from where it is.
    fn transferred(&mut self, on: &Connection, dto: &DtoEvent) -> Result<()> {
        match (dto.operation, dto.status) {
            (_, DtoStatus::Flushed) | (DtoOperation::Send, DtoStatus::Success) => Ok(()),
            (DtoOperation::Receive, DtoStatus::Success) => {
                self.served.messages += 1;
                self.served.bytes += dto.length;
                let segment = self.segment(on.slot, dto.length as usize);
                let segment = segment.context("a message came where none was announced")?;
                Ok(on.ep.post_send(&[segment], 0, CompletionFlags::default())?)
            }
            (operation, status) => bail!("{operation} ended with {status}"),
        }
    }
}

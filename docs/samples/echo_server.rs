// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Echoes messages of many connections in one thread:
//! `kdapl-echo-server DEVICE PORT COUNT ring|waits`.
//!
//! With `ring`, one io_uring has all calls: a stream of events, and a command for each post and
//! accept. Commands are submitted together when all events were handled. With `waits`, the thread
//! waits on the EVD and makes each call by itself. The server ends after COUNT connections.

use libkdapl::uring::{Outcome, Ring};
use libkdapl::{
    Buffer, ConnectionEvent, Cr, Dto, DtoEvent, DtoOperation, DtoStatus, Ep, EpAttr, EpConfig, Evd,
    EvdFlags, Event, Handle, Ia, Lmr, Privileges, Pz,
};
use std::collections::HashMap;
use std::error::Error;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Bytes of a message.
const SIZE: usize = 64;
/// Events that are handled together.
const BATCH: usize = 128;
/// Tags of the commands.
const STREAM: u64 = 0;
const CALL: u64 = 1;

/// How calls are made, and events taken.
enum Way {
    Ring(Box<Ring>),
    Waits,
}

impl Way {
    fn post(&mut self, ep: &Ep, dtos: &[Dto<'_>]) -> Result<()> {
        match self {
            Self::Ring(ring) => ring.post(ep, dtos, CALL)?,
            Self::Waits => drop(ep.submit(dtos, None).event?),
        }
        Ok(())
    }

    fn accept(&mut self, mut cr: Cr, ep: &Ep) -> Result<()> {
        match self {
            Self::Ring(ring) => ring.accept(cr, ep, b"", CALL)?,
            Self::Waits => cr.accept(ep, b"")?,
        }
        Ok(())
    }

    /// Returns the next events, in their order. They may be none.
    fn events(&mut self, evd: &Evd) -> Result<Vec<Event>> {
        let Self::Ring(ring) = self else {
            return Ok(evd.wait_many(None, 1, BATCH)?.0);
        };
        let completion = ring.wait()?;
        let outcome = match completion.result {
            // All buffers were filled: the events stay in the EVD, and another stream takes them.
            Err(error) if error.errno() == Some(libc::ENOBUFS) => Outcome::Done,
            result => result?,
        };
        if completion.tag == STREAM && !completion.more {
            ring.stream(evd, 1, STREAM)?;
        }
        match outcome {
            Outcome::Events(events) => Ok(events),
            _ => Ok(Vec::new()),
        }
    }
}

struct Server {
    ia: Ia,
    pz: Pz,
    evd: Evd,
    /// Two messages for each connection.
    memory: Lmr,
    connections: Vec<Option<Ep>>,
    places: HashMap<Handle, usize>,
    ended: usize,
    echoed: u64,
}

impl Server {
    fn new(device: &str, count: usize) -> Result<Self> {
        let ia = Ia::open(device, 8)?;
        let pz = ia.create_pz()?;
        let qlen = i32::try_from(count * 4)?;
        let evd = ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION | EvdFlags::CR, qlen)?;
        let memory = ia.register(&pz, Buffer::new(count * 2 * SIZE)?, Privileges::ALL)?;
        let (connections, places) = (Vec::new(), HashMap::new());
        Ok(Self {
            ia,
            pz,
            evd,
            memory,
            connections,
            places,
            ended: 0,
            echoed: 0,
        })
    }

    /// Accepts a connection, with a receive for its first message.
    fn request(&mut self, way: &mut Way, cr: Cr) -> Result<()> {
        let (place, evd) = (self.connections.len(), Some(&self.evd));
        let attr = EpAttr {
            max_recv_dtos: 2,
            max_request_dtos: 4,
            ..Default::default()
        };
        let ep = self.ia.create_ep_with(&EpConfig {
            pz: Some(&self.pz),
            recv: evd,
            request: evd,
            connect: evd,
            attr: Some(attr),
            ..Default::default()
        })?;
        let cookie = 2 * place;
        let first = [self.memory.segment(cookie * SIZE, SIZE)];
        way.post(&ep, &[Dto::recv(&first, cookie as u64, Default::default())])?;
        way.accept(cr, &ep)?;
        self.places.insert(ep.handle(), place);
        self.connections.push(Some(ep));
        Ok(())
    }

    /// Sends a message back, and receives the next one into the other half of the memory.
    fn received(&mut self, way: &mut Way, message: &DtoEvent) -> Result<()> {
        let full = usize::try_from(message.cookie)?;
        let ep = self.connections[full / 2]
            .as_ref()
            .ok_or("a message after the end")?;
        let empty = full ^ 1;
        let next = [self.memory.segment(empty * SIZE, SIZE)];
        let echo = [self
            .memory
            .segment(full * SIZE, usize::try_from(message.length)?)];
        let none = Default::default();
        self.echoed += 1;
        way.post(
            ep,
            &[
                Dto::recv(&next, empty as u64, none),
                Dto::send(&echo, full as u64, none),
            ],
        )
    }

    fn handle(&mut self, way: &mut Way, event: Event) -> Result<()> {
        match event {
            Event::ConnectionRequest { cr, .. } => self.request(way, cr),
            Event::Dto(dto) if dto.status == DtoStatus::Success => match dto.operation {
                DtoOperation::Receive => self.received(way, &dto),
                _ => Ok(()),
            },
            Event::Connection { ep, event, .. } if event != ConnectionEvent::Established => {
                let place = self.places.remove(&ep).ok_or("an unknown endpoint")?;
                self.connections[place] = None;
                self.ended += 1;
                Ok(())
            }
            // A connection is established, or its receive is flushed.
            _ => Ok(()),
        }
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [device, port, count, way] = &arguments[..] else {
        return Err("usage: kdapl-echo-server DEVICE PORT COUNT ring|waits".into());
    };
    let count: usize = count.parse()?;
    let mut server = Server::new(device, count)?;
    let mut way = match way.as_str() {
        "waits" => Way::Waits,
        _ => {
            let mut ring = Ring::new(1024)?;
            ring.provide_buffers(32, BATCH)?;
            ring.stream(&server.evd, 1, STREAM)?;
            Way::Ring(Box::new(ring))
        }
    };
    let _psp = server.ia.create_psp(port.parse()?, &server.evd)?;
    println!("listening");
    while server.ended < count {
        for event in way.events(&server.evd)? {
            server.handle(&mut way, event)?;
        }
    }
    println!("{count} connections, {} messages", server.echoed);
    Ok(())
}

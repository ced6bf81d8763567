// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A controller in this process: it speaks NVMe/RDMA over kDAPL, as far as a host needs it for a
//! disk that it reads. A test chooses the commands that it treats in another way.

use super::fake_data::{identify, property, CNTLID};
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, kind};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    CompletionFlags, ConnectionEvent, Cr, DtoOperation, DtoStatus, Evd, Event, EventKind, Ia,
    Segment, Type,
};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, Scope};
use std::time::Duration;

/// Opcodes.
pub(super) const READ: u8 = 0x02;
pub(super) const WRITE: u8 = 0x01;
pub(super) const SET_FEATURES: u8 = 0x09;
pub(super) const ASYNC_EVENT: u8 = 0x0c;
const FLUSH: u8 = 0x00;
const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const KEEP_ALIVE: u8 = 0x18;
pub(super) const FABRICS: u8 = 0x7f;

/// Status of a command that the controller does not have.
const INVALID_OPCODE: u16 = 0x4001;

/// Largest number of receives of a queue. Each has a slot for the command, its data, and its
/// response.
pub(super) const RECEIVES: usize = 33;

/// Bytes of the data of a command.
const DATA_SIZE: usize = 8192;

/// Places in the memory of a queue. The last response is that of a test.
const RESPONSES: usize = 4096;
const DATA: usize = 8192;

/// Time after which a waiting thread looks whether the test has ended.
const TICK: Duration = Duration::from_millis(50);

/// Byte of each block of the disk.
pub(super) const CONTENT: u8 = 0x59;

/// Returns the private data that accept a queue: the format, and its number of receives.
pub(super) fn reply(receives: u8) -> [u8; 32] {
    let mut reply = [0; 32];
    reply[2] = receives;
    reply
}

/// Returns the response for the command with an identifier.
pub(super) fn response(id: u16, status: u16, result: u64) -> [u8; 16] {
    let mut response = [0; 16];
    response[..8].copy_from_slice(&result.to_le_bytes());
    response[12..14].copy_from_slice(&id.to_le_bytes());
    response[14..].copy_from_slice(&(status << 1).to_le_bytes());
    response
}

/// Command of a host.
pub(super) struct Command {
    bytes: [u8; 64],
    slot: usize,
}

impl Command {
    pub(super) fn opcode(&self) -> u8 {
        self.bytes[0]
    }

    pub(super) fn id(&self) -> u16 {
        u16::from_le_bytes([self.bytes[2], self.bytes[3]])
    }

    /// Returns a number of the command, which begins at a byte.
    pub(super) fn number(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("4 bytes"))
    }

    /// Returns the host's memory, of no bytes if the command has no data.
    pub(super) fn memory(&self) -> Segment {
        Segment {
            address: u64::from_le_bytes(self.bytes[24..32].try_into().expect("8 bytes")),
            length: self.number(32) & 0xff_ffff,
            context: self.number(35),
        }
    }
}

/// Connected queue.
pub(super) struct Queue {
    /// Number of the queue; 0 is the admin queue.
    pub(super) number: u16,
    pub(super) end: End,
    /// Value of the property CC.
    settings: Cell<u32>,
}

/// What the controller does with a command.
#[derive(PartialEq, Eq)]
pub(super) enum Reaction {
    /// It carries the command out.
    Usual,
    /// Nothing more than the test has done.
    Done,
}

/// Treatment of commands by a test.
pub(super) type Hook<'a> = &'a (dyn Fn(&Context, &Queue, &Command) -> Result<Reaction> + Sync);

impl Queue {
    /// Accepts a queue that has room for so many commands at a time.
    fn accept(context: &Context, ia: &Ia, mut cr: Cr, receives: usize) -> Result<Self> {
        let shape = Shape {
            merged: true,
            receives: RECEIVES as u32,
            requests: 2 * RECEIVES as u32,
            memory: DATA + RECEIVES * DATA_SIZE,
            ..Default::default()
        };
        let data = cr.query()?.private_data;
        ensure!(data.len() >= 4, "the request has {data:?} only");
        let number = u16::from_le_bytes([data[2], data[3]]);
        let queue = Self { number, end: End::new(ia, shape)?, settings: Cell::new(0) };
        (0..receives).try_for_each(|slot| queue.receive(slot))?;
        cr.accept(&queue.end.ep, &reply(RECEIVES as u8))?;
        connection(&context.next(&queue.end.connect)?, ConnectionEvent::Established)?;
        Ok(queue)
    }

    fn receive(&self, slot: usize) -> Result<()> {
        self.end.receive(64 * slot, 64, slot as u64)
    }

    /// Sends a response from a slot. The cookie of the send is the command's identifier.
    pub(super) fn respond(&self, slot: usize, id: u16, status: u16, result: u64) -> Result<()> {
        let response = response(id, status, result);
        let place = RESPONSES + 16 * slot;
        self.end.lmr.buffer().write(place, &response);
        self.end.send(place, response.len(), id.into())
    }

    /// Writes bytes to the host's memory.
    pub(super) fn fill(&self, slot: usize, bytes: &[u8], to: Segment) -> Result<()> {
        let place = DATA + DATA_SIZE * slot;
        let bytes = bytes.get(..to.length as usize).unwrap_or(bytes);
        self.end.lmr.buffer().write(place, bytes);
        let segment = [self.end.lmr.segment(place, bytes.len())];
        Ok(self.end.ep.post_rdma_write(&segment, to, 0, CompletionFlags::default())?)
    }

    /// Writes bytes to the host's memory from the slot of a command, and returns the status of the
    /// write. Other events are lost.
    pub(super) fn try_fill(
        &self,
        context: &Context,
        command: &Command,
        bytes: &[u8],
        to: Segment,
    ) -> Result<DtoStatus> {
        match self.fill(command.slot, bytes, to) {
            Err(error) if kind(&error) == Some(Type::INVALID_STATE) => {
                return Ok(DtoStatus::Flushed)
            }
            posted => posted?,
        }
        loop {
            match context.next(&self.end.recv)? {
                Event::Dto(dto) if dto.operation == DtoOperation::RdmaWrite => {
                    return Ok(dto.status)
                }
                _ => {}
            }
        }
    }

    /// Carries a command out.
    pub(super) fn carry_out(&self, command: &Command) -> Result<()> {
        let (slot, id, memory) = (command.slot, command.id(), command.memory());
        ensure!(memory.length as usize <= DATA_SIZE, "{} bytes of data", memory.length);
        let mut result = 0;
        match (self.number, command.opcode()) {
            (_, FABRICS) => result = self.fabrics(command),
            (0, IDENTIFY) => {
                let Some(data) = identify(command.bytes[40], command.number(4)) else {
                    return self.respond(slot, id, INVALID_OPCODE + 1, 0);
                };
                self.fill(slot, &data, memory)?;
            }
            (0, GET_LOG_PAGE) => self.fill(slot, &[0; DATA_SIZE], memory)?,
            (0, SET_FEATURES | KEEP_ALIVE) => {}
            // It is answered when there is an event.
            (0, ASYNC_EVENT) => return Ok(()),
            (1.., READ) => self.fill(slot, &[CONTENT; DATA_SIZE], memory)?,
            (1.., WRITE | FLUSH) => {}
            _ => return self.respond(slot, id, INVALID_OPCODE, 0),
        }
        self.respond(slot, id, 0, result)
    }

    /// Carries a command of Fabrics out, and returns its result.
    fn fabrics(&self, command: &Command) -> u64 {
        const PROPERTY_SET: u8 = 0;
        const CONNECT: u8 = 1;
        match command.bytes[4] {
            PROPERTY_SET => {
                self.settings.set(command.number(48));
                0
            }
            CONNECT => CNTLID.into(),
            _ => property(command.number(44), self.settings.get()),
        }
    }

    /// Handles a command that has arrived in a slot.
    fn handle(&self, context: &Context, slot: usize, hook: Hook<'_>) -> Result<()> {
        let bytes = self.end.lmr.buffer().to_vec(64 * slot, 64);
        let command = Command { bytes: bytes.try_into().expect("64 bytes"), slot };
        if hook(context, self, &command)? == Reaction::Usual {
            self.carry_out(&command)?;
        }
        self.receive(slot)
    }

    /// Handles commands until the connection or the test has ended.
    fn serve(&self, context: &Context, stop: &AtomicBool, hook: Hook<'_>) -> Result<()> {
        while let Some(event) = next(&self.end.recv, stop)? {
            let handled = match event {
                Event::Dto(dto) if dto.status != DtoStatus::Success => Ok(()),
                Event::Dto(dto) if dto.operation == DtoOperation::Receive => {
                    self.handle(context, dto.cookie as usize, hook)
                }
                event if matches!(event.kind(), EventKind::Connection(_)) => return Ok(()),
                _ => Ok(()),
            };
            match handled {
                // The connection has ended, which another event reports.
                Err(error) if kind(&error) == Some(Type::INVALID_STATE) => return Ok(()),
                handled => handled.with_context(|| format!("in queue {}", self.number))?,
            }
        }
        Ok(())
    }
}

/// Returns the next event, or `None` if the test has ended.
fn next(evd: &Evd, stop: &AtomicBool) -> Result<Option<Event>> {
    while !stop.load(SeqCst) {
        match evd.wait(Some(TICK), 1) {
            Ok((event, _)) => return Ok(Some(event)),
            Err(error) if error.is_timeout() || error.is_interrupted() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Controller, while a test runs.
struct Fake<'a> {
    ia: Ia,
    listener: Listener,
    stop: AtomicBool,
    /// Number of receives of the admin queue.
    receives: usize,
    hook: Hook<'a>,
}

impl Fake<'_> {
    /// Accepts queues, each of which has a thread, until the test has ended.
    fn listen<'s>(&'s self, context: &Context, scope: &'s Scope<'s, '_>) -> Result<()> {
        let mut queues = Vec::new();
        while let Some(event) = next(&self.listener.evd, &self.stop)? {
            let Event::ConnectionRequest { cr, .. } = event else { continue };
            let copy = context.new_for_thread();
            let queue = Queue::accept(context, &self.ia, cr, self.receives)?;
            queues.push(scope.spawn(move || queue.serve(&copy, &self.stop, self.hook)));
        }
        queues.into_iter().try_for_each(|queue| queue.join().expect("no panic"))
    }
}

/// Serves a controller, which has room for so many commands of a queue at a time, while a test
/// runs, which gets its port.
pub(super) fn serve<R>(
    context: &Context,
    receives: usize,
    hook: Hook<'_>,
    test: impl FnOnce(u64) -> Result<R>,
) -> Result<R> {
    let ia = context.open_server()?;
    let listener = Listener::new(context, &ia)?;
    let fake = Fake { ia, listener, stop: AtomicBool::new(false), receives, hook };
    let copy = context.new_for_thread();
    thread::scope(|scope| {
        let fake = &fake;
        let served = scope.spawn(move || fake.listen(&copy, scope));
        let outcome = test(fake.listener.port);
        fake.stop.store(true, SeqCst);
        let served = served.join().expect("the thread does not panic");
        served.with_context(|| format!("the test: {:?}", outcome.as_ref().err()))?;
        outcome
    })
}

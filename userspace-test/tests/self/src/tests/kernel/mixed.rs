// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connections between a consumer in the kernel and a process, in both directions.
//! `userspace-test/tests/kernel/mixed.c` and `mixed_killed.c` are the consumer.

use super::super::tests;
use super::{device, load_tests, run_with, Loaded};
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, done, dto, empty, same};
use crate::harness::skip;
use crate::peer::{Part, Peer, Step};
use crate::threads::Worker;
use anyhow::Result;
use libkdapl::{Close, ConnectOptions, ConnectionEvent, DtoOperation, DtoStatus, EpState, Segment};

tests! {
    kernel_accepts, 60, "A process connects to a consumer in the kernel, both access memory of the other, and the process disconnects";
    kernel_connects, 60, "A consumer in the kernel connects to a process, both access memory of the other, and the kernel disconnects";
    kernel_accepts_gated, 60, "A consumer in the kernel accepts a process with a closed gate, and gets its messages once it is ready";
    kernel_connects_gated, 60, "A consumer in the kernel connects to a process with a closed gate, and gets its messages once it is ready";
    process_connects_gated, 60, "A process connects to a consumer in the kernel with a closed gate, and gets its messages once it is ready";
    process_accepts_gated, 60, "A process accepts a consumer in the kernel with a closed gate, and gets its messages once it is ready";
    unbound_memory, 60, "A process cannot write to memory of a consumer in the kernel that is not bound any more";
    client_killed, 120, "When a process that has connected to a consumer in the kernel is killed under traffic, each DTO there completes once";
    server_killed, 120, "When a process that has accepted a consumer in the kernel is killed under traffic, each DTO there completes once";
}

const LENGTH: usize = 64;
const MESSAGES: u64 = 3;
const RECEIVES: u64 = 8;
/// Offset of the memory that the consumer in the kernel accesses.
const OPEN: usize = 32 << 10;

/// An EVD for each kind of event: a send may complete after the answer to it has come.
const SEPARATE: Shape = Shape {
    merged: false,
    receives: RECEIVES as u32,
    requests: 16,
    memory: 64 << 10,
    peer_timeout_ms: 0,
    keepalive_ms: 0,
};

/// How the process takes part.
#[derive(Clone, Copy, Default)]
struct Session {
    name: &'static str,
    /// The process accepts.
    accepts: bool,
    /// The process closes its ready gate, and the consumer in the kernel sends first.
    gated: bool,
    /// The process disconnects.
    ends: bool,
    /// The process writes to memory that is not bound any more.
    unbound: bool,
}

/// Offset of the memory of a receive.
fn place(number: u64) -> usize {
    8192 + number as usize * LENGTH
}

/// The process's side.
struct Process<'a> {
    context: &'a Context,
    end: End,
}

impl Process<'_> {
    fn bytes(&self, offset: usize) -> Vec<u8> {
        self.end.lmr.buffer().to_vec(offset, LENGTH)
    }

    fn connect(&self, session: Session, port: u64, listener: Option<&Listener>) -> Result<()> {
        let (context, gated) = (self.context, session.gated);
        let Some(listener) = listener else {
            let timeout = Some(context.patience());
            let options = ConnectOptions { timeout, gated, ..Default::default() };
            let address = (context.server_address(), 0).into();
            return Ok(self.end.ep.connect_with(address, port, &options)?);
        };
        let mut cr = listener.request(context)?;
        match gated {
            true => cr.accept_gated(&self.end.ep, &[])?,
            false => cr.accept(&self.end.ep, &[])?,
        }
        Ok(())
    }

    fn established(&self) -> Result<()> {
        connection(&self.context.next(&self.end.connect)?, ConnectionEvent::Established)
    }

    fn say(&self, bytes: &[u8]) -> Result<()> {
        self.end.lmr.buffer().write(0, bytes);
        self.end.send(0, LENGTH, 50)?;
        done(&self.context.next(&self.end.request)?, DtoOperation::Send, LENGTH as u64, 50)
    }

    fn say_all(&self) -> Result<()> {
        (0..MESSAGES).try_for_each(|number| self.say(&[number as u8 + 1; LENGTH]))
    }

    /// Takes a message, whose receive is the `number`th.
    fn hear(&self, number: u64) -> Result<Vec<u8>> {
        let event = self.context.next(&self.end.recv)?;
        done(&event, DtoOperation::Receive, LENGTH as u64, number)?;
        Ok(self.bytes(place(number)))
    }

    /// The first messages. With a closed gate they arrive before ESTABLISHED is reported.
    fn hear_all(&self, session: Session) -> Result<()> {
        if session.gated {
            let last = || Ok(self.bytes(place(MESSAGES - 1)) == [b'C'; LENGTH]);
            self.context.until("the last message is there", last)?;
            self.context.quiet(&self.end.connect)?;
            self.context.quiet(&self.end.recv)?;
            let pending = match session.accepts {
                true => EpState::CompletionPending,
                false => EpState::ActiveConnectionPending,
            };
            same("state", self.end.ep.status()?.state, pending)?;
            self.end.ep.ready()?;
            self.established()?;
        }
        for number in 0..MESSAGES {
            same("message", self.hear(number)?, vec![b'A' + number as u8; LENGTH])?;
        }
        Ok(())
    }

    /// Writes to memory of the consumer in the kernel, and reads it back.
    fn use_theirs(&self, theirs: Segment) -> Result<()> {
        let (context, end) = (self.context, &self.end);
        end.lmr.buffer().write(256, &[0x77; LENGTH]);
        end.write(256, LENGTH, theirs, 60)?;
        done(&context.next(&end.request)?, DtoOperation::RdmaWrite, LENGTH as u64, 60)?;
        end.read(512, LENGTH, theirs, 61)?;
        done(&context.next(&end.request)?, DtoOperation::RdmaRead, LENGTH as u64, 61)?;
        same("read back", self.bytes(512), vec![0x77; LENGTH])
    }

    /// Accesses memory of the consumer in the kernel, which does the same. Returns that memory.
    fn use_memory(&self) -> Result<Segment> {
        let theirs = decode(&self.hear(MESSAGES)?);
        let theirs = Segment { length: LENGTH as u32, ..theirs };
        self.use_theirs(theirs)?;
        let mine = self.end.lmr.remote_segment(OPEN, LENGTH);
        let mut message = mine.address.to_le_bytes().to_vec();
        message.extend(mine.length.to_le_bytes());
        message.extend(mine.context.to_le_bytes());
        message.resize(LENGTH, 0);
        self.say(&message)?;
        same("last message", self.hear(MESSAGES + 1)?, vec![b'D'; LENGTH])?;
        same("memory", self.bytes(OPEN), vec![0x66; LENGTH])?;
        Ok(theirs)
    }

    /// The peer refuses a write, which ends the connection.
    fn is_refused(&self, theirs: Segment) -> Result<()> {
        self.end.lmr.buffer().write(256, &[0x55; LENGTH]);
        self.end.write(256, LENGTH, theirs, 62)?;
        let event = self.context.next(&self.end.request)?;
        dto(&event, DtoOperation::RdmaWrite, DtoStatus::RemoteAccess)?;
        Ok(())
    }

    fn end(&self, session: Session, theirs: Segment) -> Result<()> {
        let mut last = ConnectionEvent::Disconnected;
        if session.unbound {
            self.is_refused(theirs)?;
            last = ConnectionEvent::Broken;
        } else if session.ends {
            self.end.ep.disconnect(Close::Graceful)?;
        }
        for _ in MESSAGES + 2..RECEIVES {
            let event = self.context.next(&self.end.recv)?;
            dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?;
        }
        connection(&self.context.next(&self.end.connect)?, last)?;
        empty(&self.end.connect)
    }

    fn run(&self, session: Session, port: u64, listener: Option<&Listener>) -> Result<()> {
        self.connect(session, port, listener)?;
        if session.gated {
            self.hear_all(session)?;
            self.say_all()?;
        } else {
            self.established()?;
            self.say_all()?;
            self.hear_all(session)?;
        }
        let theirs = self.use_memory()?;
        self.end(session, theirs)
    }
}

/// Converts the start of a message to a segment.
fn decode(message: &[u8]) -> Segment {
    let word = |at: usize| u32::from_le_bytes(message[at..at + 4].try_into().expect("four bytes"));
    let address = u64::from(word(0)) | (u64::from(word(4)) << 32);
    Segment { address, length: word(8), context: word(12) }
}

fn run(context: &Context, session: Session) -> Result<()> {
    let _ = device(context)?;
    if context.client.is_iwarp() {
        return skip("over iWARP a process reads no memory of the kernel, and an acceptor does not send first");
    }
    let process = Process { context, end: End::new(&context.open()?, SEPARATE)? };
    for number in 0..RECEIVES {
        process.end.receive(place(number), LENGTH, number)?;
    }
    let port = context.port();
    let listener = match session.accepts {
        true => Some(Listener::on(&process.end.ia, port)?),
        false => None,
    };
    run_with(context, session.name, &format!("port={port}"), |_| {
        process.run(session, port, listener.as_ref())
    })
}

fn kernel_accepts(context: &Context) -> Result<()> {
    run(context, Session { name: "mixed_accepts", ends: true, ..Default::default() })
}

fn kernel_connects(context: &Context) -> Result<()> {
    run(context, Session { name: "mixed_connects", accepts: true, ..Default::default() })
}

fn kernel_accepts_gated(context: &Context) -> Result<()> {
    run(context, Session { name: "mixed_accepts_gated", ..Default::default() })
}

fn kernel_connects_gated(context: &Context) -> Result<()> {
    let name = "mixed_connects_gated";
    run(context, Session { name, accepts: true, ends: true, ..Default::default() })
}

fn process_connects_gated(context: &Context) -> Result<()> {
    let name = "mixed_accepts_sends_first";
    run(context, Session { name, gated: true, ends: true, ..Default::default() })
}

fn process_accepts_gated(context: &Context) -> Result<()> {
    let name = "mixed_connects_sends_first";
    run(context, Session { name, gated: true, accepts: true, ..Default::default() })
}

fn unbound_memory(context: &Context) -> Result<()> {
    run(context, Session { name: "mixed_unbinds", unbound: true, ..Default::default() })
}

fn for_peers(context: &Context) -> Result<()> {
    let _ = device(context)?;
    if context.client.is_iwarp() {
        return skip("over iWARP no LMR is for peers");
    }
    Ok(())
}

fn client_killed(context: &Context) -> Result<()> {
    for_peers(context)?;
    let port = context.port();
    killed(context, "killed_client", port, |loaded| {
        let listens = || Ok(loaded.parameter("stage")? == 2);
        context.until("the consumer listens", listens)?;
        Peer::start(context, Part::Client, port, None)
    })
}

fn server_killed(context: &Context) -> Result<()> {
    for_peers(context)?;
    let port = context.port();
    let mut peer = Peer::start(context, Part::Server, port, None)?;
    peer.reaches(Step::Received)?;
    killed(context, "killed_server", port, |_| Ok(peer))
}

/// Starts a process, and kills it under traffic.
fn killed(
    context: &Context,
    name: &'static str,
    port: u64,
    start: impl FnOnce(&Loaded) -> Result<Peer>,
) -> Result<()> {
    let loaded = load_tests(context, &format!("port={port}"))?;
    let running = Worker::start(move || super::run(name))?;
    let mut peer = start(&loaded)?;
    let is_under_way = || Ok(running.finished() || loaded.parameter("stage")? == 1);
    context.until("there is traffic", is_under_way)?;
    peer.kill()?;
    running.join()??;
    loaded.unload()
}

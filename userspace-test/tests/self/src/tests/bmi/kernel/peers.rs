// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Peers of `kdapl_bmi.ko` that are malicious, slow, or end and come back.

use super::super::hostile::{
    connect, ended, ends_after_malformed, header, hello, rejects_private_data, send,
};
use super::super::{address, long, Side};
use super::{echo, load, load_bmi, request, serve, tests, Server, TO_CLIENT, TO_SERVER};
use crate::context::Context;
use crate::end::End;
use crate::expect::{fails_saying, same};
use crate::machine::count_of;
use anyhow::{bail, ensure, Result};
use libkdapl::{CompletionFlags, ConnectionEvent, DtoStatus, Event, Segment};
use libkdapl_bmi::{Options, Peer};
use std::cell::Cell;

tests! {
    #[Transport]
    private_data, 60, "kdapl_bmi.ko refuses requests with malformed private data, and serves on";
    #[Transport]
    messages, 120, "kdapl_bmi.ko ends the connection of a peer with malformed messages, and no other";
    #[Transport]
    wrong_keys, 60, "kdapl_bmi.ko ends the connection of a peer whose keys are wrong, for what it offers and for what it writes";
    #[Transport]
    slow, 60, "kdapl_bmi.ko serves on while peers take none of its messages";
    #[Transport]
    server_gone, 60, "kdapl_bmi.ko fails with ECONNRESET when the process that serves it ends, and talks to the next one";
}

/// Type numbers of messages.
const EAGER: u8 = 1;
const UNEXPECTED: u8 = 2;
pub(super) const RTS: u8 = 3;
pub(super) const CTS: u8 = 4;
const DONE: u8 = 5;

/// A server in the kernel, and a client that it serves.
struct Served<'a> {
    context: &'a Context,
    server: Server,
    side: Side,
    peer: Peer,
}

impl<'a> Served<'a> {
    fn new(context: &'a Context) -> Result<Self> {
        let server = Server::start(context)?;
        let side = Side::open(context, &context.client, &Options::default())?;
        let peer = side.bmi.lookup(&server.address)?;
        Ok(Self { context, server, side, peer })
    }

    /// Lets the server return messages, short and long ones.
    fn works(&self) -> Result<()> {
        for length in [1000, long(self.context, 100_000)] {
            request(&self.side, &self.peer, length, 1)?;
            echo(self.context, &self.side, &self.peer, length)?;
        }
        Ok(())
    }

    fn end(self) -> Result<()> {
        drop((self.peer, self.side));
        self.server.end()
    }
}

fn private_data(context: &Context) -> Result<()> {
    let served = Served::new(context)?;
    served.works()?;
    rejects_private_data(context, &served.server.address, || served.works())?;
    served.end()
}

fn messages(context: &Context) -> Result<()> {
    let served = Served::new(context)?;
    served.works()?;
    ends_after_malformed(context, &served.server.address, || served.works())?;
    served.end()
}

/// A peer that speaks the protocol, as far as a test wants.
pub(super) struct Speaker<'a> {
    context: &'a Context,
    pub(super) end: End,
    sequence: Cell<u32>,
}

impl<'a> Speaker<'a> {
    /// Connects, with receives for two messages of data and four of control.
    fn new(context: &'a Context, address: &str) -> Result<Self> {
        Self::with(context, address, hello())
    }

    /// Connects with other private data.
    pub(super) fn with(context: &'a Context, address: &str, mut hello: Vec<u8>) -> Result<Self> {
        hello[16..18].copy_from_slice(&2_u16.to_le_bytes());
        hello[18..20].copy_from_slice(&4_u16.to_le_bytes());
        let (event, end) = connect(context, address, &hello)?;
        same("answer", event, ConnectionEvent::Established)?;
        Ok(Self { context, end, sequence: Cell::new(0) })
    }

    /// Sends a message, and waits until it is sent.
    pub(super) fn say(&self, kind: u8, tag: i32, length: u64, body: &[u8]) -> Result<()> {
        let mut message = header(kind, length);
        message[12..16].copy_from_slice(&tag.to_le_bytes());
        message[24..32].copy_from_slice(&77_u64.to_le_bytes());
        if kind == RTS {
            message[6..8].copy_from_slice(&((body.len() / 16) as u16).to_le_bytes());
        }
        message.extend(body);
        self.send(message)
    }

    /// Says that the first bytes of a message are written, for which the server has sent `cts`.
    pub(super) fn say_done(&self, cts: &[u8], length: u64) -> Result<()> {
        let mut message = header(DONE, length);
        message[32..40].copy_from_slice(&cts[24..32]);
        self.send(message)
    }

    fn send(&self, mut message: Vec<u8>) -> Result<()> {
        let sequence = self.sequence.replace(self.sequence.get() + 1);
        message[8..12].copy_from_slice(&sequence.to_le_bytes());
        send(&self.end, &message)?;
        self.succeeds()
    }

    /// Checks that the oldest request succeeds.
    pub(super) fn succeeds(&self) -> Result<()> {
        match self.context.next(&self.end.request)? {
            Event::Dto(dto) if dto.status == DtoStatus::Success => Ok(()),
            other => bail!("a message or a write fails: {other}"),
        }
    }

    /// Asks the server to return messages.
    pub(super) fn request(&self, length: u32, rounds: u32) -> Result<()> {
        let body = [length.to_le_bytes(), rounds.to_le_bytes()].concat();
        self.say(UNEXPECTED, 0, 8, &body)
    }

    /// Checks that the connection ends. Which side notices first depends on the transport.
    pub(super) fn is_broken(&self) -> Result<()> {
        let ended = ended(self.context, &self.end)?;
        let broken = [ConnectionEvent::Broken, ConnectionEvent::Disconnected].contains(&ended);
        ensure!(broken, "the connection ends with {ended}");
        Ok(())
    }

    /// Returns the next message of this type.
    pub(super) fn hear(&self, kind: u8) -> Result<Vec<u8>> {
        for slot in 0.. {
            let Event::Dto(dto) = self.context.next(&self.end.recv)? else { bail!("no message") };
            same("status of a receive", dto.status, DtoStatus::Success)?;
            let message = self.end.lmr.buffer().to_vec(slot * 256, dto.length as usize);
            if message.first() == Some(&kind) {
                return Ok(message);
            }
        }
        bail!("no message of type {kind}")
    }
}

fn wrong_keys(context: &Context) -> Result<()> {
    let served = Served::new(context)?;
    served.works()?;
    let length = 100_000_u32;
    if !context.client.is_iwarp() {
        // The server reads what nobody has exposed.
        let speaker = Speaker::new(context, &served.server.address)?;
        speaker.request(length, 1)?;
        let key = 0x1234_5678_u32.to_le_bytes();
        let memory = [&4096_u64.to_le_bytes()[..], &length.to_le_bytes(), &key].concat();
        speaker.say(RTS, TO_SERVER, length.into(), &memory)?;
        speaker.is_broken()?;
        served.works()?;
    }
    // The peer writes behind the memory that the server names, and with another key.
    for (offset, other_key) in [(0, 1), (4096, 0)] {
        let speaker = Speaker::new(context, &served.server.address)?;
        speaker.request(length, 1)?;
        speaker.say(RTS, TO_SERVER, length.into(), &[])?;
        let cts = speaker.hear(CTS)?;
        ensure!(cts.len() >= 64, "a CTS without a descriptor: {cts:02x?}");
        let word = |at: usize| cts[at..at + 4].try_into().map(u32::from_le_bytes);
        let start = u64::from_le_bytes(cts[48..56].try_into()?);
        let size = word(56)?;
        let to = Segment {
            address: start + u64::from(size) - 4096 + offset,
            length: 4096,
            context: word(60)? ^ other_key,
        };
        let from = [speaker.end.lmr.segment(8192, 4096)];
        speaker.end.ep.post_rdma_write(&from, to, 2, CompletionFlags::default())?;
        speaker.is_broken()?;
        served.works()?;
    }
    served.end()
}

fn slow(context: &Context) -> Result<()> {
    let served = Served::new(context)?;
    served.works()?;
    let connected = count_of("ep")?;
    let speakers = (0..3).map(|_| Speaker::new(context, &served.server.address));
    let speakers = speakers.collect::<Result<Vec<_>>>()?;
    for speaker in &speakers {
        speaker.request(100, 1000)?;
        // It returns no credit, so the third answer waits at the server.
        for _ in 0..3 {
            speaker.say(EAGER, TO_SERVER, 100, &[7; 100])?;
        }
        speaker.hear(EAGER)?;
    }
    for _ in 0..5 {
        served.works()?;
    }
    drop(speakers);
    served.works()?;
    context.until("the slow peers are forgotten", || Ok(count_of("ep")? == connected))?;
    served.end()
}

/// Returns a few messages of a client, and ends when the next one has arrived. The client has
/// posted the receive of its answer before.
fn serve_some(side: Side, length: usize) -> Result<()> {
    let message = side.unexpected()?;
    let memory = side.bmi.alloc(length)?;
    for _ in 0..10 {
        let receive = side.context.receive(&message.peer, TO_SERVER, &[memory.whole()], 0)?;
        side.done(receive, length)?;
        let send = side.context.send(&message.peer, TO_CLIENT, &[memory.whole()], 0)?;
        side.done(send, length)?;
    }
    let receive = side.context.receive(&message.peer, TO_SERVER, &[memory.whole()], 0)?;
    side.done(receive, length)
}

fn server_gone(context: &Context) -> Result<()> {
    let bmi = load_bmi(context)?;
    let (address, length) = (address(context), long(context, 100_000));
    let options = Options { listen: Some(address.clone()), ..Options::default() };
    for _ in 0..2 {
        let side = Side::open(context, &context.server, &options)?;
        let serving = std::thread::spawn(move || serve_some(side, length));
        let many = format!("peer={address} length={length} rounds=100000");
        let failed = load(context, &many).map(drop);
        serving.join().expect("the server panics")?;
        fails_saying("Connection reset", failed)?;
        let side = Side::open(context, &context.server, &options)?;
        let few = format!("peer={address} length=1000 rounds=5");
        let serving = std::thread::spawn(move || serve(&side));
        load(context, &few)?.unload()?;
        same("rounds", serving.join().expect("the server panics")?, 5)?;
    }
    bmi.unload()
}

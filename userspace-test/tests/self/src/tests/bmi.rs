// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! BMI by `libkdapl-bmi`, between two instances.

pub mod buffers;
pub mod devices;
pub mod ends;
pub mod hostile;
pub mod kernel;
pub mod leaving;
pub mod receives;
pub mod removal;
pub mod scale;
pub mod tool;

use super::tests;
use crate::context::Context;
use crate::expect::same;
use crate::harness::skip;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl_bmi::{Bmi, Completion, Failure, Memory, Op, Options, Part, Peer, Unexpected};
use std::time::Duration;

tests! {
    #[Address, Link, Transport]
    lengths, 120, "BMI moves messages of 0 bytes to 1 MiB in both directions, also by reads";
    #[Long, Transport]
    up_to_64_mib, 300, "BMI moves messages of up to 64 MiB";
    #[Link, Transport]
    lists, 120, "BMI moves lists of regions into one, and one into regions, of registered and other memory";
    #[Link, Transport]
    many_in_flight, 120, "A hundred long BMI messages in flight in each direction arrive";
    #[Transport]
    read_only, 60, "BMI sends messages from memory that may only be read";
    #[Link, Transport]
    unexpected, 60, "Unexpected messages name their sender, arrive in order, and can be answered";
    #[Transport]
    unmatched, 60, "Forty messages without a receive stop no message in the other direction";
}

/// An instance with a context.
pub struct Side {
    pub context: libkdapl_bmi::Context,
    pub bmi: Bmi,
    patience: Duration,
}

/// Two instances: one that listens, and one that connects to it.
pub struct Sides {
    pub server: Side,
    pub client: Side,
    /// The server, at the client.
    pub peer: Peer,
}

/// Returns the address of a server on a port of its own.
pub fn address(context: &Context) -> String {
    let place = std::net::SocketAddr::new(context.server_address(), context.port() as u16);
    format!("kdapl://{place}")
}

impl Side {
    pub fn open(context: &Context, host: &crate::hosts::Host, options: &Options) -> Result<Self> {
        let pull = options.pull && !context.loses_reads();
        let adapter = options.adapter.clone().or_else(|| Some(host.device.clone()));
        let options = Options { adapter, pull, ..options.clone() };
        let bmi = host.inside(|| Bmi::open(&options))??;
        Ok(Self { context: bmi.open_context()?, bmi, patience: context.patience() })
    }

    /// Allocates memory with random bytes.
    pub fn random(&self, context: &Context, length: usize) -> Result<Memory> {
        let memory = self.bmi.alloc(length.max(1))?;
        memory.buffer().write(0, &super::connect::random(context, length));
        Ok(memory)
    }

    /// Returns the result of an operation, which completes.
    pub fn result(&self, op: Op) -> Result<Completion> {
        let completion = self.context.wait_for(op, Some(self.patience))?;
        completion.context("the operation does not complete")
    }

    /// Checks that an operation succeeds, with so many bytes.
    pub fn done(&self, op: Op, length: usize) -> Result<()> {
        let completion = self.result(op)?;
        completion.result.with_context(|| format!("{completion:?}"))?;
        same("bytes of the message", completion.length, length as u64)
    }

    /// Waits for the result of an answer. The client ends as soon as it has the last one, which it
    /// compares: the end of one connection may then come before the completion on another.
    pub fn answered(&self, send: Op, length: usize, is_last: bool) -> Result<()> {
        match is_last {
            true => self.result(send).map(drop),
            false => self.done(send, length),
        }
    }

    /// Checks that an operation fails.
    pub fn failed(&self, op: Op, failure: Failure) -> Result<()> {
        same("result", self.result(op)?.result, Err(failure))
    }

    /// Returns the next unexpected message.
    pub fn unexpected(&self) -> Result<Unexpected> {
        let mut taken = self.bmi.wait_unexpected(1, Some(self.patience))?;
        taken.pop().context("there is no unexpected message")
    }
}

impl Sides {
    pub fn open(context: &Context, options: &Options) -> Result<Self> {
        let address = address(context);
        let listening = Options { listen: Some(address.clone()), ..options.clone() };
        // A device is taken from the adapter first that was opened first: the client does not lose
        // its peer before, and connect again.
        let client = Side::open(context, &context.client, options)?;
        let server = Side::open(context, &context.server, &listening)?;
        let peer = client.bmi.lookup(&address)?;
        Ok(Self { server, client, peer })
    }

    /// Lets the server know the client. Returns the client at the server.
    pub fn greet(&self) -> Result<Peer> {
        let op = self.client.context.send_unexpected(&self.peer, 0, &[], 0)?;
        let message = self.server.unexpected()?;
        self.client.done(op, 0)?;
        Ok(message.peer)
    }
}

/// Returns all bytes of a memory's first part.
pub fn bytes(memory: &Memory, length: usize) -> Vec<u8> {
    memory.buffer().to_vec(0, length)
}

/// Sends a message from one side to the other, and compares the bytes.
pub fn transfer(
    context: &Context,
    (from, to): (&Side, &Peer),
    (at, source): (&Side, &Peer),
    length: usize,
) -> Result<()> {
    let (sent, got) = (from.random(context, length)?, at.bmi.alloc(length.max(1) + 8)?);
    let receive = at.context.receive(source, 7, &[got.whole()], 0)?;
    let send = from.context.send(to, 7, &[sent.part(0, length)], 0)?;
    at.done(receive, length)?;
    from.done(send, length)?;
    ensure!(bytes(&sent, length) == bytes(&got, length), "wrong bytes of {length}");
    same("bytes after the message", got.buffer().to_vec(length, 8), vec![0; 8])
}

/// Returns the length of a message that is moved by RDMA. Over a spoilt link it is short: soft-RoCE
/// repeats a request whole for each packet that arrives out of order, until it has no retry left.
pub fn long(context: &Context, usual: usize) -> usize {
    match context.link_is_spoilt() {
        true => usual.min(18_000),
        false => usual,
    }
}

/// Skips a test that needs messages of megabytes.
pub fn long_messages_arrive(context: &Context) -> Result<()> {
    if context.link_is_spoilt() {
        return skip("soft-RoCE uses up its retries when packets of a long message are reordered");
    }
    Ok(())
}

/// Options of both ways to move long messages.
pub fn ways() -> [Options; 2] {
    [true, false].map(|pull| Options { pull, ..Options::default() })
}

fn both_ways(context: &Context, lengths: &[usize]) -> Result<()> {
    for options in ways() {
        if options.pull && context.loses_reads() {
            continue;
        }
        let sides = Sides::open(context, &options)?;
        let back = sides.greet()?;
        let (client, server) = ((&sides.client, &sides.peer), (&sides.server, &back));
        for length in lengths {
            transfer(context, client, server, *length)
                .with_context(|| format!("to the server, pull {}", options.pull))?;
            transfer(context, server, client, *length)
                .with_context(|| format!("to the client, pull {}", options.pull))?;
        }
    }
    Ok(())
}

fn lengths(context: &Context) -> Result<()> {
    let limit = 16 * 1024 - 48;
    let most = long(context, 1 << 20);
    both_ways(context, &[0, 1, 100, 4096, limit - 1, limit, limit + 1, 40_000, most])
}

fn up_to_64_mib(context: &Context) -> Result<()> {
    long_messages_arrive(context)?;
    both_ways(context, &[(4 << 20) + 1, 64 << 20])
}

/// Numbers and lengths of regions: many short ones, more than a request has, and more than there
/// are binds at a time.
const LISTS: [(usize, usize); 3] = [(64, 4096), (8, 65_536), (130, 16_384)];

fn lists(context: &Context) -> Result<()> {
    for options in ways() {
        if options.pull && context.loses_reads() {
            continue;
        }
        let sides = Sides::open(context, &options)?;
        let back = sides.greet()?;
        let short = [(64, 300)];
        let lists = if context.link_is_spoilt() { &short[..] } else { &LISTS };
        for (regions, length) in lists {
            list(context, &sides, &back, (*regions, *length))
                .with_context(|| format!("{regions} of {length} bytes, pull {}", options.pull))?;
        }
    }
    Ok(())
}

/// Sends regions of the client into one of the server, and back into others.
fn list(
    context: &Context,
    sides: &Sides,
    back: &Peer,
    (count, length): (usize, usize),
) -> Result<()> {
    let (client, server) = (&sides.client, &sides.server);
    // Regions that do not touch, in another order than in memory.
    let spread = client.random(context, 2 * count * length)?;
    let from = |index: usize| (count - 1 - index) * 2 * length;
    let regions: Vec<Part> = (0..count).map(|index| spread.part(from(index), length)).collect();
    let whole = server.bmi.alloc(count * length)?;
    let receive = server.context.receive(back, 1, &[whole.whole()], 0)?;
    let send = client.context.send(&sides.peer, 1, &regions, 0)?;
    server.done(receive, count * length)?;
    client.done(send, count * length)?;
    for index in 0..count {
        let got = whole.buffer().to_vec(index * length, length);
        let sent = spread.buffer().to_vec(from(index), length);
        ensure!(got == sent, "region {index} to the server");
    }
    // And back, to other memory that is not registered.
    let mut plain = vec![0_u8; count * length];
    let start = std::ptr::NonNull::new(plain.as_mut_ptr()).context("an address")?;
    let part = |index: usize| {
        // SAFETY: `plain` lives, and is not used, until the receive has completed.
        unsafe { Part::borrowed(start.add((count - 1 - index) * length), length) }
    };
    let parts: Vec<Part> = (0..count).map(part).collect();
    let receive = client.context.receive(&sides.peer, 2, &parts, 0)?;
    let send = server.context.send(back, 2, &[whole.whole()], 0)?;
    client.done(receive, count * length)?;
    server.done(send, count * length)?;
    for (index, got) in plain.rchunks(length).enumerate() {
        let sent = whole.buffer().to_vec(index * length, length);
        ensure!(got == sent, "region {index} to the client");
    }
    Ok(())
}

fn many_in_flight(context: &Context) -> Result<()> {
    const COUNT: usize = 100;
    let length = long(context, 40_000);
    for options in ways() {
        if options.pull && context.loses_reads() {
            continue;
        }
        let sides = Sides::open(context, &options)?;
        let back = sides.greet()?;
        let ends = [(&sides.client, &sides.peer), (&sides.server, &back)];
        let sent = [sides.client.random(context, length)?, sides.server.random(context, length)?];
        let mut flying = Vec::new();
        for number in 0..2 * COUNT {
            let ((from, to), (at, source)) = (ends[number % 2], ends[1 - number % 2]);
            let got = at.bmi.alloc(length)?;
            let send = from.context.send(to, 5, &[sent[number % 2].whole()], 0)?;
            let receive = at.context.receive(source, 5, &[got.whole()], 0)?;
            flying.push((number % 2, send, receive, got));
        }
        for (side, send, receive, got) in flying {
            ends[1 - side].0.done(receive, length)?;
            ends[side].0.done(send, length)?;
            ensure!(bytes(&got, length) == bytes(&sent[side], length), "a wrong byte");
        }
    }
    Ok(())
}

/// Bytes of a program's file, which are mapped for reading only.
static CONSTANT: [u8; 100_000] = [0x5a; 100_000];

fn read_only(context: &Context) -> Result<()> {
    let length = long(context, CONSTANT.len());
    for options in ways() {
        let sides = Sides::open(context, &options)?;
        let back = sides.greet()?;
        let start = std::ptr::NonNull::from(&CONSTANT).cast();
        // SAFETY: The bytes are mapped as long as the program runs, and do not change.
        let part = unsafe { Part::borrowed(start, length) };
        let got = sides.server.bmi.alloc(length)?;
        let receive = sides.server.context.receive(&back, 1, &[got.whole()], 0)?;
        let send = sides.client.context.send(&sides.peer, 1, &[part], 0)?;
        sides.server.done(receive, length)?;
        sides.client.done(send, length)?;
        ensure!(bytes(&got, length) == CONSTANT[..length], "a wrong byte");
    }
    Ok(())
}

fn unexpected(context: &Context) -> Result<()> {
    let sides = Sides::open(context, &Options::default())?;
    let memory = sides.client.random(context, sides.client.bmi.unexpected_limit())?;
    let mut sends = Vec::new();
    for tag in 0..10 {
        let part = memory.part(0, memory.length() >> tag);
        sends.push(sides.client.context.send_unexpected(&sides.peer, tag, &[part], 0)?);
    }
    for tag in 0..10 {
        let message = sides.server.unexpected()?;
        same("tag", message.tag, tag)?;
        same("bytes", message.bytes(), &bytes(&memory, memory.length() >> tag)[..])?;
        let from = message.peer.address().context("an address")?;
        ensure!(from.starts_with("kdapl://"), "the sender is {from}");
        let answer = sides.server.context.send(&message.peer, tag, &[], 0)?;
        let receive = sides.client.context.receive(&sides.peer, tag, &[], 0)?;
        sides.client.done(receive, 0)?;
        sides.server.done(answer, 0)?;
    }
    for (tag, send) in sends.into_iter().enumerate() {
        sides.client.done(send, memory.length() >> tag)?;
    }
    let long = sides.client.bmi.alloc(memory.length() + 1)?;
    match sides.client.context.send_unexpected(&sides.peer, 0, &[long.whole()], 0) {
        Err(libkdapl_bmi::Error::Post(Failure::TooLong)) => Ok(()),
        other => bail!("a long unexpected message: {other:?}"),
    }
}

fn unmatched(context: &Context) -> Result<()> {
    let sides = Sides::open(context, &Options::default())?;
    let back = sides.greet()?;
    let (client, server) = (&sides.client, &sides.server);
    let memory = client.random(context, 40 * 100)?;
    let sends: Vec<Op> = (0..40)
        .map(|tag| {
            client.context.send(&sides.peer, tag, &[memory.part(100 * tag as usize, 100)], 0)
        })
        .collect::<libkdapl_bmi::Result<_>>()?;
    for length in [10, long(context, 100_000)] {
        transfer(context, (server, &back), (client, &sides.peer), length)?;
    }
    let got = server.bmi.alloc(100)?;
    // In another order.
    for tag in (0..40).rev() {
        let receive = server.context.receive(&back, tag, &[got.whole()], 0)?;
        server.done(receive, 100)?;
        let sent = memory.buffer().to_vec(100 * tag as usize, 100);
        ensure!(bytes(&got, 100) == sent, "wrong bytes of tag {tag}");
    }
    for send in sends {
        client.done(send, 100)?;
    }
    Ok(())
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! BMI with receives that one message to the peer cannot describe.

use super::super::tests;
use super::{long, long_messages_arrive, Side, Sides};
use crate::context::Context;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl_bmi::{Bmi, Failure, Memory, Options, Part, Peer, LONGEST};

tests! {
    #[Transport]
    many_fragments, 120, "A BMI receive of 1,100 fragments takes messages that fill a part, and all of it";
    #[Transport]
    longer_than_messages, 60, "A BMI receive of 2 GiB takes a message, and a send of so much is refused";
    #[Transport]
    small_messages, 60, "A BMI receive longer than messages of 96 bytes can describe takes a shorter one";
    #[Transport]
    smallest_message, 60, "BMI messages have 96 bytes at least, and limit others to 3,060 KiB then";
}

/// Options with which receivers read no messages.
const PUSH: fn(u32) -> Options = |message| Options { message, pull: false, ..Options::default() };

/// Bytes of a message of the default length.
const MESSAGE: u32 = 16 << 10;

/// Two sides, and the client at the server.
fn sides(context: &Context, message: u32) -> Result<(Sides, Peer)> {
    let sides = Sides::open(context, &PUSH(message))?;
    let back = sides.greet()?;
    Ok((sides, back))
}

/// Returns fragments of `length` bytes with gaps between them, the last one first.
fn spread(memory: &Memory, count: usize, length: usize) -> Vec<Part> {
    (0..count).rev().map(|index| memory.part(2 * index * length, length)).collect()
}

/// Lets the client send a message, and compares its bytes.
fn send_into(
    context: &Context,
    (sides, back): &(Sides, Peer),
    parts: &[Part],
    length: usize,
) -> Result<()> {
    let Sides { client, server, peer } = sides;
    let sent = client.random(context, length)?;
    let receive = server.context.receive(back, 3, parts, 0)?;
    let send = client.context.send(peer, 3, &[sent.part(0, length)], 0)?;
    server.done(receive, length)?;
    client.done(send, length)?;
    let mut left = sent.buffer().to_vec(0, length);
    for (index, part) in parts.iter().enumerate() {
        let rest = left.split_off(part.length().min(left.len()));
        ensure!(part.to_vec()[..left.len()] == left, "fragment {index} of a message of {length}");
        left = rest;
    }
    Ok(())
}

fn many_fragments(context: &Context) -> Result<()> {
    // Long enough that they are not copied because they are short.
    const FRAGMENTS: (usize, usize) = (1100, 16 << 10);
    long_messages_arrive(context)?;
    let ends = sides(context, MESSAGE)?;
    let (count, length) = FRAGMENTS;
    let memory = ends.0.server.bmi.alloc(2 * count * length)?;
    let parts = spread(&memory, count, length);
    for length in [20_000, 100 * length + 1, count * length - 1, count * length] {
        send_into(context, &ends, &parts, length).with_context(|| format!("{length} bytes"))?;
    }
    let short = spread(&memory, 1 << 12, 100);
    send_into(context, &ends, &short, 400_000)
}

/// Returns so many parts of 1 MiB that are the same memory.
fn megabytes(side: &Side, count: usize) -> Result<Vec<Part>> {
    Ok(vec![side.bmi.alloc(1 << 20)?.whole(); count])
}

fn longer_than_messages(context: &Context) -> Result<()> {
    let ends = sides(context, MESSAGE)?;
    let parts = megabytes(&ends.0.server, 2048)?;
    send_into(context, &ends, &parts, long(context, 1 << 20))?;
    // The same of many short fragments: only the message's bytes need contiguous memory.
    let memory = ends.0.server.bmi.alloc(1 << 20)?;
    let mut parts: Vec<Part> = (0..100).map(|index| memory.part(index * 8192, 4096)).collect();
    parts.extend(vec![memory.part(0, 16_000); 134_000]);
    send_into(context, &ends, &parts, long(context, 400_000))?;
    let Sides { client, server, peer } = &ends.0;
    let parts = megabytes(client, LONGEST / (1 << 20) + 1)?;
    let sent = client.context.send(peer, 3, &parts, 0);
    let refused = matches!(sent, Err(libkdapl_bmi::Error::Post(Failure::TooLong)));
    ensure!(refused, "a send of more than {LONGEST} bytes: {sent:?}");
    send_into(context, &ends, &megabytes(server, 1)?, long(context, 100_000))
}

fn small_messages(context: &Context) -> Result<()> {
    // A message of 96 bytes has room for three descriptors.
    let ends = sides(context, 96)?;
    let parts = megabytes(&ends.0.server, 16)?;
    for length in [long(context, 20_000), long(context, 1 << 20)] {
        send_into(context, &ends, &parts, length)?;
    }
    let memory = ends.0.server.bmi.alloc(1 << 20)?;
    send_into(context, &ends, &spread(&memory, 10, 30_000), long(context, 300_000))
}

fn smallest_message(context: &Context) -> Result<()> {
    /// Bytes that one of three descriptors describes.
    const DESCRIBED: usize = 1020 << 10;
    long_messages_arrive(context)?;
    let device = Some(context.client.device.clone());
    let options = Options { adapter: device, message: 95, ..Options::default() };
    match context.client.inside(|| Bmi::open(&options))? {
        Err(libkdapl_bmi::Error::Post(Failure::Invalid)) => {}
        other => bail!("messages of 95 bytes: {other:?}"),
    }
    let ends = sides(context, 96)?;
    let (Sides { client, server, peer }, back) = &ends;
    let memory = server.bmi.alloc(4 * DESCRIBED)?;
    send_into(context, &ends, &[memory.whole()], 3 * DESCRIBED)?;
    let longer = client.bmi.alloc(3 * DESCRIBED + 1)?;
    let receive = server.context.receive(back, 3, &[memory.whole()], 0)?;
    let send = client.context.send(peer, 3, &[longer.whole()], 0)?;
    server.failed(receive, Failure::TooLong)?;
    client.failed(send, Failure::TooLong)?;
    send_into(context, &ends, &[memory.whole()], 1000)
}

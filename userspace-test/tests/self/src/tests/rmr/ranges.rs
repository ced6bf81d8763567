// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Binds to any bytes of an LMR, and the completion flags of a bind.

use super::super::transfer::longest_read;
use super::scene::{bound, part, Scene, BOTH};
use crate::context::Context;
use crate::expect::{connection, done, same};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Event, Segment};

/// Bytes of the scene's LMR.
const LENGTH: usize = 16 << 10;

/// One byte at either end, the whole LMR, and random bytes.
pub fn ranges(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let longest = longest_read(context, LENGTH);
    let mut ranges = vec![(0, 1), (LENGTH - 1, 1), (0, longest)];
    for _ in 0..context.count(100) {
        let offset = context.rng().usize(0..LENGTH);
        ranges.push((offset, context.rng().usize(1..=longest.min(LENGTH - offset))));
    }
    let mut last = None;
    for (offset, length) in ranges {
        let remote = write_and_read(context, &scene, offset, length)
            .with_context(|| format!("{length} bytes at {offset}"))?;
        last = Some(remote);
    }
    let remote = last.context("no range")?;
    let further = Segment { length: remote.length + 1, ..remote };
    scene.denied(context, true, further)
}

/// Binds the RMR to these bytes, lets the peer write and read all of them, and checks that no other
/// byte has changed. Returns the segment.
fn write_and_read(
    context: &Context,
    scene: &Scene,
    offset: usize,
    length: usize,
) -> Result<Segment> {
    let (client, server, memory) = (&scene.pair.client, &scene.pair.server, scene.lmr.buffer());
    let part = part(&scene.lmr, offset, length, BOTH);
    let remote = scene.rmr.bind(&server.ep, &part, 7, CompletionFlags::default())?;
    bound(context, server, &scene.rmr, 7)?;
    let out = client.scramble(context);
    let mut expected = memory.to_vec(0, LENGTH);
    expected[offset..offset + length].copy_from_slice(&out[..length]);
    client.write(0, length, remote, 1)?;
    done(&context.next(&client.request)?, DtoOperation::RdmaWrite, length as u64, 1)?;
    // Over iWARP the write may still be on its way.
    context.until("the bytes have arrived", || Ok(memory.to_vec(0, LENGTH) == expected))?;
    let at = 2 * LENGTH;
    client.read(at, length, remote, 2)?;
    done(&context.next(&client.request)?, DtoOperation::RdmaRead, length as u64, 2)?;
    let mut expected = out.clone();
    expected[at..at + length].copy_from_slice(&out[..length]);
    ensure!(client.lmr.buffer().to_vec(0, out.len()) == expected, "other bytes were read");
    Ok(remote)
}

pub fn flags(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let (client, server) = (&scene.pair.client, &scene.pair.server);
    let part = part(&scene.lmr, 100, 1000, BOTH);
    let remote = scene.rmr.bind(&server.ep, &part, 7, CompletionFlags::SUPPRESS)?;
    client.receive(0, 64, 1)?;
    server.send(0, 64, 2)?;
    // The bind, which precedes the send, has no event.
    done(&context.next(&server.request)?, DtoOperation::Send, 64, 2)?;
    done(&context.next(&client.recv)?, DtoOperation::Receive, 64, 1)?;
    scene.access(context, true, remote, true)?;

    server.read(0, 64, client.lmr.remote_segment(0, 64), 3)?;
    let fenced = scene.rmr.bind(&server.ep, &part, 4, CompletionFlags::BARRIER_FENCE)?;
    done(&context.next(&server.request)?, DtoOperation::RdmaRead, 64, 3)?;
    bound(context, server, &scene.rmr, 4)?;
    scene.access(context, true, fenced, true)?;

    client.ep.disconnect(Close::Abrupt)?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Disconnected)?;
    scene.rmr.bind(&server.ep, &part, 5, CompletionFlags::SUPPRESS)?;
    // A failure is always reported.
    match context.next(&server.request)? {
        Event::RmrBind { cookie, status, .. } => {
            same("bind", (cookie, status), (5, DtoStatus::Flushed))
        }
        other => bail!("expected the flush of a bind, got {other}"),
    }
}

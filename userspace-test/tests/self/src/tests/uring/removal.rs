// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Commands of io_uring while the device is removed under traffic.

use super::super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::machine::{no_objects_left, DeviceGuard};
use crate::tests::device_removal::{all_calls_fail, works_again};
use crate::threads::Worker;
use anyhow::{ensure, Context as _, Result};
use libkdapl::uring::{Outcome, Ring};
use libkdapl::{CompletionFlags, Dto, DtoStatus, Event};
use std::time::{Duration, Instant};

tests! {
    under_traffic, 240, "Commands that post, wait and stream end while their device is removed, and a new device works";
}

/// Tags of the commands.
const STREAM: u64 = 1;
const WAIT: u64 = 2;
const POST: u64 = 3;

/// Results of one round.
#[derive(Default)]
struct Seen {
    completions: u64,
    failed: u64,
    /// The wait for the end of the connection, or the stream, has shown the end.
    is_over: bool,
}

/// Checks whether an event follows all messages of a connection.
fn is_last(event: &Event) -> bool {
    match event {
        Event::Connection { .. } => true,
        Event::Dto(dto) => dto.status == DtoStatus::Flushed,
        _ => false,
    }
}

/// Sends messages by commands until the waits have ended: with events, or because the device is
/// gone.
fn run(context: &Context, pair: &Pair) -> Result<Seen> {
    let mut ring = Ring::new(64)?;
    ring.provide_buffers(16, 4)?;
    let (client, server) = (&pair.client, &pair.server);
    ring.stream(&server.recv, 1, STREAM)?;
    // Its only event is the end of the connection.
    ring.wait_evd(&client.connect, None, 1, 1, WAIT)?;
    let none = CompletionFlags::default();
    let (into, from) = ([server.lmr.segment(0, 64)], [client.lmr.segment(0, 64)]);
    let (mut seen, start) = (Seen::default(), Instant::now());
    let mut posts = 0;
    while !seen.is_over {
        ensure!(
            start.elapsed() < context.patience(),
            "no command has shown the end of the connection"
        );
        if posts == 0 {
            ring.post(&server.ep, &[Dto::recv(&into, 1, none)], POST)?;
            ring.post(&client.ep, &[Dto::send(&from, 1, none)], POST)?;
            posts = 2;
        }
        ring.submit()?;
        while let Some(completion) = ring.take() {
            seen.completions += u64::from(completion.result.is_ok());
            seen.failed += u64::from(completion.result.is_err());
            posts -= u32::from(completion.tag == POST);
            if let Ok(Outcome::Events(events)) = completion.result {
                seen.is_over |= events.iter().any(is_last);
            }
        }
        while client.request.dequeue().is_ok() {}
    }
    Ok(seen)
}

fn under_traffic(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    for round in 0..context.count(5).max(2) {
        let pair = Pair::new(context, Shape::default())?;
        let inner = context.new_for_thread();
        let worker = Worker::start(move || -> Result<_> {
            let seen = run(&inner, &pair)?;
            Ok((seen, pair))
        })?;
        std::thread::sleep(Duration::from_millis(5 + context.rng().u64(0..50)));
        guard.delete()?;
        let (seen, pair) = worker.join()?.with_context(|| format!("round {round}"))?;
        println!("{} completions, {} of them failed", seen.completions + seen.failed, seen.failed);
        ensure!(seen.completions > 0, "no command completed before the removal");
        all_calls_fail(context, &pair.client)?;
        guard.add()?;
        drop(pair);
        no_objects_left(context.settings.scale)?;
        works_again(context)?;
    }
    Ok(())
}

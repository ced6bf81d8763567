// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Completions whose events are suppressed, in numbers: they take no room on an EVD, so nothing but their own end
//! ends a look at them.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, same};
use crate::harness::skip;
use crate::threads::{RealTime, Worker};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{CompletionFlags, DtoOperation, Error, Event};
use std::time::Duration;

tests! {
    #[Transport]
    in_turns, 300, "Others reach an EVD while somebody looks for an event behind many suppressed completions";
    #[Transport]
    found_behind, 120, "An event behind many suppressed completions is found by the first dequeue, and by a wait whose time is up";
    #[Transport]
    cno_behind, 120, "An event behind many suppressed completions triggers the CNO that its EVD gets";
}

/// Several times what a drain looks at in one go. Few enough to be posted before the module looks by itself, which it
/// does every second.
const MANY: u32 = 1024;

/// How often a test tries to let them pile up.
const TRIES: u32 = 5;

/// How often it looks whether others get at the EVD.
const ROUNDS: u32 = 200;

fn pair(context: &Context) -> Result<Pair> {
    Pair::new(context, Shape { requests: MANY, ..Default::default() })
}

/// Posts RDMA writes, all of them suppressed but for the `last`, and waits until they are complete. Says whether they
/// all wait to be looked at; otherwise the module was quicker, and all is taken.
fn pile_up(context: &Context, pair: &Pair, last: u32) -> Result<bool> {
    let (client, server) = (&pair.client, &pair.server);
    let mark = context.rng().u64(1..).to_le_bytes();
    client.lmr.buffer().write(8, &mark);
    for number in 0..MANY {
        // The last one brings the mark.
        let offset = if number + 1 == MANY { 8 } else { 0 };
        let to = server.lmr.remote_segment(offset, 8);
        let is_last = number >= MANY - last;
        let flags = if is_last { CompletionFlags::default() } else { CompletionFlags::SUPPRESS };
        client
            .ep
            .post_rdma_write(&[client.lmr.segment(offset, 8)], to, number.into(), flags)
            .with_context(|| format!("write {number}"))?;
    }
    context.until("the last write is there", || Ok(server.lmr.buffer().to_vec(8, 8) == mark))?;
    // Its acknowledgement follows.
    std::thread::sleep(Duration::from_millis(20));
    if client.ep.status()?.request_outstanding == MANY {
        return Ok(true);
    }
    let mut left = last;
    while left > 0 {
        left -= u32::from(client.request.dequeue().is_ok());
    }
    all_is_seen(context, pair)?;
    Ok(false)
}

fn all_is_seen(context: &Context, pair: &Pair) -> Result<()> {
    context.until("all is seen", || match pair.client.request.dequeue() {
        Err(error) if error.is_empty() => Ok(pair.client.ep.status()?.request_idle),
        other => bail!("{other:?} where all is suppressed"),
    })
}

/// As [`pile_up`], until they all wait.
fn piled_up(context: &Context, pair: &Pair, last: u32) -> Result<()> {
    for _ in 0..TRIES {
        if pile_up(context, pair, last)? {
            return Ok(());
        }
    }
    skip("so many cannot be posted here before the module looks by itself, which it does every second")
}

/// Whether anybody else got at the EVD while a dequeue went through all of that.
fn was_shared(context: &Context, pair: &Pair) -> Result<bool> {
    piled_up(context, pair, 0)?;
    let client = &pair.client;
    let outstanding = || Ok::<_, anyhow::Error>(client.ep.status()?.request_outstanding);
    let evd = client.request.clone();
    let dequeue = Worker::start(move || evd.dequeue())?;
    let mut shared = false;
    // On one processor an ordinary thread might wait for the next tick, when the dequeue has ended.
    let first = RealTime::begin()?;
    while !dequeue.finished() {
        std::thread::sleep(Duration::from_micros(20));
        let before = outstanding()?;
        client.request.query()?;
        // It has begun by then, and has not come to its end.
        shared |= before < MANY && outstanding()? > 0;
    }
    drop(first);
    match dequeue.join()? {
        Err(error) if error.is_empty() => {}
        other => bail!("{other:?} where all is suppressed"),
    }
    all_is_seen(context, pair)?;
    Ok(shared)
}

fn in_turns(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    for round in 1..=ROUNDS {
        if was_shared(context, &pair)? {
            println!("in round {round}");
            return Ok(());
        }
    }
    bail!("a dequeue looked at {MANY} completions, {ROUNDS} times, and let nobody in")
}

fn found_behind(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let evd = &pair.client.request;
    let last = |found: Result<(Event, u32), Error>| {
        let (event, more) = found?;
        done(&event, DtoOperation::RdmaWrite, 8, u64::from(MANY) - 1)?;
        same("events that are left", more, 0)
    };
    piled_up(context, &pair, 1)?;
    last(evd.dequeue())?;
    piled_up(context, &pair, 1)?;
    last(evd.wait(Some(Duration::ZERO), 1))?;
    // Those that follow the first are counted.
    piled_up(context, &pair, 16)?;
    let mut more = evd.wait(Some(Duration::ZERO), 16)?.1;
    for left in (1..=15).rev() {
        same("events that are left", more, left)?;
        more = evd.dequeue()?.1;
    }
    same("events that are left", more, 0)
}

fn cno_behind(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let evd = &pair.client.request;
    let cno = pair.client.ia.create_cno(None)?;
    piled_up(context, &pair, 1)?;
    evd.modify_cno(Some(&cno))?;
    let triggered = cno.wait(Some(context.patience()))?;
    ensure!(triggered == Some(evd.handle()), "{triggered:?} triggered");
    evd.dequeue()?;
    Ok(evd.modify_cno(None)?)
}

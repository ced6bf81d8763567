// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Completes many DTOs with suppressed events. Their completions occupy no EVD entry, so a drain ends
//! only at the last one.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, same};
use crate::harness::skip;
use crate::threads::{RealTime, Worker};
use anyhow::{bail, ensure, Result};
use libkdapl::{CompletionFlags, Dto, DtoOperation, Error, Event, Submitted};
use std::time::Duration;

tests! {
    #[Transport]
    evd_usable_during_search, 300, "Other threads can use an EVD while one searches it for an event after many suppressed completions";
    #[Transport]
    dequeue_finds_event_behind, 120, "The first dequeue finds an event after many suppressed completions, and so does a wait with an expired time-out";
    #[Transport]
    event_behind_triggers_cno, 120, "An event after many suppressed completions triggers the CNO that its EVD is attached to";
}

/// Several times the batch of a drain. Few enough to be posted within a second: the module drains
/// every second.
const COMPLETIONS: u32 = 1024;

/// Number of suppressed writes of which one is reported, except over iWARP.
const INTERVAL: u32 = 16;

/// Length of a list of writes.
const LIST: usize = 256;

/// Tries to accumulate the completions.
const TRIES: u32 = 5;

/// Tries to use the EVD during a dequeue.
const ROUNDS: u32 = 200;

/// Returns the number of suppressed writes that cause [`COMPLETIONS`].
fn writes(context: &Context) -> u32 {
    match context.client.is_iwarp() {
        true => COMPLETIONS,
        false => COMPLETIONS * INTERVAL,
    }
}

fn pair(context: &Context) -> Result<Pair> {
    Pair::new(context, Shape { requests: writes(context), ..Default::default() })
}

/// Posts RDMA writes with suppressed completions, except for the `last` ones, and waits until they
/// are complete. Returns whether all completions wait to be drained. Otherwise the module was
/// faster, and all events are dequeued.
fn pile_up(context: &Context, pair: &Pair, last: u32) -> Result<bool> {
    let (client, server) = (&pair.client, &pair.server);
    let mark = context.rng().u64(1..).to_le_bytes();
    client.lmr.buffer().write(8, &mark);
    let writes = writes(context);
    let local = [[client.lmr.segment(0, 8)], [client.lmr.segment(8, 8)]];
    let write = |number: u32| {
        // The last write carries the mark.
        let place = usize::from(number + 1 == writes);
        let to = server.lmr.remote_segment(8 * place, 8);
        let is_last = number >= writes - last;
        let flags = if is_last { CompletionFlags::default() } else { CompletionFlags::SUPPRESS };
        Dto::new(DtoOperation::RdmaWrite, &local[place], Some(to), number.into(), flags)
    };
    let dtos: Vec<_> = (0..writes).map(write).collect();
    for list in dtos.chunks(LIST) {
        let Submitted { posted, event } = client.ep.submit(list, None);
        event?;
        same("posted", posted, list.len())?;
    }
    context.until("the last write arrives", || Ok(server.lmr.buffer().to_vec(8, 8) == mark))?;
    // Its acknowledgement follows.
    std::thread::sleep(Duration::from_millis(20));
    if client.ep.status()?.request_outstanding == writes {
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
    context.until("all completions are drained", || match pair.client.request.dequeue() {
        Err(error) if error.is_empty() => Ok(pair.client.ep.status()?.request_idle),
        other => bail!("all events are suppressed, but the dequeue returned {other:?}"),
    })
}

/// Repeats [`pile_up`] until all completions wait.
fn piled_up(context: &Context, pair: &Pair, last: u32) -> Result<()> {
    for _ in 0..TRIES {
        if pile_up(context, pair, last)? {
            return Ok(());
        }
    }
    skip("the module drains every second, which is too fast for so many posts here")
}

/// Returns whether another thread could use the EVD during a dequeue of all completions.
fn was_shared(context: &Context, pair: &Pair) -> Result<bool> {
    piled_up(context, pair, 0)?;
    let client = &pair.client;
    let outstanding = || Ok::<_, anyhow::Error>(client.ep.status()?.request_outstanding);
    let evd = client.request.clone();
    let dequeue = Worker::start(move || evd.dequeue())?;
    let mut shared = false;
    // On one processor an ordinary thread may wait for the next tick, when the dequeue has ended.
    let first = RealTime::begin()?;
    while !dequeue.finished() {
        std::thread::sleep(Duration::from_micros(20));
        let before = outstanding()?;
        client.request.query()?;
        // The dequeue had begun, and has not ended.
        shared |= before < writes(context) && outstanding()? > 0;
    }
    drop(first);
    match dequeue.join()? {
        Err(error) if error.is_empty() => {}
        other => bail!("all events are suppressed, but the dequeue returned {other:?}"),
    }
    all_is_seen(context, pair)?;
    Ok(shared)
}

fn evd_usable_during_search(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    for round in 1..=ROUNDS {
        if was_shared(context, &pair)? {
            println!("the EVD was shared in round {round}");
            return Ok(());
        }
    }
    bail!("{ROUNDS} dequeues drained {COMPLETIONS} completions each, and let no other thread in")
}

fn dequeue_finds_event_behind(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let evd = &pair.client.request;
    let last = |found: Result<(Event, u32), Error>| {
        let (event, more) = found?;
        done(&event, DtoOperation::RdmaWrite, 8, u64::from(writes(context)) - 1)?;
        same("remaining events", more, 0)
    };
    piled_up(context, &pair, 1)?;
    last(evd.dequeue())?;
    piled_up(context, &pair, 1)?;
    last(evd.wait(Some(Duration::ZERO), 1))?;
    // The events after the first are counted.
    piled_up(context, &pair, 16)?;
    let mut more = evd.wait(Some(Duration::ZERO), 16)?.1;
    for left in (1..=15).rev() {
        same("remaining events", more, left)?;
        more = evd.dequeue()?.1;
    }
    same("remaining events", more, 0)
}

fn event_behind_triggers_cno(context: &Context) -> Result<()> {
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

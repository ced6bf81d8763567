// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Completions of the library's ring, as the tests expect them.

use crate::context::Context;
use crate::expect::same;
use crate::repeat::unheard;
use crate::software::number;
use anyhow::{bail, ensure, Result};
use libkdapl::uring::{Completion, Outcome, Ring};
use libkdapl::{Error, Event};
use std::time::Instant;

/// Returns the next completion, which is that of the command `tag`.
fn of(ring: &mut Ring, tag: u64) -> Result<Completion> {
    let completion = ring.wait()?;
    same("command", completion.tag, tag)?;
    Ok(completion)
}

/// Returns the result of the command `tag`, which completes next, for the last time.
pub fn outcome(ring: &mut Ring, tag: u64) -> Result<Result<Outcome, Error>> {
    let completion = of(ring, tag)?;
    ensure!(!completion.more, "more completions of command {tag} follow: {completion:?}");
    Ok(completion.result)
}

/// Returns the numbers of software events.
pub fn numbers(events: Vec<Event>) -> Result<Vec<u64>> {
    events.into_iter().map(|event| Ok(number(Ok((event, 0)))?.0)).collect()
}

/// Returns the software events of the wait `tag`, which completes next.
pub fn events(ring: &mut Ring, tag: u64) -> Result<Vec<u64>> {
    match outcome(ring, tag)?? {
        Outcome::Events(events) => numbers(events),
        other => bail!("expected events, got {other:?}"),
    }
}

/// Returns the software events of the next batch of the stream `tag`.
pub fn batch(ring: &mut Ring, tag: u64) -> Result<Vec<u64>> {
    let completion = of(ring, tag)?;
    ensure!(completion.more, "the stream has ended: {completion:?}");
    match completion.result? {
        Outcome::Events(events) => numbers(events),
        other => bail!("expected events, got {other:?}"),
    }
}

/// Returns the next completion, which has to come in time.
pub fn next(context: &Context, ring: &mut Ring) -> Result<Completion> {
    let start = Instant::now();
    loop {
        if let Some(completion) = ring.take() {
            return Ok(completion);
        }
        if start.elapsed() > context.patience() {
            unheard!("no completion in {:?}", context.patience());
        }
        ring.submit()?;
        std::thread::yield_now();
    }
}

/// Returns the results of these commands, which complete in any order, for the last time.
pub fn all_of(ring: &mut Ring, tags: &[u64]) -> Result<Vec<(u64, Result<Outcome, Error>)>> {
    let mut results = Vec::new();
    for _ in tags {
        let completion = ring.wait()?;
        ensure!(!completion.more, "more completions follow: {completion:?}");
        results.push((completion.tag, completion.result));
    }
    results.sort_by_key(|(tag, _)| *tag);
    let found: Vec<u64> = results.iter().map(|(tag, _)| *tag).collect();
    same("commands", &found[..], tags)?;
    Ok(results)
}

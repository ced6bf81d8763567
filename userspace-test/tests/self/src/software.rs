// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Software events that carry a number, and checks of their order.

use crate::context::Context;
use crate::expect::same;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Error, Evd, EvdFlags, Event, Type};
use std::time::{Duration, Instant};

/// Creates an EVD for software events on a new IA.
pub fn software(context: &Context, qlen: i32) -> Result<Evd> {
    Ok(context.open()?.create_evd(EvdFlags::SOFTWARE, qlen)?)
}

/// Returns the number of an event, and the number of events after it.
pub fn number(outcome: Result<(Event, u32), Error>) -> Result<(u64, u32)> {
    match outcome? {
        (Event::Software { pointer }, nmore) => Ok((pointer, nmore)),
        (other, _) => bail!("expected a software event, got {other}"),
    }
}

/// Returns the number of the next event.
pub fn take(evd: &Evd) -> Result<u64> {
    Ok(number(evd.dequeue())?.0)
}

/// Posts all events of one poster: `each` events, whenever there is room.
pub fn post_all(evd: &Evd, poster: u64, each: u64, patience: Duration) -> Result<()> {
    for number in 0..each {
        let start = Instant::now();
        while let Err(error) = evd.post_se((poster << 32) | number) {
            ensure!(error.kind() == Some(Type::QUEUE_FULL), "{error}");
            ensure!(start.elapsed() < patience, "no room for event {number} of poster {poster}");
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Takes all events of the posters, and checks that each poster's arrive in order.
pub fn take_all(posters: u64, each: u64, mut next: impl FnMut() -> Result<Event>) -> Result<()> {
    let mut expected = vec![0; posters as usize];
    for _ in 0..posters * each {
        let (word, _) = number(Ok((next()?, 0)))?;
        let due = expected.get_mut((word >> 32) as usize).context("an unknown poster")?;
        same("number of that poster", word & 0xffff_ffff, *due)?;
        *due += 1;
    }
    Ok(())
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Measures memory and time after a round, and checks them for growth.

use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::done;
use crate::machine::{meminfo, no_objects_left, SLAB};
use anyhow::{ensure, Result};
use libkdapl::DtoOperation;
use std::fmt;
use std::time::{Duration, Instant};

/// Limits in kilobytes: growth of the kernel's own objects since the first round, and loss of
/// available memory.
const SLAB_DRIFT: i64 = 8 << 10;
const AVAILABLE_DRIFT: i64 = 48 << 10;
/// Factor by which a message may become slower.
const SLOWER: f64 = 2.0;
const PINGS: usize = 100;

/// Measurement after all processes have ended.
#[derive(Clone, Copy)]
pub struct Sample {
    slab: i64,
    available: i64,
    ping: Duration,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slab, available, ping } = self;
        write!(
            f,
            "no objects left, {slab} kB in slabs, {available} kB available, ping-pong {ping:.1?}"
        )
    }
}

impl Sample {
    /// Waits until no objects are left, and measures.
    pub fn take(context: &Context) -> Result<Self> {
        no_objects_left(context.settings.scale)?;
        let ping = ping(context)?;
        no_objects_left(context.settings.scale)?;
        Ok(Self { slab: meminfo(SLAB)?, available: meminfo("MemAvailable")?, ping })
    }
}

/// Measures the round trip of a message: the best of five medians.
fn ping(context: &Context) -> Result<Duration> {
    let pair = Pair::new(context, Shape::default())?;
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let times = (0..PINGS).map(|_| round_trip(context, &pair)).collect::<Result<Vec<_>>>();
        let mut times = times?;
        times.sort_unstable();
        best = best.min(times[PINGS / 2]);
    }
    Ok(best)
}

fn round_trip(context: &Context, pair: &Pair) -> Result<Duration> {
    let ends = [(&pair.client, &pair.server), (&pair.server, &pair.client)];
    ends.iter().try_for_each(|(_, to)| to.receive(0, 64, 1))?;
    let start = Instant::now();
    for (from, to) in ends {
        from.send(64, 64, 2)?;
        done(&context.next(&to.recv)?, DtoOperation::Receive, 64, 1)?;
    }
    let took = start.elapsed();
    ends.iter().try_for_each(|(from, _)| context.next(&from.request).map(drop))?;
    Ok(took)
}

/// Measurements of a run.
#[derive(Default)]
pub struct MemoryGrowth(Vec<Sample>);

impl MemoryGrowth {
    pub fn add(&mut self, sample: Sample) {
        self.0.push(sample);
    }

    /// Compares the end with the beginning. Ignores the first round, in which caches fill.
    pub fn judge(&self) -> Result<()> {
        let [_, rounds @ ..] = &self.0[..] else { return Ok(()) };
        let third = rounds.len().div_ceil(3);
        let (first, last) = (&rounds[..third], &rounds[rounds.len() - third..]);
        let least =
            |part: &[Sample], of: fn(&Sample) -> i64| part.iter().map(of).min().unwrap_or(0);
        let grown = least(last, |sample| sample.slab) - least(first, |sample| sample.slab);
        ensure!(grown <= SLAB_DRIFT, "the kernel's objects grew by {grown} kB");
        let gone =
            -(least(last, |sample| -sample.available) - least(first, |sample| -sample.available));
        ensure!(gone >= -AVAILABLE_DRIFT, "{} kB less memory available", -gone);
        let best = |part: &[Sample]| part.iter().map(|s| s.ping).min().unwrap_or_default();
        let (before, after) = (best(first), best(last));
        let factor = after.as_secs_f64() / before.as_secs_f64();
        ensure!(factor < SLOWER, "a ping-pong takes {after:.1?}, at first {before:.1?}");
        println!(
            "soak: slabs {grown:+} kB, available {gone:+} kB, ping-pong {before:.1?} to {after:.1?}"
        );
        Ok(())
    }
}

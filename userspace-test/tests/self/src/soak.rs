// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Soak test: runs everything at once for hours. Connections, storms, random sequences of calls, a
//! hostile peer, users that are killed, and devices that are removed and restored.
//!
//! A round takes a minute. At its end all processes are killed. Then it measures the number of
//! objects (0), the memory, and the time of a message. At the end, memory and time must be as after
//! the first round.

mod actors;
mod measure;

use self::actors::Actors;
use self::measure::{MemoryGrowth, Sample};
use crate::context::{Context, Settings};
use crate::machine::{mount_debugfs, DeviceGuard};
use anyhow::{Context as _, Result};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time of the load in each minute. The rest is for the measurement.
const ROUND: Duration = Duration::from_secs(45);

/// Runs for `minutes`, and reports the result.
pub fn run(minutes: u32, settings: &Settings) -> ExitCode {
    mount_debugfs();
    println!("soak of {minutes} minutes, seed {}, scale {:.1}", settings.seed, settings.scale);
    match soak(minutes, settings) {
        Ok(()) => {
            println!("soak: no growth in {minutes} minutes");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("soak: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn soak(minutes: u32, settings: &Settings) -> Result<()> {
    let context = Context::new(settings)?;
    let guard = DeviceGuard::new(&context)?;
    let mut growth = MemoryGrowth::default();
    for minute in 1..=minutes.max(3) {
        let (lives, killed, removals) = round(&context, &guard)?;
        let sample = Sample::take(&context).with_context(|| format!("after minute {minute}"))?;
        println!(
            "minute {minute}: {lives} processes, {killed} killed, {removals} removals; {sample}"
        );
        growth.add(sample);
    }
    growth.judge()
}

/// Runs all actors for a while, and ends them.
fn round(context: &Context, guard: &DeviceGuard) -> Result<(u64, u64, u64)> {
    let end = Instant::now() + ROUND;
    let mut actors = Actors::new(context)?;
    let mut removals = 0;
    let mut next_removal = Instant::now() + actors::between(context, 5.0, 20.0);
    while Instant::now() < end {
        actors.go_on()?;
        if Instant::now() > next_removal {
            let hosts = context.hosts();
            let host = hosts[context.rng().usize(0..hosts.len())];
            guard.delete_of(host)?;
            std::thread::sleep(actors::between(context, 0.0, 2.0));
            guard.add()?;
            removals += 1;
            next_removal = Instant::now() + actors::between(context, 5.0, 20.0);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let (lives, killed) = actors.end()?;
    Ok((lives, killed, removals))
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cost of a message between two kernel threads: DAT compared with raw verbs.
//!
//! Two modules (`userspace-test/tests/kernel/ping.c`) run the same ping-pong, one over each
//! interface: a thread sends 64 bytes and sleeps until the other's message arrives. Both take the
//! completions of their sends 32 at a time. Both threads are in one guest with one device.
//!
//! Either each thread has its own CPU, or both threads and soft-RoCE's workers share one. In the
//! latter case the result depends more on the scheduler, which may run a thread in vain, than on
//! the cost of a message (docs/performance.md). The limit therefore applies to two CPUs only.

use crate::benchmark::Sink;
use crate::sample::Sample;
use crate::side::{both, text, Side};
use anyhow::{Context, Result};
use std::fs;

/// Number of round trips measured, and of those before the measurement.
const COUNT: u32 = 5000;
const WARM_UP: u32 = 300;

/// Path of the modules in the guest.
const FOLDER: &str = "/usr/lib/modules/kdapl";

/// Returns the microseconds of half a round trip.
fn time(side: Side, count: u32) -> Result<f64> {
    let module = match side {
        Side::Ours => "kdapl_ping",
        Side::Peer => "verbs_ping",
    };
    time_of(module, &format!("count={count}"))
}

/// Loads a module with these parameters, and returns the microseconds that it measures.
fn time_of(module: &str, parameters: &str) -> Result<f64> {
    text(&format!("insmod {FOLDER}/{module}.ko {parameters}"))?;
    let measured = fs::read_to_string(format!("/sys/module/{module}/parameters/ns"))
        .with_context(|| format!("{module} did not finish"));
    text(&format!("rmmod {module}"))?;
    let ns: f64 = measured?.trim().parse()?;
    Ok(ns / 1000.0)
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    both(|side| time(side, WARM_UP))?;
    let (ours, peer) = both(|side| time(side, COUNT))?;
    let what = "kernel threads, ping-pong, 64 bytes, waiting: half a round trip";
    let (what, limit) = match std::thread::available_parallelism()?.get() {
        1 => (format!("{what}, on one processor"), None),
        _ => (format!("{what}, on two processors"), Some(1.08)),
    };
    sink(Sample { peer: Some(peer), ..Sample::alone("kernel-ping", &what, "us", ours, limit) })
}

/// Measures a ping-pong of upcalls (`userspace-test/tests/kernel/ping_upcalls.c`): in soft
/// interrupts, and beside them in work items.
pub fn run_upcalls(sink: Sink<'_>) -> Result<()> {
    let upcalls = |side, count| {
        let bh = u8::from(matches!(side, Side::Ours));
        time_of("kdapl_upcall_ping", &format!("count={count} bh={bh}"))
    };
    both(|side| upcalls(side, WARM_UP))?;
    let (ours, peer) = both(|side| upcalls(side, COUNT))?;
    let processors = std::thread::available_parallelism()?.get();
    let what = format!(
        "upcalls in soft interrupts, beside work items, ping-pong, 64 bytes: half a round trip, \
         processors: {processors}"
    );
    sink(Sample { peer: Some(peer), ..Sample::alone("kernel-upcalls", &what, "us", ours, None) })
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What a message costs between two threads of the kernel: DAT beside raw verbs.
//!
//! Two modules play the same game (`userspace-test/kernel/ping.c`), one with each: a thread sends
//! 64 bytes and sleeps until the other's are there. Both take the completions of their sends 32 at
//! a time, and both threads are in one guest with one device.
//!
//! Each thread has a processor of its own; or both of them, and soft-RoCE's workers, share one: then
//! it depends on the scheduler which of them runs in vain, and more on that than on what a message
//! costs (docs/performance.md). So the limit is for two processors.

use crate::benchmark::Sink;
use crate::sample::Sample;
use crate::side::{both, text, Side};
use anyhow::{Context, Result};
use std::fs;

/// Round trips that are measured, the fewer to warm up.
const COUNT: u32 = 5000;
const WARM_UP: u32 = 300;

/// Where the guest has modules.
const FOLDER: &str = "/usr/lib/modules/kdapl";

/// Microseconds of half a round trip.
fn time(side: Side, count: u32) -> Result<f64> {
    let module = match side {
        Side::Ours => "kdapl_ping",
        Side::Peer => "verbs_ping",
    };
    text(&format!("insmod {FOLDER}/{module}.ko count={count}"))?;
    let measured = fs::read_to_string(format!("/sys/module/{module}/parameters/ns"))
        .with_context(|| format!("{module} does not come to its end"));
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Longest call on a CNO that a million EVDs trigger.
//!
//! A CNO's lock is held with interrupts off. On an emulated CPU that takes one nanosecond for each
//! instruction, a section with interrupts off is never longer than the call that contains it. So
//! the longest of many calls bounds all of them.
//!
//! One call is not bounded that way: the one that adds an EVD when the CNO's table is full. It
//! allocates and initialises more entries, without the lock.

use crate::benchmark::Sink;
use crate::ends::{Ends, PATIENCE};
use crate::sample::Sample;
use crate::times::Times;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Cno, Evd, EvdFlags};

const EVDS: usize = 1_000_000;
/// Number of calls of each type that are measured at the end.
const CALLS: usize = 4_096;
/// Maximum of a call, in microseconds.
const LIMIT_US: f64 = 100.0;
/// Number of calls to add an EVD that may grow the table: it doubles.
const GROWTHS: usize = 24;

/// Adds all EVDs to the CNO. Returns them, and the times of the calls.
fn fill(ends: &Ends, cno: &Cno) -> Result<(Vec<Evd>, Times)> {
    let mut times = Times::default();
    let mut evds = Vec::with_capacity(EVDS);
    for number in 0..EVDS {
        let evd = ends.ia.create_evd(EvdFlags::SOFTWARE, 1).with_context(|| format!("{number}"))?;
        times.call(|| Ok(evd.modify_cno(Some(cno))?))?;
        evds.push(evd);
    }
    Ok((evds, times))
}

/// Calls that are measured, in this order.
const MEASURED: [&str; 4] = ["an event that triggers", "a wait", "taking the event", "leaving"];

/// Measures calls, each on another EVD, spread over all of them.
fn measure(cno: &Cno, evds: &[Evd]) -> Result<[Times; 4]> {
    let mut times: [Times; 4] = Default::default();
    let [post, wait, take, leave] = &mut times;
    for evd in evds.iter().step_by(EVDS / CALLS).take(CALLS) {
        post.call(|| Ok(evd.post_se(1)?))?;
        let found = wait.call(|| Ok(cno.wait(Some(PATIENCE))?))?;
        ensure!(found == Some(evd.handle()), "another EVD");
        take.call(|| Ok(evd.dequeue()?))?;
        leave.call(|| Ok(evd.modify_cno(None)?))?;
    }
    Ok(times)
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    let ends = Ends::open()?;
    let cno = ends.ia.create_cno(None)?;
    let (evds, joining) = fill(&ends, &cno)?;
    ensure!(cno.query()?.evds as usize == EVDS, "not all EVDs are on the CNO");
    let mut tell = |what: &str, longest: f64| {
        let what = format!("a million EVDs on a CNO, {what}: the longest call");
        sink(Sample::alone("crowd", &what, "us", longest, Some(LIMIT_US)))
    };
    tell("joining without growth", joining.longest(GROWTHS)?)?;
    for (what, times) in MEASURED.into_iter().zip(measure(&cno, &evds)?) {
        tell(what, times.longest(0)?)?;
    }
    Ok(())
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Kernel memory of an event queue and of each of its entries, and a check that an event needs no
//! allocation.
//!
//! Many queues of one type are created; the growth of the kernel's slab and vmalloc memory is
//! divided by their number. The difference between a short and a long queue is that of their
//! entries. A queue for completions includes the provider's completion queue, here soft-RoCE's.
//!
//! Allocations are counted with the kernel's tracepoints, those with the module's code on the
//! stack, in any context: while messages and software events are posted, arrive and are waited for
//! or dequeued.

use crate::benchmark::Sink;
use crate::ends::{arrived, Ends, PATIENCE};
use crate::sample::Sample;
use anyhow::{ensure, Context, Result};
use libkdapl::{DtoOperation, Evd, EvdFlags};
use observe::count::{Stacks, ALLOCATIONS};

/// Number of queues of each type, and number of those created before the measurement, so that the
/// table of handles, which grows in steps, does not grow during it.
const EVDS: usize = 300;
const BEFORE: usize = 600;
const SHORT: i32 = 64;
const LONG: i32 = 1024;
/// Number of events of each type.
const EVENTS: u64 = 10_000;

/// Returns slab and vmalloc memory in bytes.
fn used() -> Result<f64> {
    // Folds the per-CPU counters into the totals.
    std::fs::write("/proc/sys/vm/stat_refresh", "1")
        .context("cannot update the memory statistics")?;
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let of = |name: &str| -> Result<f64> {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .context("no such memory statistic")?;
        let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes * 1024.0)
    };
    Ok(of("Slab:")? + of("VmallocUsed:")?)
}

/// Returns the size of an EVD in bytes.
fn of_evd(ends: &Ends, flags: EvdFlags, qlen: i32) -> Result<f64> {
    let make = |count: usize| {
        (0..count).map(|_| ends.ia.create_evd(flags, qlen)).collect::<Result<Vec<Evd>, _>>()
    };
    let _before = make(BEFORE)?;
    let before = used()?;
    let _evds = make(EVDS)?;
    Ok((used()? - before) / EVDS as f64)
}

/// Returns the number of allocations of the module during `what`.
fn allocations(what: impl FnOnce() -> Result<()>) -> Result<u64> {
    let stacks = Stacks::of(ALLOCATIONS)?;
    what()?;
    stacks.with("kdapl")
}

/// Returns the number of allocations while messages are posted and waited for, and while software
/// events are posted and waited for on a CNO.
fn of_events(ends: &Ends) -> Result<f64> {
    let control = allocations(|| {
        ends.ia.create_evd(EvdFlags::DTO, SHORT)?;
        Ok(())
    })?;
    ensure!(control > 0, "creating an EVD made no allocation: the counter does not work");
    let evd = ends.ia.create_evd(EvdFlags::DTO | EvdFlags::SOFTWARE, SHORT)?;
    let pair = ends.pair(&evd, 8)?;
    let message = |number: u64| -> Result<()> {
        ends.receive(&pair, number)?;
        ends.send(&pair)?;
        let event = evd.wait(Some(PATIENCE), 1)?.0;
        ensure!(arrived(&event, DtoOperation::Receive)? == number, "unexpected message");
        ends.all_sent(1)
    };
    let messages = allocations(|| (0..EVENTS).try_for_each(message))?;
    let cno = ends.ia.create_cno(None)?;
    evd.modify_cno(Some(&cno))?;
    let software = |number: u64| -> Result<()> {
        evd.post_se(number)?;
        ensure!(cno.wait(Some(PATIENCE))? == Some(evd.handle()), "unexpected EVD");
        evd.dequeue()?;
        ensure!(evd.dequeue().is_err_and(|error| error.is_empty()), "unexpected event");
        Ok(())
    };
    let software = allocations(|| (0..EVENTS).try_for_each(software))?;
    Ok((messages + software) as f64)
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    let ends = Ends::open()?;
    let mut tell = |what: &str, unit: &str, ours: f64, limit| {
        sink(Sample::alone("memory", what, unit, ours, limit))
    };
    let software = of_evd(&ends, EvdFlags::SOFTWARE, SHORT)?;
    tell("an EVD for 64 software events", "bytes", software, None)?;
    let per_event = (of_evd(&ends, EvdFlags::SOFTWARE, LONG)? - software) / f64::from(LONG - SHORT);
    tell("each event that an EVD has room for", "bytes", per_event, None)?;
    let dto = of_evd(&ends, EvdFlags::DTO, SHORT)?;
    tell("an EVD for 64 DTOs, with soft-RoCE's completion queue", "bytes", dto, None)?;
    let what = "10,000 messages and 10,000 software events: allocations";
    tell(what, "times", of_events(&ends)?, Some(0.0))
}

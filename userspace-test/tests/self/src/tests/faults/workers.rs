// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Lets allocations fail in the kernel's workers, which run handlers of `rdma_cm` and work items.
//!
//! Only allocations that are charged to a user fail: they are the module's. The kernel's own RDMA
//! code does not survive failures. A queue pair for connection management stays without receives,
//! and `rdma_cm` takes a lock of a class that it holds.

use super::inject;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::done;
use crate::harness::skip;
use crate::tests::psp::Side;
use anyhow::{bail, ensure, Result};
use libkdapl::{
    Close, ConnectionEvent, DtoOperation, Ep, EpCreator, Event, EventKind, Psp, PspOptions,
};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// Kinds of allocations that fail.
const KINDS: [&str; 2] = ["failslab", "kdapl/fail_kvmalloc"];
/// Percentage of failing allocations.
const FAIL: &str = "20";
/// Caches of memory that is charged to a user.
const CACHES: &str = "/sys/kernel/slab";
const CHARGED: &str = "kmalloc-cg-";
/// Number of concurrent connects.
const BATCH: usize = 16;

/// Lets memory fail in workers until dropped.
struct FailingWorkers;

impl FailingWorkers {
    fn begin(context: &Context) -> Result<Self> {
        inject::set_up_for(context)?;
        for kind in KINDS {
            inject::set(&format!("{kind}/task-filter"), "Y")?;
        }
        inject::set("failslab/cache-filter", "Y")?;
        let failing = Self;
        mark_caches("1")?;
        mark_workers("1")?;
        for kind in KINDS {
            inject::set(&format!("{kind}/probability"), FAIL)?;
        }
        Ok(failing)
    }
}

impl Drop for FailingWorkers {
    fn drop(&mut self) {
        let ended = KINDS
            .iter()
            .try_for_each(|kind| inject::set(&format!("{kind}/probability"), "0"))
            .and_then(|()| inject::set("failslab/cache-filter", "N"))
            .and_then(|()| mark_caches("0"))
            .and_then(|()| mark_workers("0"));
        if let Err(error) = ended {
            eprintln!("{error:#}");
        }
    }
}

/// Marks the caches that may fail.
fn mark_caches(value: &str) -> Result<()> {
    let mut marked = 0;
    for entry in fs::read_dir(CACHES).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(CHARGED) {
            fs::write(entry.path().join("failslab"), value)?;
            marked += 1;
        }
    }
    if marked == 0 {
        return skip("this kernel has no separate caches for charged memory");
    }
    Ok(())
}

/// Marks all workers that exist.
fn mark_workers(value: &str) -> Result<()> {
    for entry in fs::read_dir("/proc")?.flatten() {
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if name.starts_with("kworker/") {
            // The worker may have ended meanwhile.
            let _ = fs::write(entry.path().join("make-it-fail"), value);
        }
    }
    Ok(())
}

/// Service points of each kind that allocates memory when a request arrives.
struct ServicePoints {
    side: Side,
    points: Vec<Psp>,
    eps: Vec<Ep>,
}

impl ServicePoints {
    fn new(context: &Context) -> Result<Self> {
        let side = Side::server(context)?;
        side.end.connect.resize(4 * BATCH as i32)?;
        let kinds =
            [(0, EpCreator::Consumer), (0, EpCreator::Provider), (1 << 33, EpCreator::Consumer)];
        let mut points = Vec::new();
        for (above, endpoints) in kinds {
            let conn_qual = Some(above + context.port());
            let options = PspOptions { conn_qual, endpoints, ..Default::default() };
            points.push(side.ia.create_psp_with(&side.requests, &options)?);
        }
        Ok(Self { side, points, eps: Vec::new() })
    }

    /// Accepts the requests that have arrived.
    fn answer(&mut self) -> Result<()> {
        while let Ok((event, _)) = self.side.requests.dequeue() {
            let Event::ConnectionRequest { mut cr, .. } = event else {
                bail!("unexpected {event}")
            };
            let ep = match cr.provided_ep()? {
                Some(ep) => {
                    self.side.configure(&ep)?;
                    cr.accept(None, &[])?;
                    ep
                }
                None => {
                    let ep = self.side.end.another_ep()?;
                    cr.accept(&ep, &[])?;
                    ep
                }
            };
            self.eps.push(ep);
        }
        Ok(())
    }
}

/// Starts several connects. Checks that each reports one result.
fn batch(
    context: &Context,
    points: &mut ServicePoints,
    client: &End,
) -> Result<BTreeMap<String, u64>> {
    let mut outcomes = BTreeMap::new();
    let timeout = Some(context.scaled(Duration::from_millis(500)));
    let mut eps = Vec::new();
    for number in 0..BATCH {
        let ep = client.another_ep()?;
        let port = points.points[number % points.points.len()].conn_qual();
        ep.connect(context.server_address(), port, timeout, b"hello")?;
        eps.push(ep);
    }
    let end = Instant::now() + context.patience();
    let mut heard = 0;
    while heard < BATCH {
        points.answer()?;
        match client.connect.wait(Some(Duration::from_millis(5)), 1) {
            Ok((event, _)) => {
                let EventKind::Connection(kind) = event.kind() else { bail!("unexpected {event}") };
                let is_first =
                    kind != ConnectionEvent::Disconnected && kind != ConnectionEvent::Broken;
                heard += usize::from(is_first);
                *outcomes.entry(format!("{kind}")).or_insert(0) += 1;
            }
            Err(error) if error.is_timeout() => {}
            Err(error) => return Err(error.into()),
        }
        ensure!(
            Instant::now() < end,
            "{heard} of {BATCH} connects have reported a result: {outcomes:?}"
        );
    }
    for ep in eps.iter().chain(&points.eps) {
        // The connection may have ended already.
        let _ = ep.disconnect(Close::Abrupt);
    }
    points.eps.clear();
    Ok(outcomes)
}

/// Takes the remaining events.
fn forget(end: &End) {
    while end.connect.dequeue().is_ok() {}
}

pub fn connects(context: &Context) -> Result<()> {
    let mut points = ServicePoints::new(context)?;
    let client = End::new(&context.open()?, Shape::default())?;
    client.connect.resize(4 * BATCH as i32)?;
    let mut all = BTreeMap::new();
    let failing = FailingWorkers::begin(context)?;
    let before = inject::failures()?;
    for _ in 0..context.count(100).clamp(5, 100) {
        // New workers, too.
        mark_workers("1")?;
        for (kind, count) in batch(context, &mut points, &client)? {
            *all.entry(kind).or_insert(0) += count;
        }
        forget(&client);
        forget(&points.side.end);
    }
    let failures = inject::failures()? - before;
    drop(failing);
    println!("{failures} failures; {all:?}");
    ensure!(failures > 0, "nothing failed");
    drop((points, client));
    // Everything works again.
    let pair = Pair::new(context, Shape::default())?;
    pair.server.receive(0, 64, 1)?;
    pair.client.send(0, 64, 2)?;
    done(&context.next(&pair.server.recv)?, DtoOperation::Receive, 64, 1)
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Objects that a driver fails to destroy. `kdapl_disguise` refuses it, and then reports events of
//! the objects, as a driver may that still uses them. What is leaked stays in the guest, and the
//! module stays loaded.

use super::drivers::disguised;
use super::hostile::good_transfer;
use super::kernel::{run_alone, rust_lost_memory, Loaded};
use super::srq_traffic::{send, Server};
use super::tests;
use super::user_limits::held;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{fails_saying, same};
use crate::harness::skip;
use crate::machine::{command, DeviceGuard, KernelLog};
use anyhow::{ensure, Context as _, Result};
use std::fs;

tests! {
    #![Leaks]
    queue_pairs, 60, "Queue pairs that a driver does not destroy are leaked, and later ones work";
    completion_queues, 60,
        "Completion queues that a driver does not destroy are leaked, and later ones work";
    memory_regions, 60,
        "Memory regions that a driver does not deregister are leaked, and later ones work";
    shared_receive_queues, 60,
        "Shared receive queues that a driver does not destroy are leaked, and later ones work";
    protection_domains, 60,
        "Protection domains that a driver does not free are leaked, and later ones work";
    memory_of_kernel, 60,
        "A kernel consumer learns that its memory is not free if a driver does not deregister it";
    device_removed, 240, "A device is removed after objects of each kind were leaked";
}

/// User of the tests.
const ROOT: u32 = 0;

/// Kind of objects.
#[derive(Clone, Copy)]
struct Kind {
    /// Bit of the parameter `refuse`.
    bit: u64,
    /// Name in the kernel log.
    name: &'static str,
    /// Name in the list of a user's resources.
    item: &'static str,
}

const QUEUE_PAIR: Kind = Kind { bit: 1, name: "queue pair", item: "queue_pairs" };
const COMPLETION_QUEUE: Kind = Kind { bit: 2, name: "completion queue", item: "completion_queues" };
const MEMORY_REGION: Kind = Kind { bit: 4, name: "memory region", item: "memory_regions" };
const SHARED_RECEIVE_QUEUE: Kind =
    Kind { bit: 8, name: "shared receive queue", item: "shared_receive_queues" };
const PROTECTION_DOMAIN: Kind =
    Kind { bit: 16, name: "protection domain", item: "protection_domains" };

/// A leak of objects of one kind.
struct Leak {
    kind: Kind,
    /// Kinds of objects that the leaked ones use, and that cannot be destroyed either.
    used: &'static [Kind],
    /// Uses objects of the kind, and frees them.
    work: fn(&Context) -> Result<()>,
}

const QUEUE_PAIRS: Leak = Leak {
    kind: QUEUE_PAIR,
    used: &[COMPLETION_QUEUE, SHARED_RECEIVE_QUEUE, PROTECTION_DOMAIN],
    work: both,
};
const COMPLETION_QUEUES: Leak = Leak { kind: COMPLETION_QUEUE, used: &[], work: transfer };
const MEMORY_REGIONS: Leak =
    Leak { kind: MEMORY_REGION, used: &[PROTECTION_DOMAIN], work: transfer };
const SHARED_RECEIVE_QUEUES: Leak =
    Leak { kind: SHARED_RECEIVE_QUEUE, used: &[PROTECTION_DOMAIN], work: receive_shared };
const PROTECTION_DOMAINS: Leak = Leak { kind: PROTECTION_DOMAIN, used: &[], work: transfer };

fn queue_pairs(context: &Context) -> Result<()> {
    later_ones_work(context, &QUEUE_PAIRS)
}

fn completion_queues(context: &Context) -> Result<()> {
    later_ones_work(context, &COMPLETION_QUEUES)
}

/// The device may still use the pages of the regions. So they stay pinned, and count.
fn memory_regions(context: &Context) -> Result<()> {
    const ITEM: &str = "pinned_memory_kb";
    let before = held(ROOT, ITEM)?;
    later_ones_work(context, &MEMORY_REGIONS)?;
    let after = held(ROOT, ITEM)?;
    ensure!(after > before, "pinned memory in KB: {after}, before the leak {before}");
    Ok(())
}

fn shared_receive_queues(context: &Context) -> Result<()> {
    later_ones_work(context, &SHARED_RECEIVE_QUEUES)
}

fn protection_domains(context: &Context) -> Result<()> {
    later_ones_work(context, &PROTECTION_DOMAINS)
}

/// Uses objects, and frees them.
fn transfer(context: &Context) -> Result<()> {
    good_transfer(context, &Pair::new(context, Shape::default())?)
}

/// The same with a shared receive queue.
fn receive_shared(context: &Context) -> Result<()> {
    let server = Server::new(context, 8, 8)?;
    let ep = server.ep()?;
    let client = server.client(context, &context.open()?, &ep)?;
    server.post(0..4)?;
    send(context, &client)?;
    context.next(&server.recv).map(drop)
}

/// Both, one after the other.
fn both(context: &Context) -> Result<()> {
    transfer(context)?;
    receive_shared(context)
}

/// References to the module.
fn references() -> Result<u64> {
    Ok(fs::read_to_string("/sys/module/kdapl/refcnt")?.trim().parse()?)
}

/// Counts the objects of a kind that were leaked according to the kernel log.
fn leaks_in(log: &str, name: &str) -> u64 {
    let line = format!(
        "kdapl: failed to destroy a {name} (-{}): it is leaked, and the module cannot be unloaded",
        libc::EBUSY
    );
    log.matches(&line).count() as u64
}

/// Leaks objects, and checks that they still count for their user, and that others work.
fn later_ones_work(context: &Context, leak: &Leak) -> Result<()> {
    let kinds: Vec<Kind> = leak.used.iter().copied().chain([leak.kind]).collect();
    let count = || kinds.iter().map(|kind| held(ROOT, kind.item)).collect::<Result<Vec<_>>>();
    let (before, log) = (count()?, KernelLog::from_now()?);
    let disguise = make(context, leak)?;
    let (after, log) = (count()?, log.rest()?);
    for (number, kind) in kinds.iter().enumerate() {
        let kept = after[number].checked_sub(before[number]);
        same(&format!("leaked {}", kind.item), kept, Some(leaks_in(&log, kind.name)))?;
    }
    // What the callbacks use was not freed.
    disguise.set("call_back", 1)?;
    (leak.work)(context).with_context(|| format!("after the leak of a {}", leak.kind.name))?;
    let_go(disguise)?;
    fails_saying("in use", command("rmmod kdapl"))?;
    (leak.work)(context)
}

/// Refuses to destroy objects of a kind after they were used. Objects that they use cannot be
/// destroyed either. Returns when nothing but the driver uses any of these.
fn make(context: &Context, leak: &Leak) -> Result<Loaded> {
    let &Leak { kind: Kind { bit, name, .. }, used, work } = leak;
    let disguise = disguised(context, -1)?;
    work(context)?;
    let (mut log, before) = (KernelLog::from_now()?, references()?);
    disguise.set("refuse", bit)?;
    work(context)?;
    let (mut text, mut refused) = (String::new(), 0);
    // An id that lingers destroys its queue pair later than the adapter is closed.
    context.until("all are leaked, and hold the module", || {
        refused = disguise.parameter("refused")?;
        text += &log.more()?;
        let all = text.matches("the module cannot be unloaded").count() as u64;
        Ok(refused != 0 && all == disguise.parameter("leaked")? && references()? == before + all)
    })?;
    disguise.set("refuse", 0)?;
    same(
        &format!("leaked objects in the log, of the kind {name}"),
        leaks_in(&text, name),
        refused,
    )?;
    for Kind { name, .. } in used {
        ensure!(leaks_in(&text, name) != 0, "no {name} was leaked");
    }
    Ok(disguise)
}

/// Destroys the leaked objects in the end, since soft-RoCE warns of those that are left at its own
/// end. What kDAPL has leaked stays.
fn let_go(disguise: Loaded) -> Result<()> {
    disguise.set("let_go", 1)?;
    disguise.unload()
}

fn memory_of_kernel(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("over iWARP memory is opened to peers by RMRs only");
    }
    let guard = DeviceGuard::new(context)?;
    let disguise = disguised(context, -1)?;
    disguise.set("refuse", MEMORY_REGION.bit)?;
    run_alone(context, "lmr_free_lost")?;
    rust_lost_memory(context)?;
    disguise.set("refuse", 0)?;
    let_go(disguise)?;
    guard.delete()?;
    guard.add()?;
    transfer(context)
}

fn device_removed(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    for leak in
        [QUEUE_PAIRS, COMPLETION_QUEUES, MEMORY_REGIONS, SHARED_RECEIVE_QUEUES, PROTECTION_DOMAINS]
    {
        let_go(make(context, &leak)?)?;
        guard.delete()?;
        guard.add()?;
        transfer(context).with_context(|| format!("after the leak of a {}", leak.kind.name))?;
    }
    Ok(())
}

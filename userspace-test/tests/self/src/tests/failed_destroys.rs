// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Objects that a driver fails to destroy. `kdapl_disguise` refuses it, and then reports events of
//! the objects, as a driver may that still uses them. What is leaked stays in the guest, and the
//! module stays loaded.

use super::hostile::good_transfer;
use super::kernel::Loaded;
use super::srq_traffic::{send, Server};
use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::same;
use crate::machine::{command, KernelLog};
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
}

/// Kinds of objects: the bit of the parameter `refuse`, and the name in the kernel log.
const QUEUE_PAIR: (u64, &str) = (1, "queue pair");
const COMPLETION_QUEUE: (u64, &str) = (2, "completion queue");
const MEMORY_REGION: (u64, &str) = (4, "memory region");
const SHARED_RECEIVE_QUEUE: (u64, &str) = (8, "shared receive queue");
const PROTECTION_DOMAIN: (u64, &str) = (16, "protection domain");

fn queue_pairs(context: &Context) -> Result<()> {
    // Each keeps its endpoint, and with that the completion queues and the domain.
    is_leaked(context, QUEUE_PAIR, &[], transfer)
}

fn completion_queues(context: &Context) -> Result<()> {
    is_leaked(context, COMPLETION_QUEUE, &[], transfer)
}

fn memory_regions(context: &Context) -> Result<()> {
    is_leaked(context, MEMORY_REGION, &[PROTECTION_DOMAIN], transfer)
}

fn shared_receive_queues(context: &Context) -> Result<()> {
    is_leaked(context, SHARED_RECEIVE_QUEUE, &[], receive_shared)
}

fn protection_domains(context: &Context) -> Result<()> {
    is_leaked(context, PROTECTION_DOMAIN, &[], transfer)
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

/// Refuses to destroy objects of a kind after `work` has used them. Objects that are `held` by
/// those cannot be destroyed either.
fn is_leaked(
    context: &Context,
    (bit, name): (u64, &str),
    held: &[(u64, &str)],
    work: fn(&Context) -> Result<()>,
) -> Result<()> {
    let disguise = Loaded::new("kdapl_disguise", &format!("device={}", context.client.device))?;
    work(context)?;
    let (mut log, before) = (KernelLog::from_now()?, references()?);
    disguise.set("refuse", bit)?;
    work(context)?;
    let (mut text, mut refused) = (String::new(), 0);
    // An id that lingers destroys its queue pair later than the adapter is closed.
    context.until("all are leaked, and hold the module", || {
        refused = disguise.parameter("refused")?;
        text += &log.more()?;
        let leaked = |name| leaks_in(&text, name) > 0;
        let all = text.matches("the module cannot be unloaded").count() as u64;
        Ok(leaked(name)
            && held.iter().all(|(_, name)| leaked(name))
            && references()? == before + all)
    })?;
    disguise.set("refuse", 0)?;
    same("objects in the log", leaks_in(&text, name), refused)?;
    // What the callbacks use was not freed.
    disguise.set("call_back", 1)?;
    work(context).with_context(|| format!("after the leak of a {name}"))?;
    disguise.unload()?;
    ensure!(command("rmmod kdapl").is_err(), "the module was unloaded");
    work(context)
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Brings one user to its limits, and checks that other users are not affected.
//!
//! The tenant is another process: an ordinary user, in a cgroup and on a host of its own.

mod close_time;
pub mod module_memory;
pub mod tenant;

pub use self::tenant::{become_tenant, tenant, ORDINARY_USER};

use self::close_time::{close_time_is_proportional, removal_time_is_proportional};
use self::tenant::{start, Role};
use super::connect_routes::Ports;
use super::psp::Side;
use super::tests;
use crate::cgroup::Cgroup;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, same};
use crate::harness::skip;
use crate::machine::{has_kasan, meminfo};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent, Evd, EvdFlags, Event, Ia, PspOptions};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

tests! {
    #[Hosts, Long]
    user_without_memory_rejects, 120, "A tenant without memory rejects its callers and stays alive, and other users connect";
    #[Hosts]
    refused_above_limits, 120, "A user is refused more than its limits, and can use them again when its process ends";
    driver_memory, 60, "The memory that drivers allocate for a user is estimated and limited";
    listeners, 60, "The kernel's memory for listeners with long backlogs is estimated";
    pinned_memory, 60, "The memory that a user has pinned is limited, also if the processes that registered it have ended";
    #[Hosts]
    same_in_user_namespaces, 60, "A user has one limit, even in a user namespace that it creates";
    #[Hosts]
    local_ports, 120, "A user gets half of the local ports, for connects and for service points, and others connect";
    #[Long]
    close_time_is_proportional, 600, "The time to close an adapter is proportional to its number of objects";
    #[Long]
    removal_time_is_proportional, 600, "The time to remove a device is proportional to its number of endpoints, with a full EVD, too";
}

/// Sets a parameter of a module, and restores it when dropped.
pub struct Parameter {
    path: PathBuf,
    before: String,
}

impl Parameter {
    /// Sets a parameter of kdapl.ko.
    pub fn set(name: &str, value: u64) -> Result<Self> {
        Self::set_of("kdapl", name, value)
    }

    pub fn set_of(module: &str, name: &str, value: u64) -> Result<Self> {
        let path = PathBuf::from(format!("/sys/module/{module}/parameters/{name}"));
        let before = fs::read_to_string(&path).with_context(|| name.to_string())?;
        fs::write(&path, value.to_string())?;
        Ok(Self { path, before })
    }
}

impl Drop for Parameter {
    fn drop(&mut self) {
        let _ = fs::write(&self.path, &self.before);
    }
}

/// Returns how many of an item the kernel counts for a user in all; 0 for an unknown user.
pub fn held(user: u32, item: &str) -> Result<u64> {
    let users = fs::read_to_string("/sys/kernel/debug/kdapl/users")?;
    let prefix = format!("user={user} ");
    // The other lines count one device each.
    let is_wanted = |line: &&str| line.starts_with(&prefix) && !line.contains(" device=");
    let Some(line) = users.lines().find(is_wanted) else {
        return Ok(0);
    };
    let word = line.split(' ').find_map(|word| word.strip_prefix(item)?.strip_prefix('='));
    Ok(word.with_context(|| format!("no {item} in: {line}"))?.parse()?)
}

/// Checks that another user can open, connect, disconnect and close.
fn others_live(context: &Context) -> Result<()> {
    let (client, server) = context.open_both()?;
    longest(context, &client, &server, 1).map(drop)
}

fn refused_above_limits(context: &Context) -> Result<()> {
    for (role, parameter, limit, item, expected) in [
        (Role::Adapters, "user_adapters", 3, "adapters", 3),
        // The adapter, its asynchronous EVD and the EVD of the requests count too.
        (Role::Objects, "user_objects", 50, "objects", 47),
        (Role::ServicePoints, "user_service_points", 5, "service_points", 5),
        (Role::QueuePairs, "user_queue_pairs", 7, "queue_pairs", 7),
    ] {
        let _parameter = Parameter::set(parameter, limit)?;
        let (mut tenant, count) = start(context, role, context.port())?;
        println!("{role:?}: {count} with {parameter}={limit}");
        same("count", count, expected)?;
        same("held", held(ORDINARY_USER, item)?, limit)?;
        ensure!(held(ORDINARY_USER, "refused")? > 0, "no refusal was counted");
        others_live(context)?;
        tenant.kill()?;
        context.until("the user holds no objects", || Ok(held(ORDINARY_USER, item)? == 0))?;
    }
    Ok(())
}

fn driver_memory(context: &Context) -> Result<()> {
    const MEGABYTES: u64 = 8;
    let _parameter = Parameter::set("user_driver_memory_mb", MEGABYTES)?;
    let before = meminfo("VmallocUsed")?;
    let (mut tenant, count) = start(context, Role::DriverMemory, 0)?;
    let used = meminfo("VmallocUsed")? - before;
    let counted = held(ORDINARY_USER, "driver_memory_kb")? as i64;
    println!("{count} EVDs: {used} KiB are used, {counted} KiB are counted");
    ensure!(counted as u64 <= MEGABYTES << 10, "the count exceeds the limit");
    // At most one queue below the limit, with known memory of the driver.
    ensure!(counted as u64 > (MEGABYTES << 10) - 512, "a queue was refused too early");
    // The estimate is that of soft-RoCE. Siw's queues are smaller.
    let least = if context.server.is_iwarp() { 1 } else { counted / 2 };
    ensure!((least..=counted).contains(&used), "the estimate is wrong");
    others_live(context)?;
    tenant.kill()?;
    context.until("the user holds no memory", || Ok(held(ORDINARY_USER, "driver_memory_kb")? == 0))
}

/// Checks the estimate of this process's listeners. It is root, whose memory is counted too.
fn listeners(context: &Context) -> Result<()> {
    const POINTS: usize = 100;
    const BACKLOG: u32 = 4096;
    if has_kasan() {
        return skip("a debug kernel adds memory to each allocation");
    }
    let (_, ia) = context.open_both()?;
    let requests = ia.create_evd(EvdFlags::CR, 8)?;
    let options = PspOptions { backlog: Some(BACKLOG), ..PspOptions::default() };
    // The first one allocates what all share.
    let _first = ia.create_psp_with(&requests, &options)?;
    let count =
        || -> Result<(i64, u64)> { Ok((meminfo("SUnreclaim")?, held(0, "driver_memory_kb")?)) };
    let (used_before, counted_before) = count()?;
    let points = (0..POINTS).map(|_| ia.create_psp_with(&requests, &options));
    let points = points.collect::<libkdapl::Result<Vec<_>>>()?;
    let (used, counted) = count()?;
    let (used, counted) = (used - used_before, (counted - counted_before) as i64);
    println!("{POINTS} service points: {used} KiB are used, {counted} KiB are counted");
    drop(points);
    // Each also has memory of the module, which is counted elsewhere.
    ensure!(4 * used <= 5 * counted, "{used} KiB are used, and only {counted} KiB are counted");
    Ok(())
}

fn pinned_memory(context: &Context) -> Result<()> {
    const MEGABYTES: u64 = 8;
    const ITEM: &str = "pinned_memory_kb";
    let _parameter = Parameter::set("user_pinned_memory_mb", MEGABYTES)?;
    let (mut tenant, count) = start(context, Role::Pinned, 0)?;
    same("regions of a megabyte", count, MEGABYTES)?;
    same("held", held(ORDINARY_USER, ITEM)?, MEGABYTES << 10)?;
    others_live(context)?;
    tenant.kill()?;
    context.until("the user holds no memory", || Ok(held(ORDINARY_USER, ITEM)? == 0))
}

fn same_in_user_namespaces(context: &Context) -> Result<()> {
    if context.server.is_iwarp() {
        return skip("siw devices are closed to users in a user namespace");
    }
    let _parameter = Parameter::set("user_adapters", 4)?;
    let (mut tenant, count) = start(context, Role::Adapters, 0)?;
    same("adapters", count, 4)?;
    let (mut other, more) = start(context, Role::AdaptersElsewhere, 0)?;
    same("adapters in a user namespace", more, 0)?;
    tenant.kill()?;
    other.kill()?;
    let (mut other, count) = start(context, Role::AdaptersElsewhere, 0)?;
    same("adapters in a user namespace alone", count, 4)?;
    same("held", held(ORDINARY_USER, "adapters")?, 4)?;
    other.kill()
}

/// Connects and disconnects. Returns the duration of the connect.
fn connect(context: &Context, client: &End, server: &End, there: &Listener) -> Result<Duration> {
    let start = Instant::now();
    let patience = Some(context.patience());
    client.ep.connect(context.server_address(), there.port, patience, &[])?;
    there.request(context)?.accept(&server.ep, &[])?;
    for end in [client, server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    let time = start.elapsed();
    client.ep.disconnect(Close::Abrupt)?;
    for end in [client, server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
        end.ep.reset()?;
    }
    Ok(time)
}

/// Returns the longest of `count` connects.
fn longest(context: &Context, client: &Ia, server: &Ia, count: u64) -> Result<Duration> {
    let there = Listener::new(context, server)?;
    let (client, server) =
        (End::new(client, Shape::default())?, End::new(server, Shape::default())?);
    let times = (0..count).map(|_| connect(context, &client, &server, &there));
    Ok(times.collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or_default())
}

/// Dequeues the rejects of connects, and returns their number. Siw gives up an unanswered request
/// after 5 seconds (`MPAREP_TIMEOUT`).
fn refusals(context: &Context, evd: &Evd) -> Result<usize> {
    let mut count = 0;
    loop {
        match evd.dequeue() {
            Ok((Event::Connection { event: ConnectionEvent::Unreachable, .. }, _))
                if context.client.is_siw() => {}
            Ok((event, _)) => {
                connection(&event, ConnectionEvent::NonPeerRejected)?;
                count += 1;
            }
            Err(error) if error.is_empty() => return Ok(count),
            Err(error) => return Err(error.into()),
        }
    }
}

fn user_without_memory_rejects(context: &Context) -> Result<()> {
    const CONNECTS: u64 = 50;
    /// Enough for a few of the requests, which take 16 KiB and more each.
    const FREE_MEMORY: u64 = 512 << 10;
    let calls = context.count(300).max(120) as usize;
    let (client_ia, server_ia) = context.open_both()?;
    let alone = longest(context, &client_ia, &server_ia, CONNECTS)?;
    let cgroup = Cgroup::enter("memory", "memory.max", "max")?;
    let port = context.port();
    let (mut tenant, _) = start(context, Role::Listener, port)?;
    cgroup.leave()?;
    let caller = Side::client(context)?;
    caller.end.connect.resize(calls as i32)?;
    let eps = (0..calls).map(|_| caller.end.another_ep()).collect::<Result<Vec<_>>>()?;
    cgroup.leave_room(FREE_MEMORY)?;
    let patience = Some(context.patience() * 3);
    for ep in &eps {
        ep.connect(context.server_address(), port, patience, &[])?;
    }
    // The requests of other users follow the tenant's. Their duration is not tested, but printed.
    let beside = longest(context, &client_ia, &server_ia, CONNECTS)?;
    let events = cgroup.read("memory.events").replace('\n', ", ");
    println!("a connect of others takes {beside:?}, {alone:?} without the tenant; {events}");
    for event in ["oom", "oom_kill"] {
        ensure!(cgroup.number("memory.events", event)? == 0, "{events}");
    }
    ensure!(!tenant.has_ended()?, "the tenant has died");
    let turned_away = refusals(context, &caller.end.connect)?;
    println!("{turned_away} of {calls} were rejected");
    // A few requests fit into the memory.
    ensure!((calls / 4..calls).contains(&turned_away), "{turned_away} were rejected");
    tenant.kill()
}

fn local_ports(context: &Context) -> Result<()> {
    const AVAILABLE: u64 = 100;
    let ports = Ports::of(&context.client, "30000 30099")?;
    let share = AVAILABLE / 2;
    let (mut tenant, connects) = start(context, Role::Connects, 0)?;
    println!("{connects} connects of {AVAILABLE} ports");
    others_live(context)?;
    same("connects", connects, share)?;
    same("held", held(ORDINARY_USER, "local_ports")?, share)?;
    tenant.kill()?;
    context.until("no port is held", || Ok(held(ORDINARY_USER, "local_ports")? == 0))?;
    drop(ports);
    let _ports = Ports::of(&context.server, "30000 30099")?;
    let (mut tenant, points) = start(context, Role::Ports, 0)?;
    let ports = held(ORDINARY_USER, "local_ports")?;
    println!("{points} service points with {ports} ports of {AVAILABLE} at each address");
    ensure!(points > 0 && ports <= share, "the service points have {ports} ports");
    let others = context.open_server()?;
    let evd = others.create_evd(EvdFlags::CR, 4)?;
    others.create_psp_with(&evd, &PspOptions { conn_qual: None, ..Default::default() })?;
    tenant.kill()?;
    context.until("no port is held", || Ok(held(ORDINARY_USER, "local_ports")? == 0))
}

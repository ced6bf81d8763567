// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Brings one user to its limits, and checks that other users are not affected.
//!
//! The tenant is another process: an ordinary user, in a cgroup and on a host of its own.

use super::psp::Side;
use super::tests;
use crate::cgroup::Cgroup;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, same};
use crate::harness::skip;
use crate::machine::{become_user_with, meminfo, CAP_SYS_RAWIO};
use crate::peer::Peer;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Close, ConnectionEvent, EpAttr, EpConfig, EpCreator, Evd, EvdFlags, Event, Ia, PspOptions, Pz,
    Type,
};
use std::any::Any;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

tests! {
    #[Hosts]
    user_without_memory_rejects, 120, "A tenant without memory rejects its callers and stays alive, and other users connect";
    #[Hosts]
    refused_above_limits, 120, "A user is refused more than its limits, and can use them again when its process ends";
    driver_memory, 60, "The memory that drivers allocate for a user is estimated and limited";
    #[Hosts]
    same_in_user_namespaces, 60, "A user has one limit, even in a user namespace that it creates";
    close_time_is_proportional, 300, "The time to close an adapter is proportional to its number of objects";
}

/// Id of an ordinary user.
pub const ORDINARY_USER: u32 = 1_234;

/// Makes the calling thread an ordinary user. CAP_SYS_RAWIO lets it open a siw device.
pub fn become_tenant() -> Result<()> {
    become_user_with(ORDINARY_USER, CAP_SYS_RAWIO)
}

/// The part of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Listens, and leaves requests unanswered.
    Listener,
    /// Opens adapters until one is refused.
    Adapters,
    /// The same in a user namespace that it creates.
    AdaptersElsewhere,
    /// Creates objects until one is refused.
    Objects,
    /// Creates service points until one is refused.
    ServicePoints,
    /// Creates endpoints until one is refused.
    QueuePairs,
    /// Creates long completion queues until one is refused.
    DriverMemory,
}

const ROLES: [Role; 7] = [
    Role::Listener,
    Role::Adapters,
    Role::AdaptersElsewhere,
    Role::Objects,
    Role::ServicePoints,
    Role::QueuePairs,
    Role::DriverMemory,
];

/// Starts a tenant, and waits until it is ready. Returns the number of its objects.
fn start(context: &Context, role: Role, port: u64) -> Result<(Peer, u64)> {
    let mut peer = Peer::play(context, &format!("Tenant {port} {}", role as i64))?;
    let told = peer.says()?;
    let count = told.strip_prefix("ready ").with_context(|| format!("the tenant says {told}"))?;
    let count = count.parse()?;
    Ok((peer, count))
}

/// Runs as the tenant.
pub fn tenant(context: &Context, port: u64, role: i64) -> Result<()> {
    let role =
        ROLES.into_iter().find(|other| *other as i64 == role).context("the role is unknown")?;
    context.server.settle()?;
    become_tenant()?;
    if role == Role::AdaptersElsewhere {
        // SAFETY: the call reads no memory.
        let moved = unsafe { libc::unshare(libc::CLONE_NEWUSER) };
        ensure!(moved == 0, "unshare: {}", std::io::Error::last_os_error());
    }
    let open = || Ia::open(&context.server.device, 8);
    if matches!(role, Role::Adapters | Role::AdaptersElsewhere) {
        return hoard(|_| open());
    }
    let ia = open()?;
    let cr = ia.create_evd(EvdFlags::CR, 4000)?;
    let listen = |conn_qual| {
        let (endpoints, backlog) = (EpCreator::Provider, Some(4000));
        ia.create_psp_with(&cr, &PspOptions { conn_qual, endpoints, backlog })
    };
    match role {
        Role::Listener => {
            let _psp = listen(Some(port))?;
            stay(0)
        }
        Role::Objects => hoard(|_| ia.create_evd(EvdFlags::SOFTWARE, 1)),
        Role::ServicePoints => hoard(|number| listen(Some((1 << 45) + port + number))),
        Role::DriverMemory => hoard(|_| ia.create_evd(EvdFlags::DTO, 1)),
        Role::QueuePairs => {
            let parts = EpParts::new(&ia)?;
            hoard(|_| ia.create_ep_with(&parts.config()))
        }
        Role::Adapters | Role::AdaptersElsewhere => Ok(()),
    }
}

/// Creates objects until the user is refused one, and keeps them.
fn hoard<T: std::fmt::Debug>(make: impl Fn(u64) -> Result<T, libkdapl::Error>) -> Result<()> {
    let mut made = Vec::new();
    loop {
        match make(made.len() as u64) {
            Ok(one) => made.push(one),
            refused => {
                crate::expect::refused(refused, Type::INSUFFICIENT_RESOURCES)?;
                return stay(made.len() as u64);
            }
        }
    }
}

/// Prints the number of objects, and waits to be killed.
fn stay(count: u64) -> Result<()> {
    println!("ready {count}");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// The objects that a small endpoint needs.
struct EpParts {
    pz: Pz,
    dtos: Evd,
    connect: Evd,
}

impl EpParts {
    fn new(ia: &Ia) -> Result<Self> {
        let (dtos, connect) =
            (ia.create_evd(EvdFlags::DTO, 64)?, ia.create_evd(EvdFlags::CONNECTION, 64)?);
        Ok(Self { pz: ia.create_pz()?, dtos, connect })
    }

    fn config(&self) -> EpConfig<'_> {
        let attr = EpAttr { max_recv_dtos: 1, max_request_dtos: 1, ..Default::default() };
        EpConfig {
            pz: Some(&self.pz),
            recv: Some(&self.dtos),
            request: Some(&self.dtos),
            connect: Some(&self.connect),
            attr: Some(attr),
            ..Default::default()
        }
    }
}

/// Sets a parameter of the module, and restores it when dropped.
pub struct Parameter {
    path: PathBuf,
    before: String,
}

impl Parameter {
    pub fn set(name: &str, value: u64) -> Result<Self> {
        let path = PathBuf::from("/sys/module/kdapl/parameters").join(name);
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

/// Objects that are kept until dropped.
type Kept = Vec<Box<dyn Any>>;

/// Returns the time to close an adapter, in microseconds for each of its `count` objects. It is the
/// best of a few measurements, since the machine may be busy.
fn close_of(context: &Context, count: u64, make: fn(&Ia, u64) -> Result<Kept>) -> Result<f64> {
    const MEASUREMENTS: u32 = 3;
    let mut least = f64::MAX;
    for _ in 0..MEASUREMENTS {
        let ia = context.open()?;
        let kept = make(&ia, count)?;
        let start = Instant::now();
        ia.close(Close::Abrupt)?;
        least = least.min(start.elapsed().as_secs_f64() * 1e6 / count as f64);
        drop(kept);
    }
    Ok(least)
}

fn small_eps(ia: &Ia, count: u64) -> Result<Kept> {
    let parts = EpParts::new(ia)?;
    let mut made: Kept = Vec::new();
    for _ in 0..count {
        made.push(Box::new(ia.create_ep_with(&parts.config())?));
    }
    Ok(made)
}

fn software_evds(ia: &Ia, count: u64) -> Result<Kept> {
    let mut made: Kept = Vec::new();
    for _ in 0..count {
        made.push(Box::new(ia.create_evd(EvdFlags::SOFTWARE, 1)?));
    }
    Ok(made)
}

fn close_time_is_proportional(context: &Context) -> Result<()> {
    /// Factor between the two measurements.
    const COUNT_FACTOR: u64 = 10;
    /// Small counts fit into caches, large ones do not.
    const MAX_COST_FACTOR: f64 = 4.0;
    let endpoints = (small_eps as fn(&Ia, u64) -> Result<Kept>, "endpoints", 3000);
    let queues = (software_evds as fn(&Ia, u64) -> Result<Kept>, "EVDs", 20_000);
    for (make, name, many) in [endpoints, queues] {
        let many = context.count(many).max(500);
        let few = many / COUNT_FACTOR;
        let (one_of_few, one_of_many) =
            (close_of(context, few, make)?, close_of(context, many, make)?);
        println!("{name}: {one_of_few:.1} us each of {few}, {one_of_many:.1} us each of {many}");
        ensure!(
            one_of_many < one_of_few * MAX_COST_FACTOR,
            "{name}: not proportional to their number"
        );
    }
    Ok(())
}

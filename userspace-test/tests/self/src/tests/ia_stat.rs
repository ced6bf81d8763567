// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Statistics of open adapters, and who sees them.

use super::handoff::as_user;
use super::kernel::Loaded;
use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{connection, done, dto, ended, same};
use crate::fork::{fork, kill};
use crate::harness::skip;
use anyhow::{ensure, Context as _, Result};
use libkdapl::sys::kdapl_ia_stat;
use libkdapl::{Close, ConnectionEvent, DtoOperation, DtoStatus, Ia, IaStat, Segment};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

tests! {
    #[Address, Transport]
    traffic, 60, "The statistics count operations, bytes and connections exactly, also of freed endpoints";
    failures, 60, "The statistics count a failed operation and a broken connection, and no flushed operation";
    objects, 30, "The statistics count the objects of each kind, waiters, events and memory";
    other_process, 60, "The statistics name the process of an adapter, and kdapltest stat shows it";
    dead_process, 60, "The statistics of an adapter whose process has ended have no number of a process";
    users, 60, "A user sees its own adapters, and an administrator those of all users";
    kernel_consumer, 60, "An administrator sees the adapter of a kernel module, and no other user does";
    opens_and_closes, 120, "A reader sees each adapter once, in order, while others are opened and closed";
}

const LENGTH: usize = 100;

/// Returns the statistics of an adapter.
fn stat(ia: &Ia, before: &[u64]) -> Result<IaStat> {
    let name = ia.query()?.adapter_name;
    let mine = |stat: &IaStat| {
        stat.pid == Some(std::process::id())
            && stat.adapter == name
            && !before.contains(&stat.serial)
    };
    libkdapl::ia_stats()?.into_iter().find(mine).context("the adapter is not listed")
}

fn serials() -> Result<Vec<u64>> {
    Ok(libkdapl::ia_stats()?.iter().map(|stat| stat.serial).collect())
}

/// Returns the statistics of the adapter with this serial number.
fn by_serial(serial: u64) -> Result<kdapl_ia_stat> {
    let found = libkdapl::ia_stats()?.into_iter().find(|stat| stat.serial == serial);
    Ok(found.context("the adapter is not listed")?.raw)
}

/// A connected pair, and the serial numbers of its adapters.
struct Scene {
    pair: Pair,
    client: u64,
    server: u64,
}

impl Scene {
    fn new(context: &Context, shape: Shape) -> Result<Self> {
        let before = serials()?;
        let client_ia = context.open()?;
        let client = stat(&client_ia, &before)?.serial;
        let server_ia = context.open_server()?;
        let server = stat(&server_ia, &[&before[..], &[client]].concat())?.serial;
        let pair = Pair::between(context, &client_ia, &server_ia, shape)?;
        Ok(Self { pair, client, server })
    }
}

fn traffic(context: &Context) -> Result<()> {
    let scene = Scene::new(context, Shape::default())?;
    let (client, server) = (&scene.pair.client, &scene.pair.server);
    for cookie in 0..10 {
        server.receive(0, LENGTH, cookie)?;
    }
    same("receives", by_serial(scene.server)?.receives_outstanding, 10)?;
    for cookie in 0..7 {
        client.send(0, LENGTH, cookie)?;
        done(&context.next(&client.request)?, DtoOperation::Send, LENGTH as u64, cookie)?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, LENGTH as u64, cookie)?;
    }
    client.write(0, 1000, server.lmr.remote_segment(0, 1000), 8)?;
    done(&context.next(&client.request)?, DtoOperation::RdmaWrite, 1000, 8)?;
    let (ours, theirs) = (by_serial(scene.client)?, by_serial(scene.server)?);
    same("requests", (ours.requests, ours.request_bytes), (8, 7 * LENGTH as u64 + 1000))?;
    same("receives", (theirs.receives, theirs.receive_bytes), (7, 7 * LENGTH as u64))?;
    same("requests of the server", theirs.requests, 0)?;
    same("receives that are left", theirs.receives_outstanding, 3)?;
    same("connections", (ours.connections, ours.connections_established), (1, 1))?;
    same("failures", (ours.failures, ours.connections_broken), (0, 0))?;
    ensure!(ours.age_ns > 0, "it was opened just now");
    client.ep.disconnect(Close::Abrupt)?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Disconnected)?;
    ended(context, &context.next(&server.connect)?, ConnectionEvent::Disconnected)?;
    client.ep.free()?;
    server.ep.free()?;
    let (ours, theirs) = (by_serial(scene.client)?, by_serial(scene.server)?);
    same("requests of the freed endpoint", ours.requests, 8)?;
    same("receives of the freed endpoint", theirs.receives, 7)?;
    same("endpoints", (ours.eps, theirs.eps), (0, 0))?;
    same("connections", (ours.connections, ours.connections_established), (0, 1))?;
    same("failures", theirs.failures, 0)
}

fn failures(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("over iWARP a write completes before the peer refuses it");
    }
    let scene = Scene::new(context, Shape::default())?;
    let (client, server) = (&scene.pair.client, &scene.pair.server);
    server.receive(0, LENGTH, 1)?;
    client.receive(0, LENGTH, 1)?;
    let nowhere = Segment { context: 0x1234_5678, ..server.lmr.remote_segment(0, LENGTH) };
    client.write(0, LENGTH, nowhere, 2)?;
    let Ok(libkdapl::Event::Dto(write)) = context.next(&client.request) else {
        anyhow::bail!("expected the completion of the write");
    };
    ensure!(write.status != DtoStatus::Success, "the write succeeded");
    dto(&context.next(&client.recv)?, DtoOperation::Receive, DtoStatus::Flushed)?;
    ended(context, &context.next(&client.connect)?, ConnectionEvent::Broken)?;
    let ours = by_serial(scene.client)?;
    let failed = u64::from(write.status != DtoStatus::Flushed);
    same("failures", ours.failures, failed)?;
    same("requests", (ours.requests, ours.receives), (0, 0))?;
    same("connections", (ours.connections, ours.connections_established), (0, 1))
}

fn objects(context: &Context) -> Result<()> {
    let before = serials()?;
    let ia = context.open()?;
    let serial = stat(&ia, &before)?.serial;
    let end = End::new(&ia, Shape::default())?;
    let requests = ia.create_evd(libkdapl::EvdFlags::CR, 4)?;
    let software = ia.create_evd(libkdapl::EvdFlags::SOFTWARE, 4)?;
    let cno = ia.create_cno(None)?;
    let srq = ia.create_srq(&end.pz, 4, 1)?;
    let psp = ia.create_psp(context.port(), &requests)?;
    let csp = ia.create_csp(None, &requests)?;
    let rmr = ia.create_rmr(&end.pz)?;
    software.post_se(1)?;
    let now = || by_serial(serial);
    let raw = now()?;
    same("PZ, LMR, RMR", (raw.pzs, raw.lmrs, raw.rmrs), (1, 1, 1))?;
    // Three of the endpoint, two here, and the asynchronous one.
    same("CNO, EVD, EP, SRQ", (raw.cnos, raw.evds, raw.eps, raw.srqs), (1, 6, 1, 1))?;
    same("PSP, RSP, CSP, CR", (raw.psps, raw.rsps, raw.csps, raw.crs), (1, 0, 1, 0))?;
    same("events", raw.events_queued, 1)?;
    same("memory", raw.memory, Shape::default().memory as u64)?;
    same("waiters", raw.waiters, 0)?;
    std::thread::scope(|scope| {
        scope.spawn(|| end.connect.wait(None, 1));
        scope.spawn(|| cno.wait(None));
        let both = context.until("both threads wait", || Ok(now()?.waiters == 2));
        end.connect.set_unwaitable()?;
        cno.trigger()?;
        both
    })?;
    same("waiters", now()?.waiters, 0)?;
    drop((rmr, csp, psp, srq));
    let raw = now()?;
    same("freed", (raw.rmrs, raw.csps, raw.psps, raw.srqs), (0, 0, 0, 0))
}

fn other_process(context: &Context) -> Result<()> {
    let (device, port) = (context.client.device.as_str(), context.port().to_string());
    let mut server = Command::new("kdapltest")
        .args(["--json", "server", "--device", device, "--port", &port])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take().context("no pipe")?).read_line(&mut line)?;
    let pid = server.id();
    let shown = shows(pid, device);
    server.kill()?;
    server.wait()?;
    shown?;
    let listed = libkdapl::ia_stats()?.into_iter().any(|stat| stat.pid == Some(pid));
    ensure!(!listed, "the killed process is listed");
    Ok(())
}

fn dead_process(context: &Context) -> Result<()> {
    let before = serials()?;
    let device = context.client.device.as_str();
    let mut opener = Command::new(std::env::current_exe()?)
        .args(["--play", "Opens 0 0", "--seed", "1"])
        .args(context.settings.layout.arguments())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(opener.stdout.take().context("no pipe")?).read_line(&mut line)?;
    opener.wait()?;
    let pid: i32 = line.trim().parse().with_context(|| line.clone())?;
    let new = |stat: &IaStat| !before.contains(&stat.serial) && stat.adapter == device;
    let found = libkdapl::ia_stats()?.into_iter().find(new);
    // The process is a child of the one that has ended.
    kill(pid)?;
    let found = found.context("the adapter is not listed")?;
    same("process", (found.pid, found.is_kernel), (None, false))
}

/// Runs as the process that opens an adapter and ends. A child keeps the file.
pub fn opens(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let child = fork(|| loop {
        std::thread::sleep(Duration::from_secs(3600));
    })?;
    println!("{child}");
    std::mem::forget(ia);
    Ok(())
}

/// Checks what the statistics and `kdapltest stat` tell of a server.
fn shows(pid: u32, device: &str) -> Result<()> {
    let found = libkdapl::ia_stats()?.into_iter().find(|stat| stat.pid == Some(pid));
    let found = found.context("the server is not listed")?;
    same("process", found.process.as_str(), "kdapltest")?;
    same("adapter", found.adapter.as_str(), device)?;
    ensure!(!found.is_kernel && found.raw.psps == 1, "another kind of consumer");
    let text = Command::new("kdapltest").arg("stat").output()?;
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let row = text.lines().find(|line| line.contains(&pid.to_string()));
    let row = row.with_context(|| format!("the server is missing:\n{text}"))?;
    ensure!(row.contains("kdapltest") && row.contains(device), "another row: {row}");
    let lines =
        Command::new("kdapltest").args(["stat", "--json", "--watch", "--count", "2"]).output()?;
    let lines = String::from_utf8_lossy(&lines.stdout).into_owned();
    same("lines of JSON", lines.lines().count(), 2)?;
    for line in lines.lines() {
        let records: serde_json::Value = serde_json::from_str(line)?;
        let ours = |record: &&serde_json::Value| record["pid"] == pid;
        let record = records.as_array().and_then(|list| list.iter().find(ours));
        let record = record.context("the server is not among the records")?;
        same("rate", record["per_second"]["requests"].as_f64(), Some(0.0))?;
    }
    Ok(())
}

fn users(context: &Context) -> Result<()> {
    let before = serials()?;
    let device = context.server.device.as_str();
    let open = |_: &Context| Ok(Ia::open(device, 8)?);
    let theirs = as_user(context, 4321, open)?;
    let ours = as_user(context, 1234, open)?;
    let new: Vec<_> =
        libkdapl::ia_stats()?.into_iter().filter(|stat| !before.contains(&stat.serial)).collect();
    same("users", new.iter().map(|stat| stat.raw.uid).collect::<Vec<_>>(), vec![4321, 1234])?;
    for (user, expected) in [(4321, &new[..1]), (1234, &new[1..]), (5678, &[][..])] {
        let seen = as_user(context, user, |_| serials())?;
        same("adapters", seen, expected.iter().map(|stat| stat.serial).collect())?;
    }
    drop((theirs, ours));
    Ok(())
}

fn kernel_consumer(context: &Context) -> Result<()> {
    if context.client.device != context.server.device {
        return skip("kernel consumers use the first network namespace");
    }
    let before = serials()?;
    let device = context.client.device.as_str();
    let server = Loaded::new("kdapl_echo", &format!("device={device} port={}", context.port()))?;
    let kernel = |before: &[u64]| -> Result<Vec<IaStat>> {
        let new = |stat: &IaStat| stat.is_kernel && !before.contains(&stat.serial);
        Ok(libkdapl::ia_stats()?.into_iter().filter(new).collect())
    };
    let found = kernel(&before)?;
    same("adapters of kernel modules", found.len(), 1)?;
    same("process", (found[0].pid, found[0].process.as_str()), (None, ""))?;
    let seen = as_user(context, 4321, |_| serials())?;
    same("adapters that a user sees", seen, Vec::new())?;
    drop(server);
    same("adapters of kernel modules", kernel(&before)?.len(), 0)
}

fn opens_and_closes(context: &Context) -> Result<()> {
    let stays = context.open()?;
    let device = context.client.device.as_str();
    let stop = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(Ia::open(device, 8));
                }
            });
        }
        let outcome = (0..context.count(500).max(50)).try_for_each(|_| {
            let serials = serials()?;
            ensure!(serials.is_sorted_by(|one, next| one < next), "not in order: {serials:?}");
            ensure!(!serials.is_empty(), "the adapter that stays is missing");
            std::thread::sleep(Duration::from_micros(100));
            Ok(())
        });
        stop.store(true, Ordering::Relaxed);
        outcome
    });
    drop(stays);
    outcome
}

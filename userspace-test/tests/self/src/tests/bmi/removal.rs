// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Removal of the RDMA device under BMI, in a process and in the kernel.

use super::super::device_removal::device_gone;
use super::super::kernel::{device, Loaded};
use super::super::tests;
use super::{address, long, transfer, ways, Side, Sides};
use crate::context::Context;
use crate::machine::{no_objects_left, DeviceGuard};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl_bmi::{Completion, Error, Failure, Op, Peer};
use std::fmt::Debug;
use std::fs;
use std::time::Duration;

tests! {
    #[Hosts]
    under_transfers, 120,
        "After the removal of the device, operations, posts and waits of BMI fail, and hang nothing";
    #[Hosts]
    under_connects, 120, "The removal of the device ends connects of BMI that wait for an Endpoint";
    #[Transport]
    kernel, 120,
        "After the removal of the device, operations, posts and waits of kdapl_bmi.ko fail with ENODEV";
}

/// Checks that a call has failed because the device was removed.
fn lost<T: Debug>(result: libkdapl_bmi::Result<T>) -> Result<()> {
    match result {
        Err(Error::Post(Failure::DeviceLost)) => Ok(()),
        other => bail!("expected that the device is lost, got {other:?}"),
    }
}

/// Removes the devices, that of the client first.
fn delete(context: &Context, guard: &DeviceGuard) -> Result<()> {
    guard.delete_of(&context.client)?;
    match context.hosts().len() {
        1 => Ok(()),
        _ => guard.delete_of(&context.server),
    }
}

/// Checks that an operation has failed because its connection has ended with the device. The end
/// of a request, or of the peer, may come before that of the device.
fn ended(done: &Completion) -> Result<()> {
    match done.result {
        Err(Failure::DeviceLost | Failure::Reset) => Ok(()),
        other => bail!("an operation during the removal: {other:?}"),
    }
}

/// Moves messages until one fails. Returns the failures of its operations.
fn until_failure(
    length: usize,
    (from, to): (&Side, &Peer),
    (at, source): (&Side, &Peer),
) -> Result<Vec<Completion>> {
    let (sent, got) = (from.bmi.alloc(length)?, at.bmi.alloc(length)?);
    loop {
        let receive = at.context.receive(source, 7, &[got.whole()], 0);
        let send = from.context.send(to, 7, &[sent.whole()], 0);
        let mut failed = Vec::new();
        for (side, op) in [(at, &receive), (from, &send)] {
            match op {
                Ok(op) => failed.extend(failure(side, *op)?),
                Err(Error::Post(Failure::DeviceLost | Failure::NotConnected)) => {}
                Err(other) => bail!("a post: {other}"),
            }
        }
        if receive.is_err() || send.is_err() || !failed.is_empty() {
            return Ok(failed);
        }
    }
}

fn failure(side: &Side, op: Op) -> Result<Option<Completion>> {
    let done = side.result(op)?;
    Ok(done.result.is_err().then_some(done))
}

/// Removes the device while messages are on their way, operations wait for their partners, and
/// threads wait for what does not come.
fn remove(context: &Context, guard: &DeviceGuard, sides: &Sides, back: &Peer) -> Result<()> {
    let (client, server) = (&sides.client, &sides.server);
    let memory = client.random(context, 1 << 20)?;
    let ops = [
        (client, client.context.send(&sides.peer, 1, &[memory.whole()], 0)?),
        (client, client.context.receive(&sides.peer, 2, &[memory.whole()], 0)?),
        (server, server.context.receive(back, 3, &[], 0)?),
    ];
    let other = server.bmi.open_context()?;
    let (length, patience) = (long(context, 1 << 20), Some(context.patience()));
    std::thread::scope(|scope| {
        let unexpected = scope.spawn(|| server.bmi.wait_unexpected(1, patience));
        let nothing = scope.spawn(|| other.wait(1, patience));
        let moved = scope.spawn(|| {
            let there = (client, &sides.peer);
            until_failure(length, there, (server, back))
        });
        std::thread::sleep(context.scaled(Duration::from_millis(30)));
        delete(context, guard)?;
        let moved = moved.join().expect("the thread panics")?;
        moved.iter().try_for_each(ended).context("amid a transfer")?;
        for (side, op) in ops {
            ended(&side.result(op)?)?;
        }
        lost(unexpected.join().expect("the thread panics")).context("unexpected messages")?;
        lost(nothing.join().expect("the thread panics")).context("a context without operations")
    })
}

/// Checks that an instance whose device was removed refuses posts and waits.
fn refuses_all(side: &Side, peer: &Peer) -> Result<()> {
    // The adapter of this side may be the last that is told.
    lost(side.context.wait(1, None))?;
    lost(side.context.send(peer, 1, &[], 0))?;
    lost(side.context.send_unexpected(peer, 1, &[], 0))?;
    lost(side.context.receive(peer, 1, &[], 0))?;
    lost(side.bmi.wait_unexpected(1, None))?;
    // A poll, too.
    lost(side.bmi.wait_unexpected(1, Some(Duration::ZERO)))?;
    match side.bmi.alloc(100) {
        Err(Error::Dat(error)) => device_gone(Err::<(), _>(error)),
        other => bail!("memory of a device that is gone: {other:?}"),
    }
}

fn under_transfers(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    for options in ways() {
        if options.pull && context.loses_reads() {
            continue;
        }
        let sides = Sides::open(context, &options)?;
        let back = sides.greet()?;
        remove(context, &guard, &sides, &back).with_context(|| format!("pull {}", options.pull))?;
        refuses_all(&sides.client, &sides.peer)?;
        refuses_all(&sides.server, &back)?;
        guard.add()?;
        // An instance does not use the new device.
        refuses_all(&sides.client, &sides.peer)?;
        drop((back, sides));
        no_objects_left(context.settings.scale)?;
        let sides = Sides::open(context, &options)?;
        let back = sides.greet()?;
        transfer(context, (&sides.client, &sides.peer), (&sides.server, &back), 1000)?;
    }
    Ok(())
}

/// Nobody answers the requests: they reach a service point whose events nobody takes.
fn under_connects(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    // The device is taken from the client first.
    let client = Side::open(context, &context.client, &Default::default())?;
    let listener = crate::end::Listener::new(context, &context.open_server()?)?;
    let place = std::net::SocketAddr::new(context.server_address(), listener.port as u16);
    let peer = client.bmi.lookup(&format!("kdapl://{place}"))?;
    let receive = client.context.receive(&peer, 1, &[], 0)?;
    let request = listener.request(context)?;
    delete(context, &guard)?;
    let done = client.result(receive)?.result;
    ensure!(
        matches!(done, Err(Failure::DeviceLost)),
        "a receive of a connection that is being made: {done:?}"
    );
    drop((request, listener));
    context.until("posts are refused", || {
        Ok(lost(client.context.receive(&peer, 1, &[], 0)).is_ok())
    })?;
    guard.add()
}

const STAGE: &str = "/sys/module/kdapl_bmi_ends/parameters/stage";

fn kernel(context: &Context) -> Result<()> {
    let device = device(context)?;
    let guard = DeviceGuard::new(context)?;
    let bmi = Loaded::new("kdapl_bmi", "")?;
    let parameters = format!("adapter={device} listen={} scene=removal", address(context));
    let loading = std::thread::spawn(move || Loaded::new("kdapl_bmi_ends", &parameters));
    context.until("messages are on their way", || {
        let stage = fs::read_to_string(STAGE).unwrap_or_default();
        Ok(loading.is_finished() || stage.trim() == "1")
    })?;
    guard.delete()?;
    let loaded = loading.join().expect("the thread panics")?;
    guard.add()?;
    loaded.unload()?;
    let parameters = format!("adapter={device} listen={} scene=reconnect", address(context));
    Loaded::new("kdapl_bmi_ends", &parameters)?.unload()?;
    bmi.unload()
}

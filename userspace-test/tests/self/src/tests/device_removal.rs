// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Removal of the RDMA device during all kinds of work, and its return.

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection_over, refused, refused_as};
use crate::machine::{no_objects_left, DeviceGuard};
use crate::threads::Worker;
use crate::traffic::Traffic;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{AsyncEvent, Buffer, Close, EvdFlags, Event, Ia, Privileges, Subtype, Type};
use std::fmt::Debug;
use std::time::{Duration, Instant};

tests! {
    idle, 120,
        "Removing a device reports IA_CATASTROPHIC, later calls fail, and a new device works";
    #[Transport]
    under_traffic, 240,
        "Removing a device under traffic breaks its connections, ends the waits, and hangs nothing";
    under_waiters, 120,
        "Removing a device under waiters wakes them, or lets them wait to their end";
    #[Hosts]
    while_connecting, 120,
        "Removing a device while connections are being established hangs nothing";
    software_events_continue, 120,
        "Removing a device does not disturb software events on its IA's EVDs, nor the close";
    repeated, 240, "Devices are removed and restored while IAs are opened and closed";
}

const MS: Duration = Duration::from_millis(1);

fn guard(context: &Context) -> Result<DeviceGuard> {
    DeviceGuard::new(context)
}

/// Checks that IA_CATASTROPHIC is the only asynchronous event.
pub fn catastrophic(context: &Context, ia: &Ia) -> Result<()> {
    match context.next(ia.async_evd())? {
        Event::Async { event: AsyncEvent::IaCatastrophic, object, .. } => {
            ensure!(object == ia.handle(), "the event names {object} instead of the IA");
        }
        other => bail!("expected IA_CATASTROPHIC, got {other}"),
    }
    // Endpoints without an SRQ report the removal to their connect EVDs only.
    context.quiet(ia.async_evd())
}

/// Checks that a call was refused because the device was removed.
pub fn device_gone<T: Debug>(result: Result<T, libkdapl::Error>) -> Result<()> {
    refused_as(result, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_DEVICE)
}

/// Checks that all calls return, and those that need the device say that it is gone.
pub fn all_calls_fail(context: &Context, end: &End) -> Result<()> {
    let start = Instant::now();
    let ia = &end.ia;
    device_gone(ia.create_pz()).context("creating a PZ")?;
    device_gone(ia.create_evd(EvdFlags::DTO, 4)).context("creating an EVD")?;
    let ep = ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, None);
    device_gone(ep).context("creating an endpoint")?;
    device_gone(ia.register(&end.pz, Buffer::new(4096)?, Privileges::ALL))
        .context("registering")?;
    device_gone(ia.create_evd(EvdFlags::CR, 4)).context("creating an EVD for requests")?;
    let segment = [end.lmr.segment(0, 64)];
    device_gone(end.ep.post_send(&segment, 1, Default::default())).context("sending")?;
    device_gone(end.ep.post_recv(&segment, 1, Default::default())).context("receiving")?;
    let connect = end.ep.connect(context.server_address(), context.port(), Some(100 * MS), &[]);
    device_gone(connect).context("connecting")?;
    // These may return any result, but soon.
    let _ = (ia.query(), end.ep.query(), end.ep.status(), end.lmr.query(), end.recv.query());
    let _ = end.ep.disconnect(Close::Abrupt);
    ensure!(start.elapsed() < context.patience(), "it took {:?}", start.elapsed());
    Ok(())
}

pub fn works_again(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default()).context("on the new device")?;
    pair.server.receive(0, 64, 1)?;
    pair.client.send(0, 64, 2)?;
    context.next(&pair.server.recv)?;
    context.next(&pair.client.request)?;
    Ok(())
}

fn idle(context: &Context) -> Result<()> {
    let guard = guard(context)?;
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    end.receive(0, 64, 1)?;
    let _listener = Listener::new(context, &ia)?;
    guard.delete()?;
    catastrophic(context, &ia)?;
    refused(Ia::open(&context.client.device, 4), Type::PROVIDER_NOT_FOUND)?;
    all_calls_fail(context, &end)?;
    guard.add()?;
    // The old IA does not use the new device.
    all_calls_fail(context, &end)?;
    works_again(context)?;
    for object in [end.ep.free(), end.lmr.free(), end.recv.free()] {
        object.context("freeing after the device is removed")?;
    }
    ia.close(Close::Abrupt)?;
    Ok(())
}

fn under_traffic(context: &Context) -> Result<()> {
    let guard = guard(context)?;
    for round in 0..context.count(5) {
        let (client_ia, server_ia) = context.open_both()?;
        let listener = Listener::new(context, &server_ia)?;
        let (mut client, mut server) =
            (Traffic::new(context, &client_ia)?, Traffic::new(context, &server_ia)?);
        client.post_receives()?;
        server.post_receives()?;
        client.connect(context, listener.port)?;
        server.accept(context, &listener)?;
        client.established(context)?;
        server.established(context)?;
        client.begin()?;
        server.begin()?;
        let delay = context.rng().u64(0..50);
        let run = |context: Context, mut traffic: Traffic| -> Result<Traffic> {
            let last = traffic.run_out(&context)?;
            ensure!(
                matches!(
                    last,
                    libkdapl::ConnectionEvent::Broken | libkdapl::ConnectionEvent::Disconnected
                ),
                "the last event is {last}"
            );
            Ok(traffic)
        };
        let (mine, yours) = (context.new_for_thread(), context.new_for_thread());
        let one = Worker::start(move || run(mine, client))?;
        let two = Worker::start(move || run(yours, server))?;
        std::thread::sleep(Duration::from_millis(delay));
        guard.delete()?;
        let client = one.join()?.with_context(|| format!("client, round {round}"))?;
        let server = two.join()?.with_context(|| format!("server, round {round}"))?;
        catastrophic(context, &client_ia)?;
        catastrophic(context, &server_ia)?;
        all_calls_fail(context, &client.end)?;
        guard.add()?;
        drop((client, server, listener, client_ia, server_ia));
        no_objects_left(context.settings.scale)?;
        works_again(context)?;
    }
    Ok(())
}

fn under_waiters(context: &Context) -> Result<()> {
    let guard = guard(context)?;
    let pair = Pair::new(context, Shape::default())?;
    let evds = [&pair.server.connect, &pair.server.recv, &pair.server.request, &pair.listener.evd];
    pair.server.receive(0, 64, 1)?;
    let limit = context.scaled(Duration::from_secs(1));
    let mut waiters = Vec::new();
    for evd in evds {
        let evd = evd.clone();
        waiters.push(Worker::start(move || evd.wait(Some(limit), 1))?);
    }
    context.until("all threads wait", || {
        for waiter in &waiters {
            if !waiter.sleeps_in_ioctl()? {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    guard.delete()?;
    let mut outcomes = Vec::new();
    for waiter in waiters {
        outcomes.push(waiter.join()?);
    }
    let (event, _) = outcomes.remove(0).context("the wait for the connection's end")?;
    connection_over(&event)?;
    // The receive is returned.
    let (event, _) = outcomes.remove(0).context("the wait for the receive")?;
    ensure!(matches!(event, Event::Dto(_)), "expected the flushed receive, got {event}");
    guard.add()?;
    works_again(context)
}

fn while_connecting(context: &Context) -> Result<()> {
    let guard = guard(context)?;
    for _ in 0..context.count(5) {
        let (client_ia, server_ia) = context.open_both()?;
        let listener = Listener::new(context, &server_ia)?;
        let ends: Result<Vec<_>> = (0..8).map(|_| End::new(&client_ia, Shape::default())).collect();
        let ends = ends?;
        for end in &ends {
            end.ep.connect(
                context.server_address(),
                listener.port,
                Some(context.patience()),
                &[],
            )?;
        }
        let delay = Duration::from_micros(context.rng().u64(0..3000));
        std::thread::sleep(delay);
        // Some requests have arrived, some have not. None is answered.
        guard.delete()?;
        for end in &ends {
            let event = context.next(&end.connect)?;
            ensure!(
                matches!(event, Event::Connection { event, .. }
                    if event != libkdapl::ConnectionEvent::Established),
                "expected a failure, got {event}"
            );
        }
        guard.add()?;
    }
    works_again(context)
}

fn software_events_continue(context: &Context) -> Result<()> {
    let guard = guard(context)?;
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    evd.post_se(1)?;
    guard.delete()?;
    catastrophic(context, &ia)?;
    // The queued event is still there, or the EVD was freed with its IA.
    match evd.dequeue() {
        Ok((Event::Software { pointer: 1 }, 0)) => {}
        Err(error) if error.kind().is_some() && error.kind() != Some(Type::QUEUE_EMPTY) => {}
        other => bail!("the queued event: {other:?}"),
    }
    ia.close(Close::Abrupt)?;
    guard.add()?;
    works_again(context)
}

fn repeated(context: &Context) -> Result<()> {
    let guard = guard(context)?;
    let device = context.client.device.clone();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopping = stop.clone();
    let opener = Worker::start(move || -> u64 {
        let mut opened = 0;
        while !stopping.load(std::sync::atomic::Ordering::Relaxed) {
            if let Ok(ia) = Ia::open(&device, 4) {
                opened += 1;
                // Create as many objects as possible.
                let _ = End::new(&ia, Shape::default());
            }
        }
        opened
    })?;
    for _ in 0..context.count(10) {
        guard.delete()?;
        std::thread::sleep(Duration::from_millis(context.rng().u64(0..20)));
        guard.add()?;
        std::thread::sleep(Duration::from_millis(context.rng().u64(0..20)));
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    ensure!(opener.join()? > 0, "the device was never opened");
    works_again(context)
}

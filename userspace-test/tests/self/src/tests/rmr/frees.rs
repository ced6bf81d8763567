// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! RMRs that are freed while their bind is in a queue.

use super::scene::{bound, part, Scene, BOTH};
use crate::context::Context;
use crate::expect::{connection_over, done, refused_as};
use crate::harness::skip;
use anyhow::{ensure, Result};
use libkdapl::{CompletionFlags, DtoOperation, Segment, Subtype, Type};
use std::time::Duration;

pub fn freed_at_once(context: &Context) -> Result<()> {
    let flags = CompletionFlags::default();
    let length = context.long_message();
    for _ in 0..context.count(20) {
        let scene = Scene::new(context)?;
        let server = &scene.pair.server;
        // The queue is busy with a message that no receive takes yet. iWARP does not wait for one.
        let waits_for_receive = !context.client.is_iwarp();
        if !waits_for_receive {
            scene.pair.client.receive(0, length, 3)?;
        }
        server.send(0, length, 1)?;
        let part = part(&scene.lmr, 0, 100, BOTH);
        let segment = scene.rmr.bind(&server.ep, &part, 2, flags)?;
        if waits_for_receive {
            scene.pair.client.receive(0, length, 3)?;
        }
        scene.rmr.free()?;
        done(&context.next(&server.request)?, DtoOperation::Send, length as u64, 1)?;
        bound(context, server, &scene.rmr, 2)?;
        scene.access(context, true, segment, false)?;
    }
    Ok(())
}

/// Queues a send that no receive takes, a bind, and a message with the context.
fn behind_a_send(context: &Context, scene: &Scene) -> Result<Segment> {
    if context.client.is_iwarp() {
        return skip("over iWARP no request waits for a receive");
    }
    let server = &scene.pair.server;
    server.send(0, 64, 1)?;
    let part = part(&scene.lmr, 0, 100, BOTH);
    let segment = scene.rmr.bind(&server.ep, &part, 2, CompletionFlags::default())?;
    server.send(0, 64, 3)?;
    Ok(segment)
}

pub fn freed_with_stalled_bind(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let segment = behind_a_send(context, &scene)?;
    scene.rmr.free()?;
    let (client, before) = (&scene.pair.client, scene.lmr.buffer().to_vec(0, 16 << 10));
    // The peer goes on only now, unless it knows the end of the connection. It may get the message
    // with the context.
    if (0..2).all(|cookie| client.receive(0, 64, cookie).is_ok()) {
        for _ in 0..2 {
            context.next(&client.recv)?;
        }
    }
    let _ = client.write(0, 100, segment, 4);
    connection_over(&context.next(&client.connect)?)?;
    ensure!(scene.lmr.buffer().to_vec(0, 16 << 10) == before, "memory was written");
    connection_over(&context.next(&scene.pair.server.connect)?)
}

pub fn freed_behind_slow_request(context: &Context) -> Result<()> {
    if context.link_is_spoilt() {
        return skip("over this link a request may take longer than a free waits for it");
    }
    let scene = Scene::new(context)?;
    let segment = behind_a_send(context, &scene)?;
    let server = &scene.pair.server;
    std::thread::scope(|threads| {
        let free = threads.spawn(|| scene.rmr.free());
        std::thread::sleep(Duration::from_millis(250));
        (0..2).try_for_each(|cookie| scene.pair.client.receive(0, 64, cookie))?;
        anyhow::Ok(free.join().expect("a thread that ends")?)
    })?;
    done(&context.next(&server.request)?, DtoOperation::Send, 64, 1)?;
    bound(context, server, &scene.rmr, 2)?;
    done(&context.next(&server.request)?, DtoOperation::Send, 64, 3)?;
    scene.access(context, true, segment, false)
}

pub fn freed_with_full_evd(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let (client, server) = (&scene.pair.client, &scene.pair.server);
    (0..16).try_for_each(|cookie| client.receive(0, 64, cookie))?;
    (0..16).try_for_each(|cookie| server.send(0, 64, cookie))?;
    for _ in 0..16 {
        context.next(&client.recv)?;
    }
    // The other completions are in the ring after this wait. The next one fills it.
    let (event, _) = server.request.wait(Some(context.patience()), 16)?;
    done(&event, DtoOperation::Send, 64, 0)?;
    client.receive(0, 64, 16)?;
    server.send(0, 64, 16)?;
    context.next(&client.recv)?;
    let part = part(&scene.lmr, 0, 100, BOTH);
    let segment = scene.rmr.bind(&server.ep, &part, 17, CompletionFlags::default())?;
    std::thread::sleep(Duration::from_millis(100));
    let before = scene.lmr.buffer().to_vec(0, 16 << 10);
    scene.rmr.free()?;
    client.write(0, 100, segment, 18)?;
    connection_over(&context.next(&client.connect)?)?;
    ensure!(scene.lmr.buffer().to_vec(0, 16 << 10) == before, "memory was written");
    for cookie in 1..=16 {
        done(&context.next(&server.request)?, DtoOperation::Send, 64, cookie)?;
    }
    bound(context, server, &scene.rmr, 17)
}

pub fn freed_beside_bind(context: &Context) -> Result<()> {
    const BINDS: u64 = 8;
    let scene = Scene::new(context)?;
    let server = &scene.pair.server;
    let part = part(&scene.lmr, 0, 100, BOTH);
    let flags = CompletionFlags::default();
    for _ in 0..context.count(100) {
        let rmr = server.ia.create_rmr(&server.pz)?;
        let pause = Duration::from_micros(context.rng().u64(0..300));
        let made = std::thread::scope(|threads| {
            let binder = threads.spawn(|| {
                let refused = |cookie: &u64| rmr.bind(&server.ep, &part, *cookie, flags).err();
                (0..BINDS).find_map(|cookie| Some((cookie, refused(&cookie)?)))
            });
            std::thread::sleep(pause);
            rmr.free()?;
            anyhow::Ok(binder.join().expect("a thread that ends"))
        })?;
        let count = match made {
            None => BINDS,
            Some((count, error)) => {
                let invalid = Subtype::INVALID_HANDLE_RMR;
                refused_as(Err::<(), _>(error), Type::INVALID_HANDLE, invalid)?;
                count
            }
        };
        for cookie in 0..count {
            bound(context, server, &rmr, cookie)?;
        }
    }
    Ok(scene.lmr.free()?)
}

pub fn closed_while_bound(context: &Context) -> Result<()> {
    for in_queue in [false, true] {
        let scene = Scene::new(context)?;
        let server = &scene.pair.server;
        scene.bind(context, BOTH)?;
        let other = server.ia.create_rmr(&server.pz)?;
        if in_queue {
            let part = part(&scene.lmr, 0, 100, BOTH);
            other.bind(&server.ep, &part, 1, CompletionFlags::default())?;
        }
        server.ia.close(libkdapl::Close::Abrupt)?;
    }
    Ok(())
}

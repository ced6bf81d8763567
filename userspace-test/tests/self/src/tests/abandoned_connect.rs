// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connect after an abandoned attempt: leftovers of the attempt do not affect the next one.

use super::ep_races::post;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, done, same};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoOperation, Ep, EpState, Event, EventKind,
};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

tests! {
    #[Address]
    next_connect_works, 120, "A connect abandoned in progress does not affect the next connect";
    next_connect_works_after_accept, 120, "An accept abandoned in progress does not affect the next connect";
}

const RECEIVES: u64 = 4;

/// Disconnects in another thread, and does not wait for its return: a disconnected endpoint can be
/// reset.
fn give_up<T>(context: &Context, end: &End, next: impl FnOnce() -> Result<T>) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| end.ep.disconnect(Close::Abrupt));
        context.until("the attempt is abandoned", || {
            let _ = end.recv.dequeue().map(drop);
            let state = end.ep.status()?.state;
            ensure!(state != EpState::Unconnected, "the attempt was never in progress");
            if state == EpState::DisconnectPending {
                end.ep.disconnect(Close::Abrupt)?;
            }
            Ok(state == EpState::Disconnected)
        })?;
        let mut given_up = false;
        while let Ok((event, _)) = end.connect.dequeue() {
            given_up |= event.kind() == EventKind::Connection(ConnectionEvent::Disconnected);
        }
        if !given_up {
            // The attempt ended by itself. The thread notices that soon.
            while !thread.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        end.ep.reset()?;
        while end.recv.dequeue().is_ok() {}
        let next = next()?;
        thread.join().expect("the thread ends")?;
        Ok(next)
    })
}

/// Connects, and uses the connection.
fn works(
    context: &Context,
    client: &End,
    server: &End,
    (listener, address): &(Listener, IpAddr),
) -> Result<()> {
    post(client, &client.ep, 100..101)?;
    let patience = Some(context.patience());
    client.ep.connect(*address, listener.port, patience, &[])?;
    let peer = server.another_ep()?;
    let mut cr = listener.request(context)?;
    same("events of the next attempt so far", client.connect.query()?.queued, 0)?;
    cr.accept(&peer, &[])?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Established)?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Established)?;
    let segment = [server.lmr.segment(0, 64)];
    peer.post_send(&segment, 7, CompletionFlags::default())?;
    done(&context.next(&client.recv)?, DtoOperation::Receive, 64, 100)?;
    context.next(&server.request)?;
    end(context, client, &client.ep)?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Disconnected)?;
    peer.free()?;
    client.ep.reset()?;
    Ok(())
}

fn end(context: &Context, end: &End, ep: &Ep) -> Result<()> {
    ep.disconnect(Close::Abrupt)?;
    connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)
}

/// Rejects the requests at a listener until `stop` is set.
fn turn_away(listener: &Listener, stop: &AtomicBool) -> Result<()> {
    while !stop.load(Ordering::Relaxed) {
        match listener.evd.wait(Some(Duration::from_millis(10)), 1) {
            Ok((Event::ConnectionRequest { mut cr, .. }, _)) => drop(cr.reject(&[])),
            Ok((other, _)) => bail!("{other}"),
            Err(_) => {}
        }
    }
    Ok(())
}

fn next_connect_works(context: &Context) -> Result<()> {
    let (client_ia, server_ia) = context.open_both()?;
    let client = End::new(&client_ia, Shape { receives: 64, ..Default::default() })?;
    let server = End::new(&server_ia, Shape::default())?;
    let other = Listener::new(context, &server_ia)?;
    let listener = (Listener::new(context, &server_ia)?, context.server_address());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| turn_away(&other, &stop));
        let result = (0..context.count(200).max(40)).try_for_each(|round| {
            post(&client, &client.ep, 0..RECEIVES)?;
            let time = Some(context.patience());
            client.ep.connect(context.server_address(), other.port, time, &[])?;
            std::thread::sleep(Duration::from_micros(context.rng().u64(0..10_000)));
            give_up(context, &client, || works(context, &client, &server, &listener))
                .with_context(|| format!("round {round}"))
        });
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Abandons an accept in progress, and connects the same endpoint.
fn next_connect_works_after_accept(context: &Context) -> Result<()> {
    let (far_ia, near_ia) = context.open_both()?;
    let near = End::new(&near_ia, Shape { receives: 64, ..Default::default() })?;
    let far = End::new(&far_ia, Shape::default())?;
    let asker = End::new(&far_ia, Shape::default())?;
    let there = (Listener::new(context, &far_ia)?, context.client.address);
    let here = Listener::new(context, &near_ia)?;
    for round in 0..context.count(100).max(20) {
        let asks = asker.another_ep()?;
        let patience = Some(context.patience());
        asks.connect(context.server_address(), here.port, patience, &[])?;
        let mut cr = here.request(context)?;
        post(&near, &near.ep, 0..RECEIVES)?;
        std::thread::scope(|scope| -> Result<()> {
            let accept = scope.spawn(|| cr.accept(&near.ep, &[]));
            context.until("accepting", || Ok(near.ep.status()?.state != EpState::Unconnected))?;
            give_up(context, &near, || works(context, &near, &far, &there))?;
            Ok(accept.join().expect("the thread ends")?)
        })
        .with_context(|| format!("round {round}"))?;
        asks.free()?;
        while asker.connect.dequeue().is_ok() {}
    }
    Ok(())
}

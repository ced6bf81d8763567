// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cancelled operations, connections that break, and peers that die or stop.

use super::super::tests;
use super::tool::Server;
use super::{address, bytes, long, long_messages_arrive, transfer, ways, Side, Sides};
use crate::context::Context;
use crate::expect::same;
use anyhow::{ensure, Result};
use libkdapl_bmi::{Failure, Options};
use nix::sys::signal::Signal;
use std::time::Duration;

tests! {
    #[Transport]
    cancelled_before_match, 60,
        "BMI operations without a partner are cancelled at once, and nothing else";
    #[Transport]
    cancelled_amid_transfer, 120,
        "BMI transfers that either side cancels have one result, and move no byte after it";
    #[Link, Transport]
    disconnected, 60, "After a disconnect BMI operations fail, and the next post connects again";
    #[Transport]
    peer_killed, 120, "A BMI peer that is killed fails operations, and is reached again after its start";
    #[Transport]
    peer_stopped, 120, "A BMI peer that is stopped is given up, and holds no other one";
    #[Transport]
    nobody_listens, 60, "BMI operations fail with Refused if nobody listens";
    woken_by_others, 60, "A thread that waits for a BMI result is woken by a cancel or a post of another";
    #[Transport]
    context_dropped, 60, "A BMI context that is dropped ends its operations, and can be opened again";
}

/// Options with which silence is noticed soon.
fn impatient(context: &Context) -> Options {
    let silence = context.scaled(Duration::from_millis(300));
    Options { silence, patience: silence, ..Options::default() }
}

fn cancelled_before_match(context: &Context) -> Result<()> {
    for options in ways() {
        let sides = Sides::open(context, &options)?;
        let back = sides.greet()?;
        let (client, server) = (&sides.client, &sides.server);
        for length in [10, long(context, 100_000)] {
            let (sent, got) = (client.random(context, length)?, server.bmi.alloc(length)?);
            let receive = server.context.receive(&back, 5, &[got.whole()], 0)?;
            server.context.cancel(receive);
            server.failed(receive, Failure::Cancelled)?;
            let send = client.context.send(&sides.peer, 6, &[sent.part(0, length)], 0)?;
            client.context.cancel(send);
            // An eager message that is sent already is not stopped.
            if length > 16 << 10 {
                client.failed(send, Failure::Cancelled)?;
            } else {
                client.done(send, length)?;
            }
            transfer(context, (client, &sides.peer), (server, &back), length)?;
        }
    }
    Ok(())
}

fn cancelled_amid_transfer(context: &Context) -> Result<()> {
    const LENGTH: usize = 4 << 20;
    long_messages_arrive(context)?;
    let mut cancelled = 0;
    for round in 0..context.count(60).max(8) {
        let options = Options { pull: round % 2 == 0, ..Options::default() };
        let sides = Sides::open(context, &options)?;
        let back = sides.greet()?;
        let (client, server) = (&sides.client, &sides.server);
        let (sent, got) = (client.random(context, LENGTH)?, server.bmi.alloc(LENGTH)?);
        let receive = server.context.receive(&back, 5, &[got.whole()], 0)?;
        let send = client.context.send(&sides.peer, 5, &[sent.part(0, LENGTH)], 0)?;
        std::thread::sleep(Duration::from_micros(context.rng().u64(0..2000)));
        let (here, there) = match round % 4 / 2 {
            0 => ((client, send), (server, receive)),
            _ => ((server, receive), (client, send)),
        };
        here.0.context.cancel(here.1);
        let result = here.0.result(here.1)?.result;
        if result.is_err() {
            // Without a match, the other side does not know.
            there.0.context.cancel(there.1);
        }
        same("results of both sides", there.0.result(there.1)?.result, result)?;
        match result {
            Ok(()) => ensure!(bytes(&got, LENGTH) == bytes(&sent, LENGTH), "a wrong byte"),
            Err(failure) => {
                same("failure", failure, Failure::Cancelled)?;
                cancelled += 1;
                let before = bytes(&got, LENGTH);
                transfer(context, (client, &sides.peer), (server, &back), long(context, 100_000))?;
                ensure!(bytes(&got, LENGTH) == before, "a byte was written after the end");
            }
        }
    }
    ensure!(cancelled > 0, "no transfer was cancelled");
    Ok(())
}

fn disconnected(context: &Context) -> Result<()> {
    let sides = Sides::open(context, &Options::default())?;
    let (client, server) = (&sides.client, &sides.server);
    for _ in 0..3 {
        let back = sides.greet()?;
        let memory = client.random(context, 100_000)?;
        // Offered, and not taken.
        let send = client.context.send(&sides.peer, 1, &[memory.whole()], 0)?;
        let receive = client.context.receive(&sides.peer, 2, &[memory.whole()], 0)?;
        let theirs = server.context.receive(&back, 3, &[], 0)?;
        sides.peer.disconnect();
        client.failed(send, Failure::Reset)?;
        client.failed(receive, Failure::Reset)?;
        server.failed(theirs, Failure::Reset)?;
        let again = sides.greet()?;
        ensure!(again == back, "the client has another address after it has connected again");
        transfer(context, (client, &sides.peer), (server, &again), 100)?;
    }
    Ok(())
}

fn peer_killed(context: &Context) -> Result<()> {
    let address = address(context);
    let client = Side::open(context, &context.client, &impatient(context))?;
    let peer = client.bmi.lookup(&address)?;
    for _ in 0..3 {
        let server = Server::start(context, &address)?;
        server.echo(&client, &peer, long(context, 100_000))?;
        let receive = client.context.receive(&peer, 99, &[], 0)?;
        server.kill()?;
        let result = client.result(receive)?.result;
        ensure!(
            matches!(result, Err(Failure::Reset | Failure::TimedOut)),
            "a receive from a peer that was killed: {result:?}"
        );
    }
    Ok(())
}

fn peer_stopped(context: &Context) -> Result<()> {
    let client = Side::open(context, &context.client, &impatient(context))?;
    let places = [address(context), address(context)];
    let servers = [Server::start(context, &places[0])?, Server::start(context, &places[1])?];
    let peers = [client.bmi.lookup(&places[0])?, client.bmi.lookup(&places[1])?];
    for (server, peer) in servers.iter().zip(&peers) {
        server.echo(&client, peer, 1000)?;
    }
    servers[0].signal(Signal::SIGSTOP)?;
    let memory = client.random(context, 1 << 20)?;
    // More than the window: the rest waits here.
    let mut sends = Vec::new();
    for length in [10, 1 << 20].repeat(20) {
        sends.push(client.context.send(&peers[0], 1, &[memory.part(0, length)], 0)?);
    }
    servers[1].echo(&client, &peers[1], 1000)?;
    servers[1].echo(&client, &peers[1], long(context, 200_000))?;
    let mut given_up = 0;
    for send in sends {
        match client.result(send)?.result {
            // It has reached the peer's memory.
            Ok(()) => {}
            Err(failure) => {
                same("failure", failure, Failure::TimedOut)?;
                given_up += 1;
            }
        }
    }
    ensure!(given_up >= 20, "{given_up} of 40 sends to a stopped peer failed");
    servers[1].echo(&client, &peers[1], long(context, 200_000))?;
    // It goes on, and finds that its connection has ended.
    servers[0].signal(Signal::SIGCONT)?;
    servers[0].echo(&client, &peers[0], 1000)
}

fn nobody_listens(context: &Context) -> Result<()> {
    let client = Side::open(context, &context.client, &Options::default())?;
    let peer = client.bmi.lookup(&address(context))?;
    for _ in 0..3 {
        let memory = client.random(context, 100_000)?;
        let send = client.context.send(&peer, 1, &[memory.whole()], 0)?;
        let receive = client.context.receive(&peer, 1, &[memory.whole()], 0)?;
        client.failed(send, Failure::Refused)?;
        client.failed(receive, Failure::Refused)?;
    }
    Ok(())
}

/// Calls `end` while another thread waits for an operation, which then has this result.
fn wakes(
    context: &Context,
    side: &Side,
    op: libkdapl_bmi::Op,
    end: impl FnOnce() -> Result<()>,
) -> Result<Option<Failure>> {
    let pause = context.scaled(Duration::from_millis(30));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let start = std::time::Instant::now();
            (side.context.wait_for(op, Some(Duration::from_secs(600))), start.elapsed())
        });
        std::thread::sleep(pause);
        end()?;
        let (result, time) = waiter.join().map_err(|_| anyhow::anyhow!("the waiter panicked"))?;
        ensure!(time < Duration::from_secs(300), "the waiter was not woken");
        Ok(result?.and_then(|completion| completion.result.err()))
    })
}

fn woken_by_others(context: &Context) -> Result<()> {
    let sides = Sides::open(context, &Options::default())?;
    sides.greet()?;
    let client = &sides.client;
    // More often than a thread of the library could have been the one that waits.
    for _ in 0..5 {
        let receive = client.context.receive(&sides.peer, 1, &[], 0)?;
        let cancel = || {
            client.context.cancel(receive);
            Ok(())
        };
        same("result", wakes(context, client, receive, cancel)?, Some(Failure::Cancelled))?;
        let receive = client.context.receive(&sides.peer, 1, &[], 0)?;
        let disconnect = || {
            sides.peer.disconnect();
            Ok(())
        };
        same("result", wakes(context, client, receive, disconnect)?, Some(Failure::Reset))?;
        sides.greet()?;
    }
    Ok(())
}

fn context_dropped(context: &Context) -> Result<()> {
    let sides = Sides::open(context, &Options::default())?;
    let back = sides.greet()?;
    let (client, server) = (&sides.client, &sides.server);
    let memory = client.random(context, 1 << 20)?;
    for round in 0..40 {
        let other = client.bmi.open_context()?;
        other.receive(&sides.peer, 100, &[memory.whole()], 0)?;
        other.send(&sides.peer, 200 + round, &[memory.whole()], 0)?;
    }
    transfer(context, (client, &sides.peer), (server, &back), long(context, 100_000))?;
    let contexts = (0..15).map(|_| client.bmi.open_context());
    let contexts = contexts.collect::<libkdapl_bmi::Result<Vec<_>>>()?;
    match client.bmi.open_context() {
        Err(libkdapl_bmi::Error::Contexts) => {}
        other => anyhow::bail!("a seventeenth context: {other:?}"),
    }
    drop(contexts);
    client.bmi.open_context().map(drop).map_err(Into::into)
}

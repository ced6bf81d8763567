// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cancelled operations, connections that break, and peers that die or stop.

use super::super::tests;
use super::tool::Server;
use super::{address, bytes, long, long_messages_arrive, transfer, ways, Side, Sides};
use crate::context::Context;
use crate::expect::same;
use anyhow::{ensure, Context as _, Result};
use libkdapl_bmi::{Failure, Memory, Options, Part, Peer};
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

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
    context_closed, 60, "A BMI context that is closed ends the waits of other threads, and no other context gets them";
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

/// Which side cancels.
#[derive(Clone, Copy, Debug)]
enum Canceller {
    Sender,
    Receiver,
}

/// Regions of a receive. If the sender writes, each is a request, and 64 requests are posted at
/// once: a cancel after the first byte finds some that are not posted yet. A receiver reads them by
/// a few requests, which are all posted at once.
const REGIONS: usize = 224;
const REGION: usize = 16 << 10;
const MESSAGE: usize = REGIONS * REGION;

/// Waits until the first byte of a message, which is 1, has arrived.
fn first_byte_arrives(context: &Context, memory: &Memory) -> Result<()> {
    let start = Instant::now();
    while bytes(memory, 1) != [1] {
        ensure!(start.elapsed() < context.patience(), "no byte arrives");
        std::thread::yield_now();
    }
    Ok(())
}

/// Moves a message that one side cancels this time after its first byte has arrived. Returns
/// whether it was cancelled.
fn cancel_amid(
    context: &Context,
    (sides, back): (&Sides, &Peer),
    canceller: Canceller,
    pause: Duration,
) -> Result<bool> {
    let (client, server) = (&sides.client, &sides.server);
    let (sent, got) = (client.random(context, MESSAGE)?, server.bmi.alloc(2 * MESSAGE)?);
    sent.buffer().write(0, &[1]);
    // They do not touch.
    let regions: Vec<Part> = (0..REGIONS).map(|n| got.part(2 * REGION * n, REGION)).collect();
    let receive = server.context.receive(back, 5, &regions, 0)?;
    let send = client.context.send(&sides.peer, 5, &[sent.whole()], 0)?;
    first_byte_arrives(context, &got)?;
    std::thread::sleep(pause);
    let ((here, op), (there, other)) = match canceller {
        Canceller::Sender => ((client, send), (server, receive)),
        Canceller::Receiver => ((server, receive), (client, send)),
    };
    here.context.cancel(op);
    let result = here.result(op)?.result;
    same("results of both sides", there.result(other)?.result, result)?;
    match result {
        Ok(()) => {
            let moved: Vec<u8> = regions.iter().flat_map(Part::to_vec).collect();
            ensure!(moved == bytes(&sent, MESSAGE), "a wrong byte");
        }
        Err(failure) => {
            same("failure", failure, Failure::Cancelled)?;
            let before = bytes(&got, 2 * MESSAGE);
            transfer(context, (client, &sides.peer), (server, back), long(context, 100_000))?;
            ensure!(bytes(&got, 2 * MESSAGE) == before, "a byte was written after the end");
        }
    }
    Ok(result.is_err())
}

fn cancelled_amid_transfer(context: &Context) -> Result<()> {
    long_messages_arrive(context)?;
    for options in ways() {
        for canceller in [Canceller::Sender, Canceller::Receiver] {
            let way = format!("pull {}, cancelled by the {canceller:?}", options.pull);
            let sides = Sides::open(context, &options)?;
            let back = sides.greet()?;
            let mut cancelled = false;
            // The first ones are cancelled at once, the others later and later.
            for round in 0..context.count(30).max(4) {
                let pause = Duration::from_micros(50 * round.saturating_sub(3));
                cancelled |= cancel_amid(context, (&sides, &back), canceller, pause)
                    .with_context(|| way.clone())?;
            }
            let must = !options.pull || context.loses_reads();
            ensure!(cancelled || !must, "no transfer was cancelled: {way}");
        }
    }
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

fn context_closed(context: &Context) -> Result<()> {
    let sides = Sides::open(context, &Options::default())?;
    sides.greet()?;
    let client = &sides.client;
    let invalid = |result: libkdapl_bmi::Result<()>| match result {
        Err(libkdapl_bmi::Error::Post(Failure::Invalid)) => Ok(()),
        other => anyhow::bail!("a call on a closed context: {other:?}"),
    };
    let memory = client.bmi.alloc(100)?;
    for _ in 0..5 {
        let other = client.bmi.open_context()?;
        let receive = other.receive(&sides.peer, 100, &[memory.whole()], 0)?;
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| other.wait(1, None).map(drop));
            std::thread::sleep(context.scaled(Duration::from_millis(10)));
            other.close();
            invalid(waiter.join().map_err(|_| anyhow::anyhow!("the waiter panicked"))?)
        })?;
        // Another context has the number now.
        let next = client.bmi.open_context()?;
        let posted = next.receive(&sides.peer, 100, &[memory.whole()], 0)?;
        next.cancel(posted);
        invalid(other.wait(1, None).map(drop))?;
        invalid(other.receive(&sides.peer, 100, &[memory.whole()], 0).map(drop))?;
        ensure!(!other.has(receive) && !other.has(posted), "a closed context has an operation");
        other.close();
        let taken = next.wait(1, Some(context.patience()))?;
        same("results of the next context", taken.len(), 1)?;
    }
    Ok(())
}

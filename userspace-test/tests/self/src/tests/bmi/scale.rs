// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Many peers, many threads, and several connections to a peer.

use super::super::tests;
use super::super::user_limits::tenant::become_tenant;
use super::super::user_limits::Parameter;
use super::hostile::{connect, ended, hello};
use super::{address, bytes, transfer, Side, Sides};
use crate::context::Context;
use crate::expect::same;
use crate::fork::{end_of, fork, Child};
use crate::harness::skip;
use crate::machine::count_of;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent};
use libkdapl_bmi::{Failure, Options, Peer};
use std::time::Duration;

tests! {
    #[Long]
    thousand_peers, 600, "A BMI server has 1,000 peers in less than 20 MiB of registered memory";
    idle_given_up, 120, "A BMI process that may have few Endpoints gives up idle peers for others";
    #[Transport]
    few_receives, 120, "BMI connections that end amid messages leave shared receives for others";
    #[Transport]
    events_kept, 120, "A BMI server that is stopped loses no event of 60 connections that end, although its event queue was short at first";
    #[Link, Transport]
    rails, 120, "BMI divides messages over four connections, and keeps their order";
    #[Transport]
    threads, 120, "Each of eight threads gets the results of its own BMI context";
}

/// Registered memory that a server may use for messages.
const MEMORY: usize = 20 << 20;

fn thousand_peers(context: &Context) -> Result<()> {
    if context.server.is_iwarp() {
        return skip(
            "over iWARP a message without a receive ends its connection, so each has its own",
        );
    }
    let count = context.count(10_000).clamp(100, 1000);
    let sides = Sides::open(context, &Options::default())?;
    let server_address = sides.server.bmi.address().context("an address")?;
    let mut peers: Vec<(Peer, Peer)> = Vec::new();
    for number in 0..count {
        let peer = sides.client.bmi.lookup(&server_address)?;
        let send = sides.client.context.send_unexpected(&peer, number as i32, &[], 0)?;
        let message = sides.server.unexpected()?;
        same("tag", message.tag, number as i32)?;
        sides.client.done(send, 0)?;
        peers.push((peer, message.peer));
    }
    let registered = sides.server.bmi.registered();
    ensure!(registered < MEMORY, "{registered} bytes are registered for {count} peers");
    // All of them send at once.
    let memory = sides.client.random(context, 1000)?;
    let mut ops = Vec::new();
    for (to, from) in &peers {
        let got = sides.server.bmi.alloc(1000)?;
        let receive = sides.server.context.receive(from, 1, &[got.whole()], 0)?;
        let send = sides.client.context.send(to, 1, &[memory.whole()], 0)?;
        ops.push((receive, send, got));
    }
    for (receive, send, got) in ops {
        sides.server.done(receive, 1000)?;
        sides.client.done(send, 1000)?;
        ensure!(bytes(&got, 1000) == bytes(&memory, 1000), "a wrong byte");
    }
    let registered = sides.server.bmi.registered();
    ensure!(registered < MEMORY, "{registered} bytes are registered for {count} busy peers");
    Ok(())
}

/// Tags of messages on connections that end, and of the others.
const ENDS: i32 = 1;
const STAYS: i32 = 2;

fn few_receives(context: &Context) -> Result<()> {
    // Two connections have more receives.
    let options = Options { shared_receives: 48, ..Options::default() };
    let sides = Sides::open(context, &options)?;
    let (client, server) = (&sides.client, &sides.server);
    let server_address = server.bmi.address().context("an address")?;
    let memory = client.random(context, 1000)?;
    let send =
        |peer: &Peer, tag| client.context.send_unexpected(peer, tag, &[memory.part(0, 1000)], 0);
    for round in 0..context.count(40).max(5) {
        let mut ops = Vec::new();
        let peers = (0..4).map(|_| client.bmi.lookup(&server_address));
        let peers = peers.collect::<Result<Vec<_>, _>>()?;
        for peer in &peers {
            client.done(send(peer, ENDS)?, 1000)?;
        }
        for peer in &peers {
            for _ in 0..20 {
                ops.push(send(peer, ENDS)?);
            }
        }
        peers.iter().for_each(Peer::disconnect);
        for op in ops {
            // It succeeds or fails.
            client.result(op)?;
        }
        let peer = client.bmi.lookup(&server_address)?;
        let stays = client.done(send(&peer, STAYS)?, 1000);
        stays.with_context(|| format!("round {round}"))?;
        while server.unexpected()?.tag != STAYS {}
    }
    Ok(())
}

fn idle_given_up(context: &Context) -> Result<()> {
    const PEERS: usize = 20;
    let address = address(context);
    let listening = Options { listen: Some(address.clone()), ..Options::default() };
    let server = Side::open(context, &context.server, &listening)?;
    let _limit = Parameter::set("user_queue_pairs", 7)?;
    let child = fork(|| {
        become_tenant()?;
        let client = Side::open(context, &context.client, &Options::default())?;
        let peers = (0..PEERS).map(|_| client.bmi.lookup(&address));
        let peers = peers.collect::<libkdapl_bmi::Result<Vec<_>>>()?;
        // Twice, so that those that were given up connect again.
        for peer in peers.iter().chain(&peers) {
            let send = client.context.send_unexpected(peer, 1, &[], 0)?;
            client.done(send, 0)?;
        }
        // Peers with an operation are not idle.
        let mut busy = Vec::new();
        let refused = loop {
            ensure!(busy.len() < PEERS, "no connect was refused");
            let peer = &peers[busy.len()];
            let send = client.context.send_unexpected(peer, 2, &[], 0)?;
            busy.push(client.context.receive(peer, 3, &[], 0)?);
            if let Err(failure) = client.result(send)?.result {
                break failure;
            }
        };
        same("failure without an idle peer", refused, Failure::NoMemory)
    })?;
    let mut greetings = 0;
    while greetings < 2 * PEERS {
        greetings += usize::from(server.unexpected()?.tag == 1);
    }
    same("status of the client", end_of(child)?, 0)
}

fn rails(context: &Context) -> Result<()> {
    let options = Options { rails: 4, stripe_from: 8192, pull: false, ..Options::default() };
    let sides = Sides::open(context, &options)?;
    let back = sides.greet()?;
    let (client, server) = ((&sides.client, &sides.peer), (&sides.server, &back));
    let most = if context.link_is_spoilt() { 60_000 } else { 3 << 20 };
    for length in [100, 10_000, 20_000, most] {
        transfer(context, client, server, length)?;
        transfer(context, server, client, length)?;
    }
    // Messages of one tag arrive in order, whatever their lengths.
    let lengths: Vec<usize> = (0..60).map(|_| context.rng().usize(1..40_000)).collect();
    let mut ops = Vec::new();
    for length in &lengths {
        let (sent, got) = (sides.client.random(context, *length)?, server.0.bmi.alloc(40_000)?);
        let send = sides.client.context.send(&sides.peer, 3, &[sent.part(0, *length)], 0)?;
        let receive = server.0.context.receive(&back, 3, &[got.whole()], 0)?;
        ops.push((*length, sent, got, send, receive));
    }
    for (length, sent, got, send, receive) in ops {
        server.0.done(receive, length)?;
        sides.client.done(send, length)?;
        ensure!(bytes(&got, length) == bytes(&sent, length), "messages are not in order");
    }
    Ok(())
}

fn threads(context: &Context) -> Result<()> {
    const THREADS: i32 = 8;
    let rounds = context.count(400).clamp(20, 400);
    let sides = Sides::open(context, &Options::default())?;
    let back = sides.greet()?;
    let patience = context.patience();
    let work = &|number: i32| -> Result<()> {
        let (here, there) = (sides.client.bmi.open_context()?, sides.server.bmi.open_context()?);
        let memory = sides.client.bmi.alloc(2000)?;
        let got = sides.server.bmi.alloc(2000)?;
        for round in 0..rounds {
            let length = 1000 + number as usize;
            memory.buffer().fill(0, length, round as u8 ^ number as u8);
            there.receive(&back, number, &[got.whole()], round)?;
            here.send(&sides.peer, number, &[memory.part(0, length)], round)?;
            for side in [&there, &here] {
                let mut taken = side.wait(4, Some(patience))?;
                let taken_by = taken.pop().context("no result")?;
                ensure!(taken.is_empty(), "two results");
                same("user", taken_by.user, round)?;
                same("length", taken_by.length, length as u64)?;
                taken_by.result?;
            }
            ensure!(bytes(&got, length) == bytes(&memory, length), "a wrong byte");
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (1..=THREADS).map(|number| scope.spawn(move || work(number))).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow::anyhow!("a thread has panicked"))??;
        }
        Ok(())
    })
}

/// A server with few places for events at first, on which nothing but an event ends a connection.
fn serve_with_short_queue(context: &Context, address: &str) -> Result<()> {
    let options = Options {
        listen: Some(address.into()),
        events: 8,
        silence: Duration::from_secs(100_000),
        ..Options::default()
    };
    let server = Side::open(context, &context.server, &options)?;
    // Without a limit of time: the test ends this process.
    while server.bmi.wait_unexpected(1, None)?.iter().all(|message| message.tag != STAYS) {}
    Ok(())
}

fn events_kept(context: &Context) -> Result<()> {
    const PEERS: usize = 60;
    let (address, before) = (address(context), count_of("ep")?);
    let mut child = Child::start(|| serve_with_short_queue(context, &address))?;
    let client = Side::open(context, &context.client, &Options::default())?;
    let peer = client.bmi.lookup(&address)?;
    let says = |tag| -> Result<bool> {
        let send = client.context.send_unexpected(&peer, tag, &[], 0)?;
        Ok(client.result(send)?.result.is_ok())
    };
    context.until("the server listens", || says(ENDS))?;
    let connected = before + 2;
    let peers = (0..PEERS).map(|_| connect(context, &address, &hello()));
    let peers = peers.collect::<Result<Vec<_>>>()?;
    // The server takes no event, and each peer leaves one.
    child.signal(libc::SIGSTOP)?;
    ensure!(child.stops()?, "the server ends");
    for (event, end) in &peers {
        same("answer of the server", *event, ConnectionEvent::Established)?;
        end.ep.disconnect(Close::Abrupt)?;
        ended(context, end)?;
    }
    drop(peers);
    let left = connected + PEERS as u64;
    context.until("the peers have gone", || Ok(count_of("ep")? == left))?;
    child.signal(libc::SIGCONT)?;
    context.until("their connections end", || Ok(count_of("ep")? == connected))?;
    ensure!(says(STAYS)?, "the server does not answer any more");
    same("status of the server", child.end()?, 0)
}

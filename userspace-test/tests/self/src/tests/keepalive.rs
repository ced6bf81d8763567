// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Keepalive of idle connections.

use super::silent_peer::{next_within, two_hosts, PacketsDropped, MAX_RECOVERY_TIME};
use super::tests;
use super::trace::{operations, RecordedOperations};
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, done, same};
use crate::harness::skip;
use crate::threads::Joined;
use crate::udapl::{possible, Program, Provider, ADAPTER};
use anyhow::{bail, ensure, Result};
use libkdapl::{Close, CompletionFlags, ConnectionEvent, DtoOperation, EpState};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

tests! {
    #[Hosts]
    dead_peer, 120, "An idle connection whose peer falls silent is BROKEN on both sides within its keepalive time";
    #[Hosts]
    dead_peer_after_silent_requests, 120, "So is one whose last requests are unsignalled";
    #[Hosts]
    dead_peer_with_receives, 120, "So is one that has receives outstanding, as soon as they are flushed";
    #[Transport]
    living_peer, 60, "An idle connection to a living peer stays, and its probes are not seen";
    #[Transport]
    room, 60, "With probes, as many requests can be outstanding as without";
    #[Transport]
    full_evd, 60, "A connection stays while the answer to a probe waits behind a full EVD";
    #[Hosts, Udapl]
    of_udapl, 120, "uDAPL: an idle connection whose peer falls silent is BROKEN if its Endpoint has a keepalive";
    resets, 60, "An endpoint that is reset with a probe outstanding connects again";
}

const SHAPE: Shape = Shape {
    merged: false,
    receives: 16,
    requests: 16,
    memory: 64 << 10,
    peer_timeout_ms: 0,
    keepalive_ms: 6_000,
};

/// Time in which an idle connection is probed several times.
const IDLE: Duration = Duration::from_secs(10);

/// Connects, and sends a message. Over iWARP the side that accepts may not probe before.
fn pair(context: &Context) -> Result<Pair> {
    pair_of(context, SHAPE)
}

fn pair_of(context: &Context, shape: Shape) -> Result<Pair> {
    let pair = Pair::new(context, shape)?;
    pair.server.receive(0, 64, 1)?;
    pair.client.send(0, 64, 2)?;
    done(&context.next(&pair.server.recv)?, DtoOperation::Receive, 64, 1)?;
    done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, 2)?;
    Ok(pair)
}

/// Skips the test unless one of two hosts can fall silent, and the other one notices that.
pub fn silent_hosts(context: &Context) -> Result<()> {
    two_hosts(context)?;
    if context.client.is_siw() {
        return skip("siw does not answer reads of no bytes, so it has no keepalive".to_string());
    }
    Ok(())
}

/// Time between two looks of the kernel at a connection.
const TICK: Duration = Duration::from_secs(1);

/// Runs `action`. Also returns how late the latest of many sleeps of another thread has ended.
fn with_lateness<T>(action: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    const SLEEP: Duration = Duration::from_millis(50);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let mut latest = Duration::ZERO;
            while !ends.load(SeqCst) {
                let start = Instant::now();
                std::thread::sleep(SLEEP);
                latest = latest.max(start.elapsed().saturating_sub(SLEEP));
            }
            latest
        });
        let outcome = action();
        ends.store(true, SeqCst);
        let latest = sleeper.join().or_panicked()?;
        Ok((outcome?, latest))
    })
}

/// Connects, and loses all packets. Checks that both sides report BROKEN within the keepalive time,
/// and no sooner than two looks before its end.
///
/// A look is some jiffies late. A busy machine may be later, as it is for a sleep.
pub fn broken_in_time(context: &Context, shape: Shape, time: Duration) -> Result<()> {
    let begin = Instant::now();
    let pair = pair_of(context, shape)?;
    let ends = [&pair.client, &pair.server];
    let ((first, last, _silence), lateness) = with_lateness(|| {
        let silence = PacketsDropped::new(context)?;
        let (start, mut first) = (Instant::now(), None);
        for end in ends {
            let event = next_within(context, &end.connect, MAX_RECOVERY_TIME)?;
            connection(&event, ConnectionEvent::Broken)?;
            first.get_or_insert_with(|| begin.elapsed());
        }
        Ok((first.unwrap_or_default(), start.elapsed(), silence))
    })?;
    println!("the peer was given up after {last:?}; a sleep was {lateness:?} late");
    let looks = time.as_secs() as u32;
    let latest = time + time / 10 + lateness * looks + context.scaled(TICK / 10);
    ensure!(last <= latest, "BROKEN after {last:?}, expected within {latest:?}");
    ensure!(first >= time - 2 * TICK, "BROKEN already after {first:?}");
    for end in ends {
        same("state", end.ep.query()?.state, EpState::Disconnected)?;
        context.quiet(&end.request)?;
        context.quiet(&end.connect)?;
    }
    Ok(())
}

fn dead_peer(context: &Context) -> Result<()> {
    silent_hosts(context)?;
    let times: &[u32] = if context.settings.effort < 1.0 { &[6_000] } else { &[6_000, 9_000] };
    for &keepalive_ms in times {
        let time = Duration::from_millis(keepalive_ms.into());
        broken_in_time(context, Shape { keepalive_ms, ..SHAPE }, time)?;
    }
    Ok(())
}

fn dead_peer_after_silent_requests(context: &Context) -> Result<()> {
    silent_hosts(context)?;
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    client.lmr.buffer().write(0, &[7]);
    let remote = server.lmr.remote_segment(0, 1);
    let local = [client.lmr.segment(0, 1)];
    client.ep.post_rdma_write(&local, remote, 3, CompletionFlags::SUPPRESS)?;
    context.until("the write arrives", || Ok(server.lmr.buffer().to_vec(0, 1) == [7]))?;
    // Its acknowledgement follows.
    std::thread::sleep(Duration::from_millis(20));
    let _silence = PacketsDropped::new(context)?;
    let event = next_within(context, &client.connect, MAX_RECOVERY_TIME)?;
    connection(&event, ConnectionEvent::Broken)?;
    context.quiet(&client.request)
}

/// The first flushed receive alone would leave `rdma_cm` a second to report another end. The failed
/// probe tells that there will be none. It fails before the keepalive gives the peer up.
fn dead_peer_with_receives(context: &Context) -> Result<()> {
    silent_hosts(context)?;
    let _operations = RecordedOperations::new(256)?;
    let pair = pair_of(context, Shape { peer_timeout_ms: 1_000, keepalive_ms: 30_000, ..SHAPE })?;
    let client = &pair.client;
    (0..4).try_for_each(|cookie| client.receive(0, 64, cookie))?;
    let _silence = PacketsDropped::new(context)?;
    connection(
        &next_within(context, &client.connect, MAX_RECOVERY_TIME)?,
        ConnectionEvent::Broken,
    )?;
    let flushed = operations(&client.ep, "complete operation=RECEIVE status=FLUSHED")?;
    let ended = operations(&client.ep, "state from=CONNECTED")?;
    let [(flushed, _), ..] = flushed[..] else { bail!("no receive was flushed") };
    let [(ended, _)] = ended[..] else { bail!("the connection has ended {} times", ended.len()) };
    let late = ended.saturating_sub(flushed);
    ensure!(late < Duration::from_secs(1), "the end is {late:?} late");
    Ok(())
}

fn of_udapl(context: &Context) -> Result<()> {
    let address = possible(context)?;
    silent_hosts(context)?;
    let ia = context.open_server()?;
    let (listener, server) = (Listener::new(context, &ia)?, End::new(&ia, Shape::default())?);
    let line = format!("udapl-consumer idle {ADAPTER} {address} {} 6000", listener.port);
    let mut program = Program::start(&context.client, Provider::Ours, &line)?;
    listener.request(context)?.accept(&server.ep, &[])?;
    program.says(context, "connected")?;
    let _silence = PacketsDropped::new(context)?;
    program.succeeds(context.scaled(MAX_RECOVERY_TIME))
}

fn living_peer(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let end = Instant::now() + IDLE;
    while Instant::now() < end {
        for end in [&pair.client, &pair.server] {
            let status = end.ep.status()?;
            same("state", status.state, EpState::Connected)?;
            same("outstanding requests", status.request_outstanding, 0)?;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for end in [&pair.client, &pair.server] {
        context.quiet(&end.request)?;
        context.quiet(&end.recv)?;
        context.quiet(&end.connect)?;
    }
    pair.client.ep.disconnect(Close::Graceful)?;
    connection(&context.next(&pair.client.connect)?, ConnectionEvent::Disconnected)
}

fn room(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let remote = pair.server.lmr.remote_segment(0, 64);
    let end = Instant::now() + IDLE;
    while Instant::now() < end {
        (0..SHAPE.requests.into())
            .try_for_each(|cookie| pair.client.write(0, 64, remote, cookie))?;
        for cookie in 0..SHAPE.requests.into() {
            done(&context.next(&pair.client.request)?, DtoOperation::RdmaWrite, 64, cookie)?;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    same("state", pair.client.ep.status()?.state, EpState::Connected)
}

fn full_evd(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let remote = pair.server.lmr.remote_segment(0, 64);
    // Wait until a probe may be outstanding, then fill the EVD.
    std::thread::sleep(Duration::from_millis(1_900));
    (0..SHAPE.requests.into()).try_for_each(|cookie| pair.client.write(0, 64, remote, cookie))?;
    std::thread::sleep(IDLE);
    same("state", pair.client.ep.status()?.state, EpState::Connected)?;
    for cookie in 0..SHAPE.requests.into() {
        done(&context.next(&pair.client.request)?, DtoOperation::RdmaWrite, 64, cookie)?;
    }
    context.quiet(&pair.client.connect)?;
    same("state", pair.client.ep.status()?.state, EpState::Connected)
}

fn resets(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    // A probe is posted two to three seconds after the last message.
    std::thread::sleep(Duration::from_millis(2_100));
    pair.client.ep.disconnect(Close::Abrupt)?;
    connection(&context.next(&pair.client.connect)?, ConnectionEvent::Disconnected)?;
    pair.client.ep.reset()?;
    ensure!(pair.client.ep.query()?.raw.attr.keepalive_ms == SHAPE.keepalive_ms, "other keepalive");
    context.quiet(&pair.client.request)
}

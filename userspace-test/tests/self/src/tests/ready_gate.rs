// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The ready gate: a side that connects or accepts holds ESTABLISHED and all later events back
//! until it is ready.

pub mod shared;

use super::tests;
use crate::context::Context;
use crate::end::{End, Gated, Listener, Pair, Shape};
use crate::expect::{connection, done, dto, empty, ended, errno, refused, same};
use crate::machine::no_objects_left;
use crate::peer::{Part, Peer, Step};
use crate::raw;
use anyhow::Result;
use libkdapl::raw::call;
use libkdapl::sys::{kdapl_handle, kdapl_hdr, KDAPL_FLAG_READY_GATE};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpState, Type,
};
use std::time::Duration;

tests! {
    #[Address, Link, Transport]
    acceptor_waits, 60, "An endpoint that accepts with a closed ready gate gets no event until it is ready, and then all in order";
    #[Address, Link, Transport]
    connector_waits, 60, "An endpoint that connects with a closed ready gate gets no event until it is ready, and then all in order";
    #[Address, Link, Transport]
    both_wait, 60, "Both sides of a connection close their gates, and open them one after the other";
    #[Transport]
    opened_early, 60, "A gate that is opened before the connection is established holds nothing back";
    #[Transport]
    many_messages, 120, "A closed gate holds back as many messages as the endpoint has receives";
    #[Transport]
    peer_disconnects, 60, "A peer that disconnects before the gate is opened is reported after its messages";
    #[Transport]
    peer_dies, 60, "A peer that is killed before the gate is opened is reported after ESTABLISHED";
    #[Transport]
    disconnected_instead, 60, "An endpoint that disconnects with a closed gate gets its receives and DISCONNECTED, without ESTABLISHED";
    #[Transport]
    freed_instead, 60, "An endpoint that is freed with a closed gate leaves nothing behind";
    #[Transport]
    failures_pass, 60, "A connect that fails is reported although the gate is closed";
    #[Transport]
    time_out_stops, 60, "The time-out of a connect does not end a connection whose gate is closed";
    #[Transport]
    cno_is_quiet, 60, "A closed gate triggers no CNO, and an opened one does";
    #[Transport]
    races, 120, "Gates are opened at the moment at which messages arrive and the peer disconnects";
    refusals, 60, "Calls with the wrong state or without the flag are refused";
}

const LENGTH: usize = 64;

/// One EVD for all events of each side.
const MERGED: Shape = Shape {
    merged: true,
    receives: 16,
    requests: 16,
    memory: 64 << 10,
    peer_timeout_ms: 0,
    keepalive_ms: 0,
};

const CLIENT: Gated = Gated { client: true, server: false };
const SERVER: Gated = Gated { client: false, server: true };

/// Connects with closed gates. Every receive is posted before.
fn connect(context: &Context, shape: Shape, gated: Gated) -> Result<Pair> {
    let pair = Pair::unconnected(context, shape)?;
    for end in [&pair.client, &pair.server] {
        for number in 0..shape.receives {
            end.receive(place(end, number), LENGTH, number.into())?;
        }
    }
    pair.connect_gated(context, gated)?;
    Ok(pair)
}

/// Offset of the memory of a receive: in the second half.
fn place(end: &End, number: u32) -> usize {
    let half = end.lmr.buffer().len() / 2;
    half + number as usize * LENGTH % half
}

/// Sends messages. Their bytes are their numbers.
fn send(context: &Context, end: &End, numbers: std::ops::Range<u32>) -> Result<()> {
    for number in numbers {
        end.lmr.buffer().write(0, &[number as u8 + 1; LENGTH]);
        end.send(0, LENGTH, number.into())?;
        done(&context.next(&end.request)?, DtoOperation::Send, LENGTH as u64, number.into())?;
    }
    Ok(())
}

/// Waits until a message is in the memory of a receive.
fn await_bytes(context: &Context, end: &End, number: u32) -> Result<()> {
    context.until("the message is there", || {
        let bytes = end.lmr.buffer().to_vec(place(end, number), LENGTH);
        Ok(bytes == [number as u8 + 1; LENGTH])
    })
}

fn receives(context: &Context, end: &End, numbers: std::ops::Range<u32>) -> Result<()> {
    for number in numbers {
        let event = context.next(&end.recv)?;
        done(&event, DtoOperation::Receive, LENGTH as u64, number.into())?;
    }
    Ok(())
}

fn flushes(context: &Context, end: &End, numbers: std::ops::Range<u32>) -> Result<()> {
    for number in numbers {
        let flushed = dto(&context.next(&end.recv)?, DtoOperation::Receive, DtoStatus::Flushed)?;
        same("cookie", flushed.cookie, number.into())?;
    }
    Ok(())
}

pub fn established(context: &Context, end: &End) -> Result<()> {
    connection(&context.next(&end.connect)?, ConnectionEvent::Established)
}

fn state(ep: &Ep, expected: EpState) -> Result<()> {
    same("state", ep.status()?.state, expected)
}

/// Lets `peer` send to `gated`, whose gate is closed, opens the gate, and checks all events.
fn check_order(context: &Context, gated: &End, peer: &End, pending: EpState) -> Result<()> {
    send(context, peer, 0..3)?;
    await_bytes(context, gated, 2)?;
    context.quiet(&gated.recv)?;
    state(&gated.ep, pending)?;
    refused(gated.ep.post_send(&[], 1, CompletionFlags::default()), Type::INVALID_STATE)?;
    gated.ep.ready()?;
    established(context, gated)?;
    receives(context, gated, 0..3)?;
    state(&gated.ep, EpState::Connected)?;
    // The connection goes on as any other.
    send(context, peer, 3..5)?;
    receives(context, gated, 3..5)?;
    send(context, gated, 0..1)?;
    receives(context, peer, 0..1)?;
    gated.ep.ready()?;
    empty(&gated.recv)
}

fn acceptor_waits(context: &Context) -> Result<()> {
    let pair = connect(context, MERGED, SERVER)?;
    check_order(context, &pair.server, &pair.client, EpState::CompletionPending)
}

fn connector_waits(context: &Context) -> Result<()> {
    let pair = connect(context, MERGED, CLIENT)?;
    check_order(context, &pair.client, &pair.server, EpState::ActiveConnectionPending)
}

fn both_wait(context: &Context) -> Result<()> {
    let pair = connect(context, MERGED, Gated { client: true, server: true })?;
    context.quiet(&pair.client.recv)?;
    empty(&pair.server.recv)?;
    pair.client.ep.ready()?;
    established(context, &pair.client)?;
    check_order(context, &pair.server, &pair.client, EpState::CompletionPending)
}

fn opened_early(context: &Context) -> Result<()> {
    let pair = Pair::unconnected(context, MERGED)?;
    pair.request(context, context.patience(), true)?;
    pair.client.ep.ready()?;
    pair.listener.request(context)?.accept_gated(&pair.server.ep, &[])?;
    pair.server.ep.ready()?;
    established(context, &pair.client)?;
    established(context, &pair.server)
}

fn many_messages(context: &Context) -> Result<()> {
    let count = context.count(4_000).max(1_000) as u32;
    let shape = Shape { merged: true, receives: count, memory: 1 << 20, ..Shape::default() };
    let pair = connect(context, shape, SERVER)?;
    send(context, &pair.client, 0..count)?;
    await_bytes(context, &pair.server, count - 1)?;
    empty(&pair.server.recv)?;
    same("receives", pair.server.ep.status()?.recv_outstanding, count)?;
    pair.server.ep.ready()?;
    established(context, &pair.server)?;
    receives(context, &pair.server, 0..count)
}

fn peer_disconnects(context: &Context) -> Result<()> {
    for gated in [SERVER, CLIENT] {
        let pair = connect(context, MERGED, gated)?;
        let (waiting, peer) = match gated.server {
            true => (&pair.server, &pair.client),
            false => (&pair.client, &pair.server),
        };
        send(context, peer, 0..2)?;
        await_bytes(context, waiting, 1)?;
        peer.ep.disconnect(Close::Graceful)?;
        flushes(context, peer, 0..MERGED.receives)?;
        connection(&context.next(&peer.connect)?, ConnectionEvent::Disconnected)?;
        let ended = || Ok(waiting.ep.status()?.state == EpState::DisconnectPending);
        context.until("the connection has ended", ended)?;
        empty(&waiting.recv)?;
        refused(waiting.ep.reset(), Type::INVALID_STATE)?;
        waiting.ep.ready()?;
        established(context, waiting)?;
        receives(context, waiting, 0..2)?;
        flushes(context, waiting, 2..MERGED.receives)?;
        connection(&context.next(&waiting.connect)?, ConnectionEvent::Disconnected)?;
        waiting.ep.reset()?;
        state(&waiting.ep, EpState::Unconnected)?;
    }
    Ok(())
}

fn peer_dies(context: &Context) -> Result<()> {
    let server = End::new(&context.open_server()?, MERGED)?;
    server.receive(place(&server, 0), LENGTH, 0)?;
    let listener = Listener::new(context, &server.ia)?;
    let mut peer = Peer::start(context, Part::Client, listener.port, Some(Step::Established))?;
    listener.request(context)?.accept_gated(&server.ep, &[])?;
    peer.reaches(Step::Established)?;
    context.quiet(&server.recv)?;
    peer.kill()?;
    let is_ending = || Ok(server.ep.status()?.state == EpState::DisconnectPending);
    context.until("the connection has ended", is_ending)?;
    empty(&server.recv)?;
    server.ep.ready()?;
    established(context, &server)?;
    flushes(context, &server, 0..1)?;
    ended(context, &context.next(&server.connect)?, ConnectionEvent::Disconnected)
}

fn disconnected_instead(context: &Context) -> Result<()> {
    let pair = connect(context, MERGED, SERVER)?;
    let server = &pair.server;
    send(context, &pair.client, 0..2)?;
    await_bytes(context, server, 1)?;
    empty(&server.recv)?;
    server.ep.disconnect(Close::Graceful)?;
    receives(context, server, 0..2)?;
    flushes(context, server, 2..MERGED.receives)?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Disconnected)?;
    refused(server.ep.ready(), Type::INVALID_STATE)?;
    flushes(context, &pair.client, 0..MERGED.receives)?;
    connection(&context.next(&pair.client.connect)?, ConnectionEvent::Disconnected)
}

fn freed_instead(context: &Context) -> Result<()> {
    let pair = connect(context, MERGED, SERVER)?;
    send(context, &pair.client, 0..2)?;
    await_bytes(context, &pair.server, 1)?;
    empty(&pair.server.recv)?;
    pair.server.ep.free()?;
    empty(&pair.server.recv)?;
    flushes(context, &pair.client, 0..MERGED.receives)?;
    connection(&context.next(&pair.client.connect)?, ConnectionEvent::Disconnected)?;
    drop(pair);
    no_objects_left(context.settings.scale)?;
    // The same by a close of the adapter.
    drop(connect(context, MERGED, SERVER)?);
    no_objects_left(context.settings.scale)
}

fn failures_pass(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let pair = Pair::unconnected(context, MERGED)?;
    pair.request(context, context.patience(), true)?;
    pair.listener.request(context)?.reject(b"no")?;
    connection(&context.next(&pair.client.connect)?, ConnectionEvent::PeerRejected)?;
    refused(pair.client.ep.ready(), Type::INVALID_STATE)
}

fn time_out_stops(context: &Context) -> Result<()> {
    let pair = Pair::unconnected(context, MERGED)?;
    let timeout = context.scaled(Duration::from_millis(200));
    pair.request(context, timeout, true)?;
    pair.listener.request(context)?.accept(&pair.server.ep, &[])?;
    established(context, &pair.server)?;
    // Longer than the time-out. A busy machine makes the wait longer, never shorter.
    std::thread::sleep(timeout * 2);
    state(&pair.client.ep, EpState::ActiveConnectionPending)?;
    empty(&pair.client.connect)?;
    pair.client.ep.ready()?;
    established(context, &pair.client)
}

fn cno_is_quiet(context: &Context) -> Result<()> {
    let pair = Pair::unconnected(context, MERGED)?;
    let cno = pair.server.ia.create_cno(None)?;
    pair.server.recv.modify_cno(Some(&cno))?;
    pair.server.receive(place(&pair.server, 0), LENGTH, 0)?;
    pair.request(context, context.patience(), false)?;
    pair.listener.request(context)?.accept_gated(&pair.server.ep, &[])?;
    established(context, &pair.client)?;
    context.untriggered(&cno)?;
    pair.server.ep.ready()?;
    same("EVD", cno.wait(Some(context.patience()))?, Some(pair.server.recv.handle()))?;
    established(context, &pair.server)
}

/// One round: all events come, in order, whenever the gate is opened.
fn race(context: &Context, pair: &Pair, delay: Duration) -> Result<()> {
    let server = &pair.server;
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| {
            std::thread::sleep(delay);
            server.ep.ready()
        });
        pair.client.send(0, LENGTH, 1)?;
        pair.client.ep.disconnect(Close::Graceful)?;
        opener.join().expect("no panic")?;
        established(context, server)?;
        receives(context, server, 0..1)?;
        flushes(context, server, 1..MERGED.receives)?;
        connection(&context.next(&server.connect)?, ConnectionEvent::Disconnected)
    })
}

fn races(context: &Context) -> Result<()> {
    for round in 0..context.count(300).max(30) {
        let pair = connect(context, MERGED, SERVER)?;
        race(context, &pair, Duration::from_micros(round * 37 % 4_000))?;
    }
    Ok(())
}

fn refusals(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, MERGED)?;
    refused(end.ep.ready(), Type::INVALID_STATE)?;
    end.ep.disconnect(Close::Abrupt)?;
    refused(end.ep.ready(), Type::INVALID_STATE)?;
    // The flag is known to the calls that make a connection only.
    let mut reset = kdapl_handle {
        hdr: kdapl_hdr { flags: KDAPL_FLAG_READY_GATE, ..Default::default() },
        handle: end.ep.handle().0,
    };
    errno(raw::call(ia.device(), call::EP_RESET, &mut reset), libc::EINVAL)
}

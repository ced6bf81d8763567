// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! End of connections, and the order of its events.

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, refused, same};
use crate::harness::skip;
use crate::machine::has_kasan;
use crate::threads::{Joined, Worker};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpState, Evd, Event,
    EventKind, Type,
};
use std::time::{Duration, Instant};

tests! {
    #[Link, Transport]
    by_client, 30, "A disconnect of the client ends the connection on both sides";
    #[Link, Transport]
    by_server, 30, "A disconnect of the server ends the connection on both sides";
    #[Link, Transport]
    by_both, 60, "Both sides may disconnect at once";
    by_free, 120, "Freeing a connected endpoint ends the connection for its peer";
    arrived_message_succeeds, 60,
        "A message that has arrived completes with success, even if its peer then disconnects or frees its Endpoint at once";
    graceful_disconnect_finishes_requests, 60, "A graceful disconnect lets the requests finish, each with success";
    #[Hosts, Link, Transport]
    order_kept, 120,
        "In one EVD, ESTABLISHED comes first and DISCONNECTED last, with receives outstanding";
    #[Hosts, Transport]
    order_under_traffic, 240,
        "In one EVD, DISCONNECTED is the last event, also if it occurs amid traffic, but for DTOs that are posted after it";
    #[Link]
    early_receive_follows_established, 120,
        "A message that overtakes the connection's confirmation is reported after ESTABLISHED";
}

fn merged(receives: u32) -> Shape {
    Shape { merged: true, receives, requests: 16, ..Default::default() }
}

struct Ends {
    client: End,
    server: End,
}

/// Creates two ends with one EVD each and `receives` posted. They are connecting, but not
/// connected.
fn connecting(context: &Context, receives: u32) -> Result<Ends> {
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let client = End::new(&client_ia, merged(receives.max(1)))?;
    let server = End::new(&server_ia, merged(receives.max(1)))?;
    for end in [&client, &server] {
        (0..receives.into()).try_for_each(|cookie| end.receive(0, 64, cookie))?;
    }
    client.ep.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    listener.request(context)?.accept(&server.ep, &[])?;
    Ok(Ends { client, server })
}

fn established(context: &Context, ends: &Ends) -> Result<()> {
    for end in [&ends.client, &ends.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    Ok(())
}

/// Checks the remaining events: `receives` flushed in order, then DISCONNECTED, then none.
fn flushed_then_disconnected(context: &Context, end: &End, receives: u32) -> Result<()> {
    let next = |missing: u64| {
        let status = || format!("{missing} receives are missing: {:?}", end.ep.status());
        context.next(&end.connect).with_context(status)
    };
    for cookie in 0..receives.into() {
        let event = next(u64::from(receives) - cookie)?;
        let dto = crate::expect::dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?;
        same("cookie", dto.cookie, cookie)?;
    }
    connection(&next(0)?, ConnectionEvent::Disconnected)?;
    same("state", end.ep.status()?.state, EpState::Disconnected)?;
    ensure!(end.ep.status()?.recv_idle, "a receive is still outstanding");
    refused(end.connect.dequeue(), Type::QUEUE_EMPTY)
}

fn by_client(context: &Context) -> Result<()> {
    for how in [Close::Abrupt, Close::Graceful] {
        let ends = connecting(context, 3)?;
        established(context, &ends)?;
        ends.client.ep.disconnect(how)?;
        flushed_then_disconnected(context, &ends.server, 3).context("server")?;
        flushed_then_disconnected(context, &ends.client, 3).context("client")?;
        context.quiet(&ends.client.connect)?;
    }
    Ok(())
}

fn by_server(context: &Context) -> Result<()> {
    for how in [Close::Abrupt, Close::Graceful] {
        let ends = connecting(context, 3)?;
        established(context, &ends)?;
        ends.server.ep.disconnect(how)?;
        flushed_then_disconnected(context, &ends.client, 3).context("client")?;
        flushed_then_disconnected(context, &ends.server, 3).context("server")?;
        context.quiet(&ends.server.connect)?;
    }
    Ok(())
}

fn by_both(context: &Context) -> Result<()> {
    for _ in 0..context.count(50) {
        let ends = connecting(context, 2)?;
        established(context, &ends)?;
        let delay = Duration::from_micros(context.rng().u64(0..200));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                spin(delay);
                disconnect(&ends.server)
            });
            disconnect(&ends.client)?;
            other.join().or_panicked()?
        })?;
        flushed_then_disconnected(context, &ends.client, 2).context("client")?;
        flushed_then_disconnected(context, &ends.server, 2).context("server")?;
    }
    Ok(())
}

/// Disconnects. The peer may have disconnected before.
fn disconnect(end: &End) -> Result<()> {
    match end.ep.disconnect(Close::Abrupt) {
        Err(error) if error.kind() == Some(Type::INVALID_STATE) => Ok(()),
        other => Ok(other?),
    }
}

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn by_free(context: &Context) -> Result<()> {
    // Lost packets of the end are repeated, though the Endpoint no longer exists.
    for _ in 0..context.count(300).max(5) {
        let ends = connecting(context, 3)?;
        established(context, &ends)?;
        ends.client.ep.free()?;
        flushed_then_disconnected(context, &ends.server, 3)?;
        context.quiet(&ends.client.connect)?;
        ends.client.lmr.free()?;
        ends.client.connect.free()?;
        ends.client.pz.free()?;
    }
    Ok(())
}

/// Ends the connection as soon as a message has arrived. Soft-RoCE reports a receive first, then
/// acknowledges it, unless the QP has been stopped meanwhile.
fn ends_at_receive(evd: &Evd, ep: &Ep, cookie: u64) -> Result<()> {
    let (event, _) = evd.wait(None, 1)?;
    if cookie % 2 == 0 {
        ep.disconnect(Close::Abrupt)?;
    } else {
        ep.free()?;
    }
    crate::expect::done(&event, DtoOperation::Receive, 64, cookie)
}

fn arrived_message_succeeds(context: &Context) -> Result<()> {
    if context.link_is_spoilt() {
        return skip("a lost acknowledgement is not repeated once the peer is gone");
    }
    if context.client.is_iwarp() {
        return skip("iWARP has no acknowledgements: a disconnect of the peer is an error of TCP");
    }
    if has_kasan() {
        return skip("a packet may take longer than the end of a connection waits for it");
    }
    for cookie in 0..context.count(300).max(20) {
        let ends = connecting(context, 0)?;
        established(context, &ends)?;
        ends.server.receive(0, 64, cookie)?;
        let (evd, ep) = (ends.server.connect.clone(), ends.server.ep.clone());
        let server = Worker::start(move || ends_at_receive(&evd, &ep, cookie))?;
        server.asleep(context)?;
        ends.client.send(0, 64, cookie)?;
        context.until("the message arrives", || Ok(server.finished()))?;
        server.join()??;
        let event = context.next(&ends.client.connect)?;
        crate::expect::done(&event, DtoOperation::Send, 64, cookie)?;
        flushed_then_disconnected(context, &ends.client, 0)?;
    }
    Ok(())
}

fn graceful_disconnect_finishes_requests(context: &Context) -> Result<()> {
    let length = context.long_message();
    for _ in 0..context.count(20) {
        let ends = connecting(context, 0)?;
        established(context, &ends)?;
        let remote = ends.server.lmr.remote_segment(0, length);
        for cookie in 0..10 {
            ends.client.write(0, length, remote, cookie)?;
        }
        ends.client.ep.disconnect(Close::Graceful)?;
        for cookie in 0..10 {
            let event = context.next(&ends.client.connect)?;
            crate::expect::done(&event, DtoOperation::RdmaWrite, length as u64, cookie)?;
        }
        flushed_then_disconnected(context, &ends.client, 0)?;
        flushed_then_disconnected(context, &ends.server, 0)?;
    }
    Ok(())
}

fn order_kept(context: &Context) -> Result<()> {
    for _ in 0..context.count(100) {
        let receives = context.rng().u32(0..16);
        let ends = connecting(context, receives)?;
        let (early, by_client) = (context.rng().bool(), context.rng().bool());
        if !early {
            spin(Duration::from_micros(context.rng().u64(0..2000)));
        }
        // One side disconnects once it is connected, whether or not the other side is.
        let (first, second) =
            if by_client { (&ends.client, &ends.server) } else { (&ends.server, &ends.client) };
        connection(&context.next(&first.connect)?, ConnectionEvent::Established)?;
        first.ep.disconnect(if early { Close::Abrupt } else { Close::Graceful })?;
        flushed_then_disconnected(context, first, receives).context("the side that ended it")?;
        match context.next(&second.connect)?.kind() {
            EventKind::Connection(ConnectionEvent::Established) => {
                flushed_then_disconnected(context, second, receives).with_context(|| {
                    let side = if by_client { "server" } else { "client" };
                    format!("the {side}, the other one early: {early}")
                })?;
            }
            // Over iWARP, the accepting side is connected before the connecting side.
            EventKind::Connection(ConnectionEvent::NonPeerRejected)
                if !by_client && context.client.is_iwarp() => {}
            other => bail!("expected the second side's ESTABLISHED first, got {other:?}"),
        }
    }
    Ok(())
}

/// Takes the events of one end under traffic, and checks their order.
fn drain(
    context: &Context,
    end: &End,
    mut repost: impl FnMut(DtoOperation) -> Result<()>,
) -> Result<u64> {
    let (mut failed, mut count) = (false, 0);
    loop {
        match context.next(&end.connect)? {
            Event::Dto(dto) if dto.status == DtoStatus::Success => {
                ensure!(
                    !failed || dto.operation != DtoOperation::Receive,
                    "a receive succeeded after one was flushed"
                );
                repost(dto.operation)?;
            }
            Event::Dto(dto) => failed |= dto.operation == DtoOperation::Receive,
            Event::Connection { event, .. } if context.ends_of_traffic().contains(&event) => break,
            other => bail!("unexpected in traffic: {other}"),
        }
        count += 1;
    }
    ensure!(end.ep.status()?.recv_idle && end.ep.status()?.request_idle, "not idle at the end");
    only_flushed_later(context, end)?;
    Ok(count)
}

fn order_under_traffic(context: &Context) -> Result<()> {
    let mut total = 0;
    for round in 0..context.count(100) {
        let ends = connecting(context, 16)?;
        established(context, &ends)?;
        let delay = Duration::from_micros(context.rng().u64(0..3000));
        let start = Instant::now();
        let (segment, flags) = ([ends.client.lmr.segment(0, 64)], CompletionFlags::default());
        let mut ended = false;
        for _ in 0..8 {
            ends.client.ep.post_send(&segment, 7, flags)?;
        }
        let mut finish = || -> Result<bool> {
            if !ended && start.elapsed() >= delay {
                ended = true;
                let end = if round % 2 == 0 { &ends.client } else { &ends.server };
                disconnect(end)?;
            }
            Ok(ended)
        };
        std::thread::scope(|scope| {
            let server = &ends.server;
            let (patience, over) = (context.patience(), context.ends_of_traffic());
            // The server only posts receives again.
            let thread = scope.spawn(move || serve(server, patience, over));
            let counted = drain(context, &ends.client, |operation| {
                if !finish()? && operation == DtoOperation::Send {
                    ends.client.ep.post_send(&segment, 7, flags)?;
                }
                Ok(())
            });
            total += counted?;
            thread.join().or_panicked()?
        })?;
        only_flushed_later(context, &ends.server)?;
    }
    ensure!(total > 0, "no events");
    Ok(())
}

fn serve(end: &End, patience: Duration, over: &[ConnectionEvent]) -> Result<()> {
    loop {
        match end.connect.wait(Some(patience), 1)?.0 {
            // In all states of the Endpoint.
            Event::Dto(dto) if dto.status == DtoStatus::Success => end.receive(0, 64, 0)?,
            Event::Dto(_) => {}
            Event::Connection { event, .. } if over.contains(&event) => return Ok(()),
            other => bail!("unexpected at the server: {other}"),
        }
    }
}

/// Checks that after DISCONNECTED only the events of DTOs follow that were posted after the end of
/// the connection, before the thread has dequeued its event.
fn only_flushed_later(context: &Context, end: &End) -> Result<()> {
    context.until("all DTOs are flushed", || {
        let idle = end.ep.status().map(|status| status.recv_idle && status.request_idle)?;
        loop {
            match end.connect.dequeue() {
                Ok((Event::Dto(dto), _)) if dto.status == DtoStatus::Flushed => {}
                outcome => return refused(outcome, Type::QUEUE_EMPTY).map(|()| idle),
            }
        }
    })
}

fn early_receive_follows_established(context: &Context) -> Result<()> {
    for _ in 0..context.count(100) {
        let ends = connecting(context, 2)?;
        // The client sends as soon as it is connected.
        connection(&context.next(&ends.client.connect)?, ConnectionEvent::Established)?;
        ends.client.send(0, 64, 5)?;
        connection(&context.next(&ends.server.connect)?, ConnectionEvent::Established)?;
        let event = context.next(&ends.server.connect)?;
        crate::expect::done(&event, DtoOperation::Receive, 64, 0)?;
        let event = context.next(&ends.client.connect)?;
        crate::expect::done(&event, DtoOperation::Send, 64, 5)?;
    }
    Ok(())
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Receive buffers that an endpoint has, and its high watermarks.

use super::srq_last_receive::last_receive;
use super::srq_traffic::{send, Server, MESSAGE};
use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{connection, connection_over, done, refused_as, same};
use anyhow::Result;
use libkdapl::{
    AsyncEvent, ConnectionEvent, DtoOperation, Ep, EpChange, EpState, Event, Subtype, Type,
};

tests! {
    #[Address, Link, Transport]
    buffers, 30, "An endpoint has the receives that have arrived and whose events were not taken";
    #[Address, Link, Transport]
    posted, 30, "An endpoint without an SRQ also has the receives that are posted to it";
    #[Address, Link, Transport]
    soft, 30, "The soft watermark is reported once for each time that it is set";
    #[Address, Link, Transport]
    exceeded_at_once, 30, "A watermark that is exceeded already is reported during the call";
    #[Address, Link, Transport]
    hard, 60, "The hard watermark breaks the connection, and that of another endpoint stays";
    #[Address, Link, Transport]
    waited_for, 60, "Events that are taken at once never exceed the hard watermark";
    #[Address, Link, Transport]
    infinite, 30, "An infinite watermark is never exceeded";
    #[Address, Transport]
    of_flushed_receives, 30, "Receives that are flushed count until their events are taken";
    moved, 30, "The EVD of the receives stays while there is a watermark";
}

/// Server, one of its endpoints, and the client of that.
fn connected(context: &Context, receives: u32) -> Result<(Server, Ep, End)> {
    let server = Server::new(context, receives, 256)?;
    let ep = server.ep()?;
    let client = server.client(context, &context.open()?, &ep)?;
    server.post(0..u64::from(receives))?;
    Ok((server, ep, client))
}

fn has(ep: &Ep, buffers: u32) -> Result<()> {
    same("buffers and span", ep.recv_query()?, (buffers, buffers))
}

/// Waits until messages have arrived: the client's completion may precede the server's.
fn arrives(context: &Context, ep: &Ep, buffers: u32) -> Result<()> {
    context.until("the messages", || Ok(ep.recv_query()?.0 >= buffers))?;
    has(ep, buffers)
}

fn buffers(context: &Context) -> Result<()> {
    let (server, ep, client) = connected(context, 8)?;
    has(&ep, 0)?;
    let other = server.ep()?;
    for sent in 1..=3 {
        send(context, &client)?;
        arrives(context, &ep, sent)?;
    }
    has(&other, 0)?;
    for left in (0..3).rev() {
        server.takes(context, &ep, 2 - u64::from(left))?;
        has(&ep, left)?;
    }
    Ok(())
}

fn posted(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let ep = &pair.server.ep;
    for number in 0..3 {
        pair.server.receive(0, MESSAGE, number)?;
    }
    has(ep, 3)?;
    send(context, &pair.client)?;
    has(ep, 3)?;
    done(&context.next(&pair.server.recv)?, DtoOperation::Receive, MESSAGE as u64, 0)?;
    has(ep, 2)
}

/// Takes the event of a soft watermark that is exceeded.
fn reported(context: &Context, server: &Server, ep: &Ep) -> Result<()> {
    match context.next(server.ia.async_evd())? {
        Event::Async { event: AsyncEvent::EpBroken, object, reason: 2 } => {
            same("endpoint", object, ep.handle())
        }
        other => anyhow::bail!("expected the soft watermark, got {other}"),
    }
}

fn soft(context: &Context) -> Result<()> {
    let (server, ep, client) = connected(context, 16)?;
    let asynchronous = server.ia.async_evd();
    ep.set_watermarks(Some(2), None)?;
    for _ in 0..2 {
        send(context, &client)?;
    }
    arrives(context, &ep, 2)?;
    context.quiet(asynchronous)?;
    send(context, &client)?;
    // Nobody waits for the receives.
    reported(context, &server, &ep)?;
    send(context, &client)?;
    arrives(context, &ep, 4)?;
    context.quiet(asynchronous)?;
    for cookie in 0..3 {
        server.takes(context, &ep, cookie)?;
    }
    ep.set_watermarks(Some(2), None)?;
    for _ in 0..2 {
        send(context, &client)?;
    }
    reported(context, &server, &ep)?;
    same("state", ep.status()?.state, EpState::Connected)
}

fn exceeded_at_once(context: &Context) -> Result<()> {
    let (server, ep, client) = connected(context, 8)?;
    for _ in 0..3 {
        send(context, &client)?;
    }
    arrives(context, &ep, 3)?;
    ep.set_watermarks(Some(3), Some(3))?;
    context.quiet(server.ia.async_evd())?;
    ep.set_watermarks(Some(2), None)?;
    reported(context, &server, &ep)?;
    ep.set_watermarks(None, Some(2))?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Broken)?;
    last_receive(context, &server.ia, &ep)?;
    context.quiet(server.ia.async_evd())
}

fn hard(context: &Context) -> Result<()> {
    let (server, ep, client) = connected(context, 16)?;
    let other = server.ep()?;
    let friend = server.client(context, &context.open()?, &other)?;
    ep.set_watermarks(None, Some(3))?;
    other.set_watermarks(None, Some(3))?;
    for _ in 0..3 {
        send(context, &client)?;
        send(context, &friend)?;
    }
    arrives(context, &ep, 3)?;
    context.quiet(&server.connect)?;
    client.send(0, MESSAGE, 9)?;
    match context.next(&server.connect)? {
        Event::Connection { event: ConnectionEvent::Broken, ep: broken, .. } => {
            same("endpoint", broken, ep.handle())?;
        }
        event => anyhow::bail!("expected BROKEN, got {event}"),
    }
    connection_over(&context.next(&client.connect)?)?;
    last_receive(context, &server.ia, &ep)?;
    context.quiet(server.ia.async_evd())?;
    same("the other's state", other.status()?.state, EpState::Connected)?;
    has(&ep, 4)?;
    has(&other, 3)
}

fn waited_for(context: &Context) -> Result<()> {
    let (server, ep, client) = connected(context, 16)?;
    ep.set_watermarks(None, Some(1))?;
    for round in 0..context.count(300).max(40) {
        send(context, &client)?;
        server.takes(context, &ep, round % 16)?;
        server.post([round % 16])?;
    }
    has(&ep, 0)?;
    same("state", ep.status()?.state, EpState::Connected)
}

fn infinite(context: &Context) -> Result<()> {
    let (server, ep, client) = connected(context, 16)?;
    ep.set_watermarks(Some(4), Some(5))?;
    ep.set_watermarks(None, None)?;
    for _ in 0..12 {
        send(context, &client)?;
    }
    arrives(context, &ep, 12)?;
    context.quiet(server.ia.async_evd())?;
    same("state", ep.status()?.state, EpState::Connected)
}

fn of_flushed_receives(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let ep = &pair.server.ep;
    let asynchronous = pair.server.ia.async_evd();
    let exceeded = || match context.next(asynchronous)? {
        Event::Async { event: AsyncEvent::EpBroken, object, reason: 2 } => {
            same("endpoint", object, ep.handle())
        }
        other => anyhow::bail!("expected the soft watermark, got {other}"),
    };
    ep.set_watermarks(Some(4), None)?;
    for number in 0..5 {
        pair.server.receive(0, MESSAGE, number)?;
    }
    ep.disconnect(libkdapl::Close::Abrupt)?;
    connection(&context.next(&pair.server.connect)?, ConnectionEvent::Disconnected)?;
    exceeded()?;
    ep.set_watermarks(Some(7), None)?;
    context.quiet(asynchronous)?;
    // These are flushed at once.
    for number in 5..8 {
        pair.server.receive(0, MESSAGE, number)?;
    }
    exceeded()?;
    has(ep, 8)?;
    for left in (0..8).rev() {
        context.next(&pair.server.recv)?;
        has(ep, left)?;
    }
    Ok(())
}

fn moved(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let ep = &end.ep;
    ep.set_watermarks(Some(1), None)?;
    ep.modify(EpChange::new().recv(&end.recv))?;
    let another = EpChange::new().recv(&end.request);
    refused_as(ep.modify(another), Type::INVALID_STATE, Subtype::INVALID_STATE_EP_RECV_WATERMARK)?;
    ep.set_watermarks(None, None)?;
    ep.modify(another)?;
    Ok(())
}

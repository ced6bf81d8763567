// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The asynchronous event after the last receive of an endpoint with a shared receive queue (SRQ).

use super::srq_traffic::{send, Server, MESSAGE};
use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{connection, same};
use crate::hosts::ASYNC_QLEN;
use crate::machine::DeviceGuard;
use anyhow::{bail, Result};
use libkdapl::{AsyncEvent, Close, ConnectionEvent, Ep, Event, Ia};

tests! {
    #[Transport]
    reported, 60, "After the last receive of an endpoint with an SRQ, at each end of its connection, one ASYNC_EP_BROKEN names it";
    others_find_room, 120, "The events of many endpoints with an SRQ leave room for IA_CATASTROPHIC";
    not_without_srq, 60, "An endpoint without an SRQ ends without ASYNC_EP_BROKEN";
}

/// Takes the events of the end of a connection: first the connection event.
fn ends(context: &Context, server: &Server, ep: &Ep, end: ConnectionEvent) -> Result<()> {
    connection(&context.next(&server.connect)?, end)?;
    last_receive(context, &server.ia, ep)
}

/// Takes the asynchronous event after the last receive of an endpoint.
pub fn last_receive(context: &Context, ia: &Ia, ep: &Ep) -> Result<()> {
    match context.next(ia.async_evd())? {
        Event::Async { event: AsyncEvent::EpBroken, object, reason: 0 } => {
            same("endpoint", object, ep.handle())
        }
        event => bail!("expected ASYNC_EP_BROKEN, got {event}"),
    }
}

/// Several endpoints, some of which have received. Each is used for two connections.
fn reported(context: &Context) -> Result<()> {
    let server = Server::new(context, 32, 32)?;
    server.post(0..16)?;
    let ia = context.open()?;
    let mut cookies = 0..;
    for round in 0..2 {
        for closes_here in [true, false] {
            let ep = server.ep()?;
            for _ in 0..2 {
                let client = server.client(context, &ia, &ep)?;
                if round == 0 {
                    send(context, &client)?;
                    server.takes(context, &ep, cookies.next().unwrap_or_default())?;
                }
                if closes_here {
                    ep.disconnect(Close::Abrupt)?;
                } else {
                    client.ep.disconnect(Close::Abrupt)?;
                }
                ends(context, &server, &ep, ConnectionEvent::Disconnected)?;
                ep.reset()?;
            }
        }
    }
    // The receive exceeds the watermark.
    let ep = server.ep()?;
    let client = server.client(context, &ia, &ep)?;
    ep.set_watermarks(None, Some(0))?;
    client.send(0, MESSAGE, 1)?;
    ends(context, &server, &ep, ConnectionEvent::Broken)?;
    context.quiet(server.ia.async_evd())
}

/// The asynchronous EVD has room for fewer events.
fn others_find_room(context: &Context) -> Result<()> {
    // Restores the device, also after a failure.
    let guard = DeviceGuard::new(context)?;
    let server = Server::new(context, 32, 32)?;
    let ia = context.open()?;
    let connected = |_| {
        let ep = server.ep()?;
        let client = server.client(context, &ia, &ep)?;
        Ok((ep, client))
    };
    let _pairs = (0..2 * ASYNC_QLEN).map(connected).collect::<Result<Vec<_>>>()?;
    guard.delete()?;
    catastrophic_after_many(context, &server.ia)
}

/// Takes the events of a removal that breaks twice as many endpoints as the queue length of the
/// asynchronous EVD. Its ring is twice as long as that, with a slot for IA_CATASTROPHIC.
pub fn catastrophic_after_many(context: &Context, ia: &Ia) -> Result<()> {
    let mut broken = 0;
    loop {
        match context.next(ia.async_evd())? {
            Event::Async { event: AsyncEvent::EpBroken, reason: 0, .. } => broken += 1,
            Event::Async { event: AsyncEvent::IaCatastrophic, object, .. } => {
                same("IA", object, ia.handle())?;
                return same("events before it", broken, 2 * ASYNC_QLEN - 1);
            }
            event => bail!("{event}"),
        }
    }
}

fn not_without_srq(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    pair.server.ep.disconnect(Close::Abrupt)?;
    for end in [&pair.client, &pair.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
        context.quiet(end.ia.async_evd())?;
    }
    Ok(())
}

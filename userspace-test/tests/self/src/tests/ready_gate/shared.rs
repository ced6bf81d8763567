// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Closed ready gates of endpoints that take receives of a shared receive queue (SRQ).

use super::super::srq_traffic::{send as send_to_srq, Server, MESSAGE};
use super::super::tests;
use super::established;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, empty, refused, refused_as, same};
use crate::harness::skip;
use anyhow::Result;
use libkdapl::{ConnectionEvent, Ep, Subtype, Type};

tests! {
    #[Transport]
    shared_receives, 120, "A closed gate holds back messages that took receives of an SRQ, and others pass";
    #[Transport]
    refilled, 120, "Messages that a closed gate holds back take the room of an SRQ: it is not refilled before they are reported";
    lengthened, 120, "A closed gate also holds back the messages that a lengthened SRQ takes";
}

fn shared_receives(context: &Context) -> Result<()> {
    let server = Server::new(context, 128, 256)?;
    server.post(0..128)?;
    let (gated, open) = (server.ep()?, server.ep()?);
    let ia = context.open()?;
    let client = End::new(&ia, Shape::default())?;
    let patience = Some(context.patience());
    client.ep.connect(context.server_address(), server.listener.port, patience, &[])?;
    server.listener.request(context)?.accept_gated(&gated, &[])?;
    established(context, &client)?;
    let other = server.client(context, &ia, &open)?;
    for _ in 0..100 {
        send_to_srq(context, &client)?;
    }
    send_to_srq(context, &other)?;
    // The receive of the open connection is the only one that is reported.
    server.takes(context, &open, 100)?;
    empty(&server.recv)?;
    gated.ready()?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Established)?;
    for cookie in 0..100 {
        server.takes(context, &gated, cookie)?;
    }
    empty(&server.recv)
}

/// Connects a client to an Endpoint with a closed gate, which takes receives of an SRQ.
fn gated_by_srq(context: &Context, receives: u64) -> Result<(Server, Ep, End)> {
    let server = Server::new(context, receives as u32, 256)?;
    server.post(0..receives)?;
    let gated = server.ep()?;
    let client = End::new(&context.open()?, Shape::default())?;
    let patience = Some(context.patience());
    client.ep.connect(context.server_address(), server.listener.port, patience, &[])?;
    server.listener.request(context)?.accept_gated(&gated, &[])?;
    established(context, &client)?;
    Ok((server, gated, client))
}

/// Sends so many messages, which take all receives of the SRQ, and checks that it is not refilled.
fn takes_all(context: &Context, server: &Server, client: &End, count: u64) -> Result<()> {
    (0..count).try_for_each(|_| send_to_srq(context, client))?;
    context.until("all receives are taken", || Ok(server.srq.query()?.available == 0))?;
    let refilled = server.srq.post_recv(&[server.lmr.segment(0, MESSAGE)], 99);
    refused_as(refilled, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_SRQ)?;
    empty(&server.recv)
}

fn refilled(context: &Context) -> Result<()> {
    let (server, gated, client) = gated_by_srq(context, 16)?;
    takes_all(context, &server, &client, 16)?;
    same("outstanding", server.srq.query()?.outstanding, 16)?;
    gated.ready()?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Established)?;
    (0..16).try_for_each(|cookie| server.takes(context, &gated, cookie))?;
    empty(&server.recv)?;
    // Now there is room again.
    server.post(16..32)?;
    (0..16).try_for_each(|_| send_to_srq(context, &client))?;
    (16..32).try_for_each(|cookie| server.takes(context, &gated, cookie))?;
    same("outstanding", server.srq.query()?.outstanding, 0)
}

fn lengthened(context: &Context) -> Result<()> {
    let (server, gated, client) = gated_by_srq(context, 8)?;
    takes_all(context, &server, &client, 8)?;
    if context.server.is_iwarp() {
        refused(server.srq.resize(20), Type::MODEL_NOT_SUPPORTED)?;
        return skip("siw does not lengthen an SRQ");
    }
    for (from, to) in [(8, 20), (20, 90)] {
        server.srq.resize(to as u32)?;
        server.post(from..to)?;
        takes_all(context, &server, &client, to - from)?;
    }
    refused(server.srq.resize(89), Type::INVALID_STATE)?;
    gated.ready()?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Established)?;
    (0..90).try_for_each(|cookie| server.takes(context, &gated, cookie))?;
    empty(&server.recv)
}

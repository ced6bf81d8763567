// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Posts DTOs on an endpoint in each state.

use super::connect::reject;
use super::extensions::each;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, refused_as, same};
use anyhow::{Context as _, Result};
use libkdapl::{Close, CompletionFlags, ConnectionEvent, EpState, Segment, Subtype, Type};

tests! {
    unconnected, 20, "An unconnected endpoint accepts receives and refuses requests with UNCONNECTED";
    #[Address]
    connecting, 30, "A connecting endpoint accepts receives and refuses requests with ACTCONNPENDING";
    accepting, 60, "An accepting endpoint accepts receives and refuses requests with COMPLPENDING, or is connected";
    #[Hosts]
    rejected, 30, "A rejected endpoint refuses all posts with DISCONNECTED";
    #[Hosts]
    disconnected, 30, "A disconnected endpoint refuses all posts with DISCONNECTED, on both sides";
    freed, 20, "A freed endpoint refuses all posts with INVALID_HANDLE";
}

/// Posts one request of each kind, and checks that all are refused with this error.
fn requests_refused(end: &End, kind: Type, subtype: Subtype) -> Result<()> {
    let (segment, flags) = ([end.lmr.segment(0, 64)], CompletionFlags::default());
    let remote: Segment = end.lmr.remote_segment(0, 64);
    let ep = &end.ep;
    refused_as(ep.post_send(&segment, 1, flags), kind, subtype).context("send")?;
    refused_as(ep.post_rdma_write(&segment, remote, 1, flags), kind, subtype).context("write")?;
    refused_as(ep.post_rdma_read(&segment, remote, 1, flags), kind, subtype).context("read")?;
    for (operation, posted) in each(end, remote)? {
        refused_as(posted, kind, subtype).context(operation)?;
    }
    Ok(())
}

fn receive_refused(end: &End, kind: Type, subtype: Subtype) -> Result<()> {
    let (segment, flags) = ([end.lmr.segment(0, 64)], CompletionFlags::default());
    refused_as(end.ep.post_recv(&segment, 1, flags), kind, subtype).context("receive")
}

fn unconnected(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    end.receive(0, 64, 1)?;
    requests_refused(&end, Type::INVALID_STATE, Subtype::INVALID_STATE_EP_UNCONNECTED)
}

fn connecting(context: &Context) -> Result<()> {
    let server = context.open_server()?;
    let listener = Listener::new(context, &server)?;
    let end = End::new(&context.open()?, Shape::default())?;
    end.ep.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    let mut cr = listener.request(context)?;
    same("state", end.ep.status()?.state, EpState::ActiveConnectionPending)?;
    end.receive(0, 64, 1)?;
    requests_refused(&end, Type::INVALID_STATE, Subtype::INVALID_STATE_EP_ACTCONNPENDING)?;
    reject(context, &mut cr, b"no", &listener.evd, &end.connect)
}

fn accepting(context: &Context) -> Result<()> {
    let server = context.open_server()?;
    let listener = Listener::new(context, &server)?;
    let (client, server) =
        (End::new(&context.open()?, Shape::default())?, End::new(&server, Shape::default())?);
    client.ep.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    let mut cr = listener.request(context)?;
    cr.accept(&server.ep, &[])?;
    // The confirmation may arrive before the test gets here.
    if server.ep.status()?.state == EpState::CompletionPending {
        let segment = [server.lmr.segment(0, 64)];
        if let Err(error) = server.ep.post_send(&segment, 1, CompletionFlags::default()) {
            let subtype = Subtype::INVALID_STATE_EP_COMPLPENDING;
            refused_as::<()>(Err(error), Type::INVALID_STATE, subtype)?;
        }
    }
    server.receive(0, 64, 2)?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Established)
}

fn rejected(context: &Context) -> Result<()> {
    let server = context.open_server()?;
    let listener = Listener::new(context, &server)?;
    let end = End::new(&context.open()?, Shape::default())?;
    end.ep.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    reject(context, &mut listener.request(context)?, b"no", &listener.evd, &end.connect)?;
    let subtype = Subtype::INVALID_STATE_EP_DISCONNECTED;
    receive_refused(&end, Type::INVALID_STATE, subtype)?;
    requests_refused(&end, Type::INVALID_STATE, subtype)
}

fn disconnected(context: &Context) -> Result<()> {
    for how in [Close::Abrupt, Close::Graceful] {
        let pair = Pair::new(context, Shape::default())?;
        pair.client.ep.disconnect(how)?;
        for end in [&pair.client, &pair.server] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
            same("state", end.ep.status()?.state, EpState::Disconnected)?;
            let subtype = Subtype::INVALID_STATE_EP_DISCONNECTED;
            receive_refused(end, Type::INVALID_STATE, subtype)?;
            requests_refused(end, Type::INVALID_STATE, subtype)?;
        }
    }
    Ok(())
}

fn freed(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    pair.client.ep.free()?;
    let subtype = Subtype::INVALID_HANDLE_EP;
    receive_refused(&pair.client, Type::INVALID_HANDLE, subtype)?;
    requests_refused(&pair.client, Type::INVALID_HANDLE, subtype)?;
    connection(&context.next(&pair.server.connect)?, ConnectionEvent::Disconnected)
}

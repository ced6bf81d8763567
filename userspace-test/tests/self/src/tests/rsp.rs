// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests Reserved Service Points.

use super::psp::{nobody_listens, Side};
use super::tests;
use crate::context::Context;
use crate::end::Listener;
use crate::expect::{refused, refused_as, same};
use anyhow::{Context as _, Result};
use libkdapl::{ConnectionEvent, Ep, EpState, Evd, Subtype, Type};

tests! {
    takes_one_request, 40, "An RSP takes one request on its endpoint, and then stops listening";
    free_releases_endpoint, 30, "An endpoint is unconnected again when its RSP is freed or its request is rejected";
    #[Address]
    bad_arguments, 20, "An RSP needs an unconnected endpoint and a qualifier";
    provides_endpoint, 30, "An RSP without an endpoint provides one with its request";
}

fn takes_one_request(context: &Context) -> Result<()> {
    for conn_qual in [context.port(), 0x1_0000_0000 + context.port()] {
        let (server, client) = (Side::server(context)?, Side::client(context)?);
        let rsp = server.ia.create_rsp(conn_qual, &server.requests, Some(&server.end.ep))?;
        same("state", server.state()?, EpState::Reserved)?;
        same("qualifier", rsp.query()?.conn_qual, conn_qual)?;
        same("endpoint", rsp.query()?.ep, Some(server.end.ep.handle()))?;
        refused(server.end.ep.free(), Type::INVALID_STATE)?;
        client.connect(context, &client.end.ep, conn_qual, &[])?;
        let (mut cr, point, asked) = server.request(context)?;
        same("service point", point, rsp.handle())?;
        same("qualifier", asked, conn_qual)?;
        same("state", server.state()?, EpState::PassiveConnectionPending)?;
        same("local endpoint", cr.query()?.local_ep, Some(server.end.ep.handle()))?;
        // The qualifier is free again after a short time. Until then `rdma_cm` rejects requests as
        // a consumer would.
        let taken = || Ok(server.ia.create_psp(conn_qual, &server.requests).is_ok());
        context.until("a PSP can use the qualifier", taken)?;
        nobody_listens(context, &client, conn_qual)?;
        let other = server.end.another_ep()?;
        refused_as(cr.accept(&other, &[]), Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
        cr.accept(None, &[])?;
        server.next(context, ConnectionEvent::Established)?;
        client.next(context, ConnectionEvent::Established)?;
        rsp.free()?;
        same("state", server.state()?, EpState::Connected)?;
        same("remote port is set", server.end.ep.query()?.raw.remote_port_qual > 0, true)?;
    }
    Ok(())
}

fn free_releases_endpoint(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    let conn_qual = context.port();
    let rsp = server.ia.create_rsp(conn_qual, &server.requests, Some(&server.end.ep))?;
    rsp.free()?;
    same("state after the free", server.state()?, EpState::Unconnected)?;
    let rsp = server.ia.create_rsp(conn_qual, &server.requests, Some(&server.end.ep))?;
    let ep = client.end.another_ep()?;
    client.connect(context, &ep, conn_qual, &[])?;
    let (mut cr, ..) = server.request(context)?;
    rsp.free()?;
    same("state while a request waits", server.state()?, EpState::PassiveConnectionPending)?;
    cr.reject(&[1])?;
    client.next(context, ConnectionEvent::PeerRejected)?;
    same("state after the reject", server.state()?, EpState::Unconnected)?;
    let _rsp = server.ia.create_rsp(conn_qual, &server.requests, Some(&server.end.ep))?;
    client.connect(context, &client.end.ep, conn_qual, &[])?;
    let (mut cr, ..) = server.request(context)?;
    cr.accept(&server.end.ep, &[])?;
    client.next(context, ConnectionEvent::Established)
}

fn bad_arguments(context: &Context) -> Result<()> {
    let side = Side::server(context)?;
    let create = |qual, evd: &Evd, ep: Option<&Ep>| side.ia.create_rsp(qual, evd, ep);
    refused_as(
        create(0, &side.requests, Some(&side.end.ep)),
        Type::INVALID_PARAMETER,
        Subtype::INVALID_ARG2,
    )?;
    refused_as(
        create(context.port(), &side.end.recv, Some(&side.end.ep)),
        Type::INVALID_PARAMETER,
        Subtype::INVALID_ARG4,
    )?;
    let listener = Listener::new(context, &side.ia)?;
    refused(create(listener.port, &side.requests, Some(&side.end.ep)), Type::CONN_QUAL_IN_USE)?;
    same("state after the refusals", side.end.ep.status()?.state, EpState::Unconnected)?;
    let _rsp = create(context.port(), &side.requests, Some(&side.end.ep))?;
    refused_as(
        create(context.port(), &side.requests, Some(&side.end.ep)),
        Type::INVALID_STATE,
        Subtype::INVALID_STATE_EP_RESERVED,
    )?;
    same("state", side.end.ep.status()?.state, EpState::Reserved)
}

fn provides_endpoint(context: &Context) -> Result<()> {
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    let conn_qual = context.port();
    let rsp = server.ia.create_rsp(conn_qual, &server.requests, None)?;
    same("endpoint", rsp.query()?.ep, None)?;
    client.connect(context, &client.end.ep, conn_qual, &[])?;
    let (mut cr, ..) = server.request(context)?;
    let ep = cr.provided_ep()?.context("the request has no endpoint")?;
    server.configure(&ep)?;
    cr.accept(None, &[])?;
    client.next(context, ConnectionEvent::Established)?;
    server.next(context, ConnectionEvent::Established)
}

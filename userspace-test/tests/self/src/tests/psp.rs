// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests Public Service Points, and the common part of all service points.

use super::tests;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, refused, refused_as, same};
use crate::machine::{count_of, DeviceGuard};
use crate::repeat::unheard;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    ConnectionEvent, Cr, Ep, EpChange, EpCreator, EpState, Evd, EvdFlags, Event, Handle, Ia,
    PspOptions, Subtype, Type,
};

tests! {
    #[Address]
    any_port, 20, "A PSP on any free qualifier gets one that accepts connects";
    #[Address]
    query_returns_all, 20, "A PSP query returns its qualifier, EVD, flags and backlog";
    backlog_limits_requests, 30, "A request beyond the backlog is rejected, and an answered request makes room for another";
    freed_psp_keeps_requests, 30, "The waiting request of a freed PSP can be accepted, and its qualifier has no listener";
    provider_endpoint_accepts, 40, "A provider's endpoint comes with a request, and accepts it once it is configured";
    #[Transport]
    reject_frees_provider_endpoint, 30, "The provider's endpoint of a rejected request is freed";
    #[Address]
    device_removal_with_requests, 60, "A device is removed under service points and requests of all kinds";
}

/// The EVD of a service point, and one end for its requests.
pub struct Side {
    pub ia: Ia,
    pub requests: Evd,
    pub end: End,
}

impl Side {
    /// Creates a side on the host that connects.
    pub fn client(context: &Context) -> Result<Self> {
        Self::new(context.open()?)
    }

    /// Creates a side on the host that listens.
    pub fn server(context: &Context) -> Result<Self> {
        Self::new(context.open_server()?)
    }

    pub fn new(ia: Ia) -> Result<Self> {
        let requests = ia.create_evd(EvdFlags::CR, 32)?;
        let end = End::new(&ia, Shape::default())?;
        Ok(Self { ia, requests, end })
    }

    /// Returns the next request, its service point and its qualifier.
    #[track_caller]
    pub fn request(&self, context: &Context) -> Result<(Cr, Handle, u64)> {
        match context.next(&self.requests)? {
            Event::ConnectionRequest { cr, service_point, conn_qual, .. } => {
                Ok((cr, service_point, conn_qual))
            }
            event => unheard!("expected a connection request, got {event}"),
        }
    }

    /// Connects an endpoint to `conn_qual`.
    pub fn connect(&self, context: &Context, ep: &Ep, conn_qual: u64, data: &[u8]) -> Result<()> {
        Ok(ep.connect(context.server_address(), conn_qual, Some(context.patience()), data)?)
    }

    #[track_caller]
    pub fn next(&self, context: &Context, event: ConnectionEvent) -> Result<()> {
        connection(&context.next(&self.end.connect)?, event)
    }

    pub fn state(&self) -> Result<EpState> {
        Ok(self.end.ep.status()?.state)
    }

    /// Configures a provider's endpoint like our own.
    pub fn configure(&self, ep: &Ep) -> Result<()> {
        let end = &self.end;
        let change =
            EpChange::new().pz(&end.pz).recv(&end.recv).request(&end.request).connect(&end.connect);
        ep.modify(change)?;
        Ok(())
    }
}

/// Checks that `conn_qual` has no listener.
pub fn nobody_listens(context: &Context, client: &Side, conn_qual: u64) -> Result<()> {
    let ep = client.end.another_ep()?;
    client.connect(context, &ep, conn_qual, &[])?;
    client.next(context, ConnectionEvent::NonPeerRejected)
}

fn any_port(context: &Context) -> Result<()> {
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    let one = server.ia.create_psp_with(&server.requests, &PspOptions::default())?;
    let other = server.ia.create_psp_with(&server.requests, &PspOptions::default())?;
    ensure!(one.conn_qual() != 0 && one.conn_qual() <= 65535, "{}", one.conn_qual());
    ensure!(
        one.conn_qual() != other.conn_qual(),
        "both PSPs have the qualifier {}",
        one.conn_qual()
    );
    client.connect(context, &client.end.ep, one.conn_qual(), &[])?;
    let (mut cr, psp, conn_qual) = server.request(context)?;
    same("service point", psp, one.handle())?;
    same("qualifier", conn_qual, one.conn_qual())?;
    cr.accept(&server.end.ep, &[])?;
    client.next(context, ConnectionEvent::Established)
}

fn query_returns_all(context: &Context) -> Result<()> {
    let side = Side::server(context)?;
    for (endpoints, backlog, told) in
        [(EpCreator::Consumer, None, 128), (EpCreator::Provider, Some(3), 3)]
    {
        let conn_qual = context.port();
        let options = PspOptions { conn_qual: Some(conn_qual), endpoints, backlog };
        let psp = side.ia.create_psp_with(&side.requests, &options)?;
        let query = psp.query()?;
        same("qualifier", query.conn_qual, conn_qual)?;
        same("EVD", query.evd, side.requests.handle())?;
        same("flags", query.flags, endpoints as u32)?;
        same("backlog", query.backlog, told)?;
    }
    Ok(())
}

fn backlog_limits_requests(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    let conn_qual = context.port();
    let options = PspOptions { conn_qual: Some(conn_qual), backlog: Some(2), ..Default::default() };
    let _psp = server.ia.create_psp_with(&server.requests, &options)?;
    let eps = [client.end.another_ep()?, client.end.another_ep()?];
    for ep in &eps {
        client.connect(context, ep, conn_qual, &[])?;
    }
    let (mut first, ..) = server.request(context)?;
    let (_second, ..) = server.request(context)?;
    nobody_listens(context, &client, conn_qual)?;
    first.reject(b"no")?;
    client.next(context, ConnectionEvent::PeerRejected)?;
    client.connect(context, &client.end.ep, conn_qual, &[])?;
    let (mut third, ..) = server.request(context)?;
    third.accept(&server.end.ep, &[])?;
    client.next(context, ConnectionEvent::Established)
}

fn freed_psp_keeps_requests(context: &Context) -> Result<()> {
    for conn_qual in [context.port(), 1 << 33] {
        let (server, client) = (Side::server(context)?, Side::client(context)?);
        let psp = server.ia.create_psp(conn_qual, &server.requests)?;
        client.connect(context, &client.end.ep, conn_qual, &[])?;
        let (mut cr, ..) = server.request(context)?;
        psp.free()?;
        nobody_listens(context, &client, conn_qual)?;
        cr.accept(&server.end.ep, &[])?;
        client.next(context, ConnectionEvent::Established)?;
        server.next(context, ConnectionEvent::Established)?;
    }
    Ok(())
}

/// Creates a PSP that provides endpoints.
fn provider(server: &Side, conn_qual: u64) -> Result<libkdapl::Psp> {
    let options = PspOptions {
        conn_qual: Some(conn_qual),
        endpoints: EpCreator::Provider,
        ..Default::default()
    };
    Ok(server.ia.create_psp_with(&server.requests, &options)?)
}

fn provider_endpoint_accepts(context: &Context) -> Result<()> {
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    let conn_qual = context.port();
    let _psp = provider(&server, conn_qual)?;
    client.end.receive(0, 64, 7)?;
    client.connect(context, &client.end.ep, conn_qual, &[])?;
    let (mut cr, ..) = server.request(context)?;
    let ep = cr.provided_ep()?.context("the request has no endpoint")?;
    same("state", ep.status()?.state, EpState::UnconfiguredTentative)?;
    refused_as(
        cr.accept(None, &[]),
        Type::INVALID_STATE,
        Subtype::INVALID_STATE_EP_UNCONFTENTATIVE,
    )?;
    refused(ep.free(), Type::INVALID_STATE)?;
    refused_as(cr.accept(&server.end.ep, &[]), Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    same("state of the server's own endpoint", server.state()?, EpState::Unconnected)?;
    server.configure(&ep)?;
    same("state", ep.status()?.state, EpState::TentativeConnectionPending)?;
    cr.accept(None, &[])?;
    server.next(context, ConnectionEvent::Established)?;
    client.next(context, ConnectionEvent::Established)?;
    let segment = [server.end.lmr.segment(0, 64)];
    ep.post_send(&segment, 8, Default::default())?;
    let event = context.next(&client.end.recv)?;
    crate::expect::done(&event, libkdapl::DtoOperation::Receive, 64, 7)?;
    ep.free()?;
    client.next(context, ConnectionEvent::Disconnected)
}

fn reject_frees_provider_endpoint(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    let conn_qual = context.port();
    let _psp = provider(&server, conn_qual)?;
    for configured in [false, true] {
        let before = count_of("ep")?;
        let ep = client.end.another_ep()?;
        client.connect(context, &ep, conn_qual, &[])?;
        let (mut cr, ..) = server.request(context)?;
        let provided = cr.provided_ep()?.context("the request has no endpoint")?;
        if configured {
            server.configure(&provided)?;
        }
        cr.reject(b"no")?;
        client.next(context, ConnectionEvent::PeerRejected)?;
        refused_as(provided.status(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_EP)?;
        drop((provided, ep));
        // Over iWARP a thread holds the client's endpoint until its call of `rdma_connect` returns.
        context.until("the endpoints are gone", || Ok(count_of("ep")? == before))?;
    }
    Ok(())
}

fn device_removal_with_requests(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    let (port, wide) = (context.port(), (1 << 44) + context.port());
    let psp = provider(&server, port)?;
    let wide_psp = server.ia.create_psp(wide, &server.requests)?;
    let rsp = server.ia.create_rsp(wide + 1, &server.requests, Some(&server.end.ep))?;
    let idle_ep = server.end.another_ep()?;
    let idle = server.ia.create_rsp(wide + 2, &server.requests, Some(&idle_ep))?;
    let csp = server.ia.create_csp(None, &server.requests)?;
    let (mut crs, mut eps) = (Vec::new(), Vec::new());
    for qual in [port, wide, wide, wide + 1] {
        let ep = client.end.another_ep()?;
        client.connect(context, &ep, qual, &[])?;
        crs.push(server.request(context)?.0);
        eps.push(ep);
    }
    let spare = server.end.another_ep()?;
    guard.delete()?;
    // The first and the last request come with an endpoint.
    for (cr, ep) in crs.iter_mut().zip([None, Some(&spare), Some(&spare), None]) {
        refused_as(cr.accept(ep, &[]), Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_DEVICE)?;
        cr.query()?;
        cr.reject(&[])?;
    }
    let late = server.ia.create_psp(wide, &server.requests).map(drop);
    refused_as(late, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_DEVICE)?;
    psp.free()?;
    wide_psp.free()?;
    rsp.free()?;
    idle.free()?;
    csp.free()?;
    drop((server, client, idle_ep, spare, eps));
    guard.add()?;
    let server = Side::server(context)?;
    server.ia.create_psp(wide, &server.requests)?.free()?;
    Ok(())
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Endpoints with DAT_HANDLE_NULL for some or all of their EVDs: the consumer does not want those
//! events.

use super::device_removal::catastrophic;
use super::srq_last_receive::catastrophic_after_many;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, done, dto, empty, ended, refused, refused_as, same};
use crate::harness::skip;
use crate::hosts::ASYNC_QLEN;
use crate::machine::{no_objects_left, DeviceGuard};
use anyhow::{Context as _, Result};
use libkdapl::{
    AsyncEvent, Close, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpAttr, EpChange, EpConfig,
    EpCreator, EpFields, EpState, Event, Ia, PspOptions, Subtype, Type,
};

tests! {
    #![Transport]
    every_combination, 120, "An endpoint with any of its EVDs null connects, transfers and disconnects, and reports to the others";
    many_lives, 120, "An endpoint without EVDs connects and disconnects again and again, with receives outstanding";
    slots_are_freed, 60, "An endpoint without EVDs transfers more in all than it has slots, and refuses a receive above them";
    modified, 60, "A modify to null EVDs releases the old ones, and a modify back uses them again";
    many_endpoints, 60, "Many endpoints without EVDs are created, freed and created again";
    broken_is_asynchronous, 60, "The failure of a connection without a connect EVD is ASYNC_EP_BROKEN, once";
    provided_endpoint, 60, "An endpoint that came with a request is accepted with a PZ and no EVDs";
}

// Runs last, since it removes the device.
tests! {
    REMOVAL:
    device_removal, 120, "Removing a device under a connection without EVDs is ASYNC_EP_BROKEN, and leaves nothing behind";
    removal_of_many, 120, "Removing a device under many connections without EVDs leaves room for IA_CATASTROPHIC";
}

pub(super) const SHAPE: Shape = Shape {
    merged: false,
    receives: 4,
    requests: 4,
    memory: 64 << 10,
    peer_timeout_ms: 0,
    keepalive_ms: 0,
};
pub(super) const LENGTH: usize = 64;

/// EVDs that an endpoint has: for receives, requests and connection events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    recv: bool,
    request: bool,
    connect: bool,
}

impl Wanted {
    pub(super) const NONE: Self = Self::of(0);
    pub(super) const ALL: Self = Self::of(7);

    pub(super) const fn of(bits: u32) -> Self {
        Self { recv: bits & 1 != 0, request: bits & 2 != 0, connect: bits & 4 != 0 }
    }
}

/// An endpoint, and the EVDs that it would have.
pub(super) struct Side {
    pub(super) end: End,
    wanted: Wanted,
}

fn attr() -> EpAttr {
    EpAttr { max_recv_dtos: SHAPE.receives, max_request_dtos: SHAPE.requests, ..Default::default() }
}

/// Checks which EVDs the endpoint reports.
fn has(ep: &Ep, end: &End, wanted: Wanted) -> Result<()> {
    let raw = ep.query()?.raw;
    let handle = |wanted: bool, evd: &libkdapl::Evd| if wanted { evd.handle().0 } else { 0 };
    let expected = [
        handle(wanted.recv, &end.recv),
        handle(wanted.request, &end.request),
        handle(wanted.connect, &end.connect),
    ];
    same("EVDs", [raw.recv_evd, raw.request_evd, raw.connect_evd], expected)
}

impl Side {
    fn new(ia: &Ia, wanted: Wanted) -> Result<Self> {
        let mut end = End::new(ia, SHAPE)?;
        let config = EpConfig {
            pz: Some(&end.pz),
            recv: wanted.recv.then_some(&end.recv),
            srq: None,
            request: wanted.request.then_some(&end.request),
            connect: wanted.connect.then_some(&end.connect),
            attr: Some(attr()),
        };
        let ep = ia.create_ep_with(&config)?;
        same("state", ep.query()?.state, EpState::Unconnected)?;
        has(&ep, &end, wanted)?;
        end.ep = ep;
        Ok(Self { end, wanted })
    }

    /// Waits for a state, and takes the connection event that belongs to it.
    pub(super) fn reaches(&self, context: &Context, state: EpState) -> Result<()> {
        if self.wanted.connect {
            let event = context.next(&self.end.connect)?;
            match state {
                EpState::Connected => connection(&event, ConnectionEvent::Established)?,
                _ => ended(context, &event, ConnectionEvent::Disconnected)?,
            }
        }
        context.until("the state", || Ok(self.end.ep.status()?.state == state))
    }

    /// Waits until nothing is outstanding. Takes the receive's event with this status.
    fn received(&self, context: &Context, status: DtoStatus) -> Result<()> {
        if self.wanted.recv {
            dto(&context.next(&self.end.recv)?, DtoOperation::Receive, status)?;
        }
        context.until("the receive", || Ok(self.end.ep.status()?.recv_outstanding == 0))
    }

    /// Sends a message, and waits until it has arrived and nothing is outstanding.
    pub(super) fn sends(&self, context: &Context, to: &Self, round: u64) -> Result<()> {
        let bytes = [round as u8; LENGTH];
        self.end.lmr.buffer().write(0, &bytes);
        to.end.receive(4096, LENGTH, round)?;
        self.end.send(0, LENGTH, round)?;
        to.received(context, DtoStatus::Success)?;
        if self.wanted.request {
            let event = context.next(&self.end.request)?;
            done(&event, DtoOperation::Send, LENGTH as u64, round)?;
        }
        context.until("the send", || Ok(self.end.ep.status()?.request_outstanding == 0))?;
        let mut arrived = [0; LENGTH];
        to.end.lmr.buffer().read(4096, &mut arrived);
        same("message", arrived, bytes)
    }

    /// Checks that no event is left, also none of an EVD that the endpoint does not have.
    pub(super) fn is_quiet(&self, context: &Context) -> Result<()> {
        let end = &self.end;
        context.quiet(end.ia.async_evd())?;
        [&end.recv, &end.request, &end.connect].into_iter().try_for_each(empty)
    }
}

pub(super) fn sides(
    context: &Context,
    client: Wanted,
    server: Wanted,
) -> Result<(Side, Side, Listener)> {
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    Ok((Side::new(&client_ia, client)?, Side::new(&server_ia, server)?, listener))
}

pub(super) fn connect(
    context: &Context,
    client: &Side,
    server: &Side,
    listener: &Listener,
) -> Result<()> {
    let patience = Some(context.patience());
    client.end.ep.connect(context.server_address(), listener.port, patience, &[])?;
    listener.request(context)?.accept(&server.end.ep, &[])?;
    client.reaches(context, EpState::Connected)?;
    server.reaches(context, EpState::Connected)
}

fn every_combination(context: &Context) -> Result<()> {
    for &bits in context.sample(&[0, 1, 2, 3, 4, 5, 6, 7]) {
        let (wanted, others) = (Wanted::of(bits), Wanted::of(7 - bits));
        connected_life(context, wanted, others).with_context(|| format!("{wanted:?}"))?;
    }
    Ok(())
}

/// Connects, exchanges messages and disconnects, with receives outstanding at the end.
fn connected_life(context: &Context, wanted: Wanted, others: Wanted) -> Result<()> {
    let (client, server, listener) = sides(context, wanted, others)?;
    connect(context, &client, &server, &listener)?;
    for round in 0..3 * u64::from(SHAPE.requests) {
        client.sends(context, &server, round)?;
        server.sends(context, &client, round)?;
    }
    for side in [&client, &server] {
        side.end.receive(0, LENGTH, 99)?;
    }
    client.end.ep.disconnect(Close::Graceful)?;
    for side in [&client, &server] {
        side.reaches(context, EpState::Disconnected)?;
        side.received(context, DtoStatus::Flushed)?;
        // A DTO that is flushed at once.
        side.end.receive(0, LENGTH, 100)?;
        side.received(context, DtoStatus::Flushed)?;
        side.is_quiet(context)?;
    }
    Ok(())
}

fn many_lives(context: &Context) -> Result<()> {
    let (client, server, listener) = sides(context, Wanted::NONE, Wanted::NONE)?;
    // A work request's number tells 32 lives of an endpoint apart.
    for _ in 0..40 {
        for side in [&client, &server] {
            side.end.receive(0, LENGTH, 1)?;
        }
        connect(context, &client, &server, &listener)?;
        client.end.ep.disconnect(Close::Abrupt)?;
        for side in [&client, &server] {
            side.reaches(context, EpState::Disconnected)?;
            side.end.ep.reset()?;
        }
    }
    client.is_quiet(context)?;
    server.is_quiet(context)
}

fn slots_are_freed(context: &Context) -> Result<()> {
    let (client, server, listener) = sides(context, Wanted::NONE, Wanted::NONE)?;
    for cookie in 0..SHAPE.receives {
        client.end.receive(0, LENGTH, cookie.into())?;
    }
    let segment = [client.end.lmr.segment(0, LENGTH)];
    let more = client.end.ep.post_recv(&segment, 99, Default::default());
    refused(more, Type::INSUFFICIENT_RESOURCES)?;
    connect(context, &client, &server, &listener)?;
    let to = server.end.lmr.remote_segment(0, LENGTH);
    for cookie in 0..context.count(2_000) {
        context.until("a free slot", || {
            match client.end.ep.post_rdma_write(&segment, to, cookie, Default::default()) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == Some(Type::INSUFFICIENT_RESOURCES) => Ok(false),
                Err(error) => Err(error.into()),
            }
        })?;
    }
    context.until("all writes", || Ok(client.end.ep.status()?.request_outstanding == 0))?;
    same("state", client.end.ep.status()?.state, EpState::Connected)?;
    client.is_quiet(context)
}

fn modified(context: &Context) -> Result<()> {
    let (client, server, listener) = sides(context, Wanted::ALL, Wanted::ALL)?;
    let ep = &client.end.ep;
    let all = EpFields::RECV_EVD | EpFields::REQUEST_EVD | EpFields::CONNECT_EVD;
    ep.modify(EpChange::of(all, EpAttr::default()))?;
    same("state", ep.query()?.state, EpState::Unconnected)?;
    has(ep, &client.end, Wanted::NONE)?;
    // The old EVDs are unused.
    let end = &client.end;
    [&end.recv, &end.request, &end.connect].into_iter().try_for_each(libkdapl::Evd::free)?;
    // One by one, in both directions.
    let other = End::new(&end.ia, SHAPE)?;
    for (field, wanted) in
        [(EpFields::RECV_EVD, 1), (EpFields::REQUEST_EVD, 2), (EpFields::CONNECT_EVD, 4)]
    {
        let change = match wanted {
            1 => EpChange::new().recv(&other.recv),
            2 => EpChange::new().request(&other.request),
            _ => EpChange::new().connect(&other.connect),
        };
        ep.modify(change)?;
        has(ep, &other, Wanted::of(wanted))?;
        ep.modify(EpChange::of(field, EpAttr::default()))?;
        has(ep, &other, Wanted::NONE)?;
    }
    let whole = EpChange::new().recv(&other.recv).request(&other.request).connect(&other.connect);
    ep.modify(whole)?;
    has(ep, &other, Wanted::ALL)?;
    let End { recv, request, connect: events, .. } = other;
    let Side { end, wanted } = client;
    let client = Side { end: End { recv, request, connect: events, ..end }, wanted };
    connect(context, &client, &server, &listener)?;
    client.sends(context, &server, 1)?;
    server.sends(context, &client, 2)
}

fn many_endpoints(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    let attr = EpAttr { max_recv_dtos: 128, max_request_dtos: 128, ..Default::default() };
    let config = EpConfig { pz: Some(&pz), attr: Some(attr), ..Default::default() };
    for _ in 0..3 {
        let eps = (0..32).map(|_| ia.create_ep_with(&config)).collect::<Result<Vec<_>, _>>()?;
        for ep in eps {
            same("state", ep.status()?.state, EpState::Unconnected)?;
            ep.free()?;
        }
    }
    pz.free()?;
    // Leftovers of freed endpoints are not objects of the adapter.
    Ok(ia.close(Close::Graceful)?)
}

/// Fails an RDMA write of the client.
fn fail(client: &Side, server: &Side) -> Result<()> {
    let mut to = server.end.lmr.remote_segment(0, LENGTH);
    to.context ^= 0x5500;
    client.end.write(0, LENGTH, to, 1)
}

fn broken(context: &Context, side: &Side) -> Result<()> {
    match context.next(side.end.ia.async_evd())? {
        Event::Async { event: AsyncEvent::EpBroken, object, .. } => {
            same("endpoint", object, side.end.ep.handle())
        }
        other => anyhow::bail!("expected ASYNC_EP_BROKEN, got {other}"),
    }
}

fn broken_is_asynchronous(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("over iWARP the side that notices the end first is DISCONNECTED");
    }
    // With a connect EVD, the failure of an unwanted DTO is reported there, and only there.
    let (client, server, listener) = sides(context, Wanted::of(4), Wanted::ALL)?;
    connect(context, &client, &server, &listener)?;
    fail(&client, &server)?;
    connection(&context.next(&client.end.connect)?, ConnectionEvent::Broken)?;
    client.is_quiet(context)?;
    let (client, server, listener) = sides(context, Wanted::NONE, Wanted::ALL)?;
    connect(context, &client, &server, &listener)?;
    fail(&client, &server)?;
    broken(context, &client)?;
    same("state", client.end.ep.status()?.state, EpState::Disconnected)?;
    client.is_quiet(context)
}

fn provided_endpoint(context: &Context) -> Result<()> {
    let (client, server, _) = sides(context, Wanted::ALL, Wanted::ALL)?;
    let port = context.port();
    let requests = server.end.ia.create_evd(libkdapl::EvdFlags::CR, 4)?;
    let options =
        PspOptions { conn_qual: Some(port), endpoints: EpCreator::Provider, ..Default::default() };
    let _psp = context.server.inside(|| server.end.ia.create_psp_with(&requests, &options))??;
    client.end.receive(0, LENGTH, 1)?;
    let patience = Some(context.patience());
    client.end.ep.connect(context.server_address(), port, patience, &[])?;
    let Event::ConnectionRequest { mut cr, .. } = context.next(&requests)? else {
        anyhow::bail!("expected a request");
    };
    let ep = cr.provided_ep()?.context("the request has no endpoint")?;
    has(&ep, &server.end, Wanted::NONE)?;
    ep.modify(EpChange::new().pz(&server.end.pz))?;
    cr.accept(None, &[])?;
    client.reaches(context, EpState::Connected)?;
    context.until("the connection", || Ok(ep.status()?.state == EpState::Connected))?;
    ep.free()?;
    client.reaches(context, EpState::Disconnected)
}

fn device_removal(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let (client, server, listener) = sides(context, Wanted::NONE, Wanted::NONE)?;
    connect(context, &client, &server, &listener)?;
    for side in [&client, &server] {
        side.end.receive(0, LENGTH, 1)?;
    }
    // Were the other device removed first, its disconnect could end the connection.
    guard.delete_of(&context.client)?;
    broken(context, &client)?;
    catastrophic(context, &client.end.ia)?;
    same("state", client.end.ep.status()?.state, EpState::Disconnected)?;
    let new = client.end.ia.create_ep_with(&EpConfig::default());
    refused_as(new.map(drop), Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_DEVICE)?;
    drop((client, server, listener));
    no_objects_left(context.settings.scale)?;
    guard.add()?;
    Pair::new(context, Shape::default()).map(drop)
}

/// The asynchronous EVD has room for fewer events.
fn removal_of_many(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let connected = |_| {
        let client = Side::new(&client_ia, Wanted::NONE)?;
        let server = Side::new(&server_ia, Wanted::NONE)?;
        connect(context, &client, &server, &listener)?;
        Ok((client, server))
    };
    let _pairs = (0..2 * ASYNC_QLEN).map(connected).collect::<Result<Vec<_>>>()?;
    guard.delete_of(&context.client)?;
    catastrophic_after_many(context, &client_ia)
}

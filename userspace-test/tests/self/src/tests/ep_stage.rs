// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Brings an endpoint to each state, with all objects that keep it there.

mod gated;
mod passive;

pub use gated::{gated_active, gated_ended, gated_passive};
pub use passive::{
    accepting, passive, reserved, tentative, unconfigured_passive, unconfigured_reserved,
    unconfigured_tentative,
};

use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, same};
use crate::harness::skip;
use crate::hosts::Host;
use crate::rust::model::ep::{AcceptFrom, Configuration, FinalEvent, GatedSide, Paths, Phase};
use anyhow::{ensure, Result};
use libkdapl::{
    Close, ConnectOptions, ConnectionEvent, Cr, Ep, EpChange, EpConfig, EpState, EvdFlags,
    Multipath, Segment,
};
use std::any::Any;

/// An endpoint in a state.
pub struct Stage {
    pub end: End,
    pub host: Host,
    /// The request that owns the endpoint.
    pub request: Option<Cr>,
    /// The peer's memory, if there is a peer.
    pub remote: Option<Segment>,
    /// Objects that keep it in the state: peers, listeners, service points.
    pub hold: Vec<Box<dyn Any>>,
}

impl Stage {
    fn new(host: &Host, end: End) -> Self {
        Self { end, host: host.clone(), request: None, remote: None, hold: Vec::new() }
    }

    /// Creates an end on its own IA on a host.
    fn on(host: &Host, shape: Shape) -> Result<Self> {
        Ok(Self::new(host, End::new(&host.open()?, shape)?))
    }

    pub fn hold(&mut self, what: impl Any) {
        self.hold.push(Box::new(what));
    }

    pub fn state(&self) -> Result<EpState> {
        Ok(self.end.ep.query()?.state)
    }

    /// Returns a change to all parts of the endpoint that may be missing.
    pub fn whole(&self) -> EpChange<'_> {
        let end = &self.end;
        EpChange::new().pz(&end.pz).recv(&end.recv).request(&end.request).connect(&end.connect)
    }

    fn begins_in(self, state: EpState) -> Result<Self> {
        same("initial state", self.state()?, state)?;
        Ok(self)
    }
}

/// A function that brings an endpoint to a state.
pub type Way = fn(&Context) -> Result<Stage>;

/// A state, the function that leads to it, and its phase in the model.
pub struct Row {
    pub name: &'static str,
    pub way: Way,
    pub phase: Phase,
}

const fn row(name: &'static str, way: Way, phase: Phase) -> Row {
    Row { name, way, phase }
}

/// All states except CONNECTED_MULTI_PATH: no device has several paths.
pub const ROWS: [Row; 19] = [
    row("UNCONNECTED", unconnected, Phase::Unconnected(Configuration::Complete)),
    row("UNCONFIGURED_UNCONNECTED", unconfigured, Phase::Unconnected(Configuration::Incomplete)),
    row("RESERVED", reserved, Phase::Reserved(Configuration::Complete)),
    row("UNCONFIGURED_RESERVED", unconfigured_reserved, Phase::Reserved(Configuration::Incomplete)),
    row("PASSIVE_CONNECTION_PENDING", passive, Phase::Passive(Configuration::Complete)),
    row("UNCONFIGURED_PASSIVE", unconfigured_passive, Phase::Passive(Configuration::Incomplete)),
    row("TENTATIVE_CONNECTION_PENDING", tentative, Phase::Tentative(Configuration::Complete)),
    row(
        "UNCONFIGURED_TENTATIVE",
        unconfigured_tentative,
        Phase::Tentative(Configuration::Incomplete),
    ),
    row("ACTIVE_CONNECTION_PENDING", connecting, Phase::Connecting(Paths::Plain)),
    row("COMPLETION_PENDING", accepting, Phase::Accepting(AcceptFrom::Unconnected)),
    row(
        "ACTIVE_CONNECTION_PENDING, gated",
        gated_active,
        Phase::Gated(GatedSide::Active(Paths::Plain)),
    ),
    row("COMPLETION_PENDING, gated", gated_passive, Phase::Gated(GatedSide::Passive)),
    row("DISCONNECT_PENDING, gated", gated_ended, Phase::GatedEnded(FinalEvent::Disconnected)),
    row("CONNECTED, active", connected, Phase::Connected(Paths::Plain)),
    row("CONNECTED, passive", connected_passive, Phase::Connected(Paths::Plain)),
    row("CONNECTED_SINGLE_PATH", single_path, Phase::Connected(Paths::Single)),
    row("DISCONNECT_PENDING, requests", draining, Phase::Draining),
    row("DISCONNECT_PENDING, receives", flushing, Phase::Flushing(FinalEvent::Disconnected)),
    row("DISCONNECTED", disconnected, Phase::Disconnected),
];

/// Returns the reason if a phase cannot be reached on these hosts.
pub fn no_way(context: &Context, phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::Accepting(_) if context.server.is_iwarp() => {
            Some("over iWARP an accept is not confirmed")
        }
        Phase::Draining if context.client.is_iwarp() => {
            Some("over iWARP a message without a posted receive ends the connection")
        }
        _ => None,
    }
}

/// Creates an endpoint without a PZ.
fn without_zone(end: &End) -> Result<Ep> {
    let config = EpConfig {
        recv: Some(&end.recv),
        request: Some(&end.request),
        connect: Some(&end.connect),
        ..Default::default()
    };
    Ok(end.ia.create_ep_with(&config)?)
}

pub fn unconnected(context: &Context) -> Result<Stage> {
    Stage::on(&context.client, Shape::default())?.begins_in(EpState::Unconnected)
}

pub fn unconfigured(context: &Context) -> Result<Stage> {
    let mut stage = unconnected(context)?;
    stage.end.ep = without_zone(&stage.end)?;
    stage.begins_in(EpState::UnconfiguredUnconnected)
}

/// Connects to a listener that does not answer.
pub fn connecting(context: &Context) -> Result<Stage> {
    let mut stage = unconnected(context)?;
    let server_ia = context.open_server()?;
    let listener = Listener::new(context, &server_ia)?;
    let patience = Some(context.patience() * 3);
    stage.end.ep.connect(context.server_address(), listener.port, patience, &[])?;
    stage.hold(listener);
    stage.hold(server_ia);
    stage.begins_in(EpState::ActiveConnectionPending)
}

/// Returns a connection from the view of its active or its passive side.
fn pair(context: &Context, active: bool) -> Result<Stage> {
    Ok(view_of(context, Pair::new(context, Shape::default())?, active))
}

/// Returns the view of one side of a pair.
fn view_of(context: &Context, pair: Pair, active: bool) -> Stage {
    let Pair { client, server, listener } = pair;
    let (host, end, peer) =
        if active { (&context.client, client, server) } else { (&context.server, server, client) };
    let mut stage = Stage::new(host, end);
    stage.remote = Some(peer.lmr.remote_segment(0, 64));
    stage.hold(peer);
    stage.hold(listener);
    stage
}

pub fn connected(context: &Context) -> Result<Stage> {
    with_receive(pair(context, true)?)?.begins_in(EpState::Connected)
}

pub fn connected_passive(context: &Context) -> Result<Stage> {
    with_receive(pair(context, false)?)?.begins_in(EpState::Connected)
}

/// Posts a receive at the peer, for one message.
fn with_receive(stage: Stage) -> Result<Stage> {
    for peer in stage.hold.iter().filter_map(|held| held.downcast_ref::<End>()) {
        peer.receive(0, 64, 1)?;
    }
    Ok(stage)
}

pub fn single_path(context: &Context) -> Result<Stage> {
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let mut stage = Stage::new(&context.client, End::new(&client_ia, Shape::default())?);
    let server = End::new(&server_ia, Shape::default())?;
    let options = ConnectOptions {
        timeout: Some(context.patience()),
        multipath: Multipath::Requested,
        ..Default::default()
    };
    stage.end.ep.connect_with((context.server_address(), 0).into(), listener.port, &options)?;
    same("state", stage.state()?, EpState::ActiveConnectionPending)?;
    listener.request(context)?.accept(&server.ep, &[])?;
    for end in [&stage.end, &server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    stage.remote = Some(server.lmr.remote_segment(0, 64));
    stage.hold(server);
    stage.hold(listener);
    with_receive(stage)?.begins_in(EpState::ConnectedSinglePath)
}

/// Disconnects gracefully while a request waits for a receive of the peer.
pub fn draining(context: &Context) -> Result<Stage> {
    if let Some(why) = no_way(context, Phase::Draining) {
        return skip(why);
    }
    let stage = pair(context, true)?;
    stage.end.send(0, 64, 1)?;
    stage.end.ep.disconnect(Close::Graceful)?;
    stage.begins_in(EpState::DisconnectPending)
}

/// Disconnects while flushed receives wait for room in a full EVD.
pub fn flushing(context: &Context) -> Result<Stage> {
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let end = End::new(&client_ia, Shape::default())?;
    let server = End::new(&server_ia, Shape::default())?;
    let recv = client_ia.create_evd(EvdFlags::DTO, 1)?;
    end.ep.modify(EpChange::new().recv(&recv))?;
    let mut stage = Stage::new(&context.client, End { recv, ..end });
    (0..4).try_for_each(|cookie| stage.end.receive(0, 64, cookie))?;
    let patience = Some(context.patience());
    stage.end.ep.connect(context.server_address(), listener.port, patience, &[])?;
    listener.request(context)?.accept(&server.ep, &[])?;
    for end in [&stage.end, &server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    stage.end.ep.disconnect(Close::Abrupt)?;
    stage.hold(server);
    stage.hold(listener);
    stage.begins_in(EpState::DisconnectPending)
}

pub fn disconnected(context: &Context) -> Result<Stage> {
    let stage = connected(context)?;
    stage.end.ep.disconnect(Close::Abrupt)?;
    connection(&context.next(&stage.end.connect)?, ConnectionEvent::Disconnected)?;
    stage.begins_in(EpState::Disconnected)
}

/// Creates another request, for no particular endpoint: the stage's own IA connects to itself.
pub fn another_request(context: &Context, stage: &mut Stage) -> Result<(Cr, Ep)> {
    let ia = stage.end.ia.clone();
    let listener = Listener::new(context, &ia)?;
    let caller = End::new(&ia, Shape::default())?;
    caller.ep.connect(stage.host.address, listener.port, Some(context.patience()), &[])?;
    let cr = listener.request(context)?;
    let ep = caller.ep.clone();
    ensure!(cr.query()?.local_ep.is_none(), "the request has an endpoint");
    stage.hold(caller);
    stage.hold(listener);
    Ok((cr, ep))
}

/// Creates another endpoint of the same IA, which is connected.
pub fn another_connected(context: &Context, stage: &mut Stage) -> Result<Ep> {
    let (mut cr, ep) = another_request(context, stage)?;
    let peer = End::new(&stage.end.ia, Shape::default())?;
    cr.accept(&peer.ep, &[])?;
    connection(&context.next(&peer.connect)?, ConnectionEvent::Established)?;
    stage.hold(peer);
    // Over iWARP, the accepting side is connected first.
    context
        .until("the other endpoint is connected", || Ok(ep.query()?.state == EpState::Connected))?;
    Ok(ep)
}

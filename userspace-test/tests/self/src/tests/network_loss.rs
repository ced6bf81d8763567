// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Interrupts the network of an endpoint for a moment, in each of its states.
//!
//! An endpoint without a connection must not change. A connection survives or ends with an event.
//! Afterwards every operation in progress can be completed.

use super::address_loss::{renew, RemovedAddress};
use super::device_removal_by_state::follow;
use super::ep_stage::{no_way, Row, Stage, ROWS};
use super::silent_peer::{back, next_within, two_hosts, LinkDown, MAX_RECOVERY_TIME};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, connection_over, done, same};
use crate::hosts::Host;
use crate::machine::{no_objects_left, DeviceGuard};
use crate::rust::model::ep::{
    flushes_posts, may_post_recv, Configuration, ConnectionEvent as ModelEvent, Input, Network,
    Paths, Phase, Progress,
};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, ConnectionEvent, DtoOperation, DtoStatus, EpState, Error, Evd, Event, EventKind, Rsp,
    Type,
};
use std::net::IpAddr;
use std::time::{Duration, Instant};

tests! {
    link_down, 300, "A short loss of the link leaves an endpoint in its state, in each state, or ends its connection once";
    address_removed, 300, "A short loss of the address leaves an endpoint in its state, in each state, or ends its connection once";
}

/// Shorter than the transport's time-out for an answer.
const LOSS_TIME: Duration = Duration::from_millis(50);
/// Longest time to establish a connection (times the scale).
const CONNECT_TIME: Duration = Duration::from_secs(2);
/// First cookie of DTOs that are posted here. A stage's own are lower.
const FIRST_COOKIE: u64 = 100;
const RECEIVES: u64 = 3;

/// Returns the possible results: no change, or the end of a connection or of an attempt.
fn may_be(phase: Phase) -> Vec<(Phase, Vec<ModelEvent>)> {
    let ends: &[Input] = match phase {
        Phase::Connecting(_) => &[Network::Unreachable.into(), Network::NonPeerRejected.into()],
        Phase::Accepting(_) => &[Network::AcceptFailed.into()],
        Phase::Gated(_) | Phase::Connected(_) | Phase::Draining => {
            &[Network::Broken.into(), Network::PeerDisconnected.into()]
        }
        Phase::Unconnected(_)
        | Phase::Reserved(_)
        | Phase::Passive(_)
        | Phase::Tentative(_)
        | Phase::GatedEnded(_)
        | Phase::Flushing(_)
        | Phase::Disconnected
        | Phase::Freed => &[],
    };
    let ended = ends
        .iter()
        .map(|end| follow(phase, &[*end, Progress::RequestsIdle.into(), Progress::Idle.into()]));
    std::iter::once((phase, Vec::new())).chain(ended).collect()
}

/// Waits until the endpoint has one of the possible results, and returns its phase.
fn phase_now(context: &Context, stage: &Stage, before: Phase) -> Result<Phase> {
    let may_be = may_be(before);
    let mut events = Vec::new();
    let mut now = None;
    context
        .until("a possible phase and its events", || {
            let state = stage.end.ep.status()?.state.number();
            while let Ok((event, _)) = stage.end.connect.dequeue() {
                match event {
                    Event::Connection { event, .. } => events.push(event.number()),
                    other => bail!("expected a connection event, got {other}"),
                }
            }
            let fits = |(phase, notices): &&(Phase, Vec<ModelEvent>)| {
                phase.state().number() == state
                    && notices.iter().map(|notice| notice.number()).eq(events.iter().copied())
            };
            now = may_be.iter().find(fits).map(|(phase, _)| *phase);
            Ok(now.is_some())
        })
        .with_context(|| format!("{:?} and {events:x?}, not in {may_be:?}", stage.state()))?;
    now.context("the phase is unknown")
}

/// Returns the object of this type that keeps the stage in its state.
fn held<T: 'static>(stage: &Stage) -> Result<&T> {
    let found = stage.hold.iter().find_map(|held| held.downcast_ref());
    found.with_context(|| format!("the stage holds no {}", std::any::type_name::<T>()))
}

/// Sets missing parts of the endpoint.
fn complete(stage: &Stage, configuration: Configuration) -> Result<()> {
    if configuration == Configuration::Incomplete {
        stage.end.ep.modify(stage.whole())?;
    }
    Ok(())
}

/// Expected outcome of an attempt that began before the network was lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Succeeds,
    /// Its addresses may have become invalid, although they were added again.
    MayFail,
}

/// Checks the outcome of an accepted attempt.
fn outcome(context: &Context, active: &End, passive: &End, attempt: Attempt) -> Result<()> {
    if attempt == Attempt::MayFail && !both_connected(context, active, passive)? {
        println!("the attempt was accepted, but not established");
        return each_ends_once(context, [active, passive]);
    }
    for end in [active, passive] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    talk(context, active, passive)
}

/// Returns whether both ends are connected in time.
fn both_connected(context: &Context, active: &End, passive: &End) -> Result<bool> {
    let end = Instant::now() + context.scaled(CONNECT_TIME);
    while Instant::now() < end {
        let states = [active.ep.status()?.state, passive.ep.status()?.state];
        if states.contains(&EpState::Disconnected) {
            return Ok(false);
        }
        if states == [EpState::Connected; 2] {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(false)
}

/// Disconnects both ends, of which one may have ended the connection already. Each disconnects at
/// once, with one event.
fn each_ends_once(context: &Context, ends: [&End; 2]) -> Result<()> {
    for end in ends {
        end.ep.disconnect(Close::Abrupt)?;
        context.until("DISCONNECTED", || {
            while end.recv.dequeue().is_ok() {}
            Ok(end.ep.status()?.state == EpState::Disconnected)
        })?;
        let mut told = Vec::new();
        while let Ok((event, _)) = end.connect.dequeue() {
            told.push(event.kind());
        }
        let established = EventKind::Connection(ConnectionEvent::Established);
        let ended = told.iter().filter(|event| **event != established).count();
        ensure!(ended == 1 && told.last() != Some(&established), "the events are {told:?}");
    }
    Ok(())
}

/// Sends a message in both directions. The active side sends first.
fn talk(context: &Context, active: &End, passive: &End) -> Result<()> {
    for (from, to) in [(active, passive), (passive, active)] {
        to.receive(0, 64, 1)?;
        from.send(64, 64, 2)?;
        done(&context.next(&from.request)?, DtoOperation::Send, 64, 2)?;
        // This receive follows those that were posted before.
        let Event::Dto(dto) = context.next(&to.recv)? else { bail!("no receive") };
        same("status", dto.status, DtoStatus::Success)?;
    }
    Ok(())
}

/// Connects an endpoint like a new one.
fn connects(context: &Context, end: &End) -> Result<()> {
    let server_ia = context.open_server()?;
    let listener = Listener::new(context, &server_ia)?;
    let server = End::new(&server_ia, Shape::default())?;
    calls(context, end, context.server_address(), listener.port)?;
    listener.request(context)?.accept(&server.ep, &[])?;
    outcome(context, end, &server, Attempt::Succeeds)
}

/// Connects to an address. The device may learn of the address a little later than the network.
fn calls(context: &Context, end: &End, address: IpAddr, port: u64) -> Result<()> {
    let patience = Some(context.patience());
    context.until("the device has the address", || {
        match end.ep.connect(address, port, patience, &[]) {
            Err(Error::Dat(error)) if error.kind() == Type::INVALID_ADDRESS => Ok(false),
            other => other.map(|()| true).map_err(Into::into),
        }
    })
}

/// Dequeues completions until the connection has ended.
fn winds_up(context: &Context, end: &End) -> Result<()> {
    context.until("DISCONNECTED", || {
        while end.recv.dequeue().is_ok() {}
        Ok(end.ep.status()?.state == EpState::Disconnected)
    })?;
    connection_over(&context.next(&end.connect)?)
}

/// Opens the ready gate.
fn opens(context: &Context, stage: &Stage) -> Result<()> {
    stage.end.ep.ready()?;
    connection(&context.next(&stage.end.connect)?, ConnectionEvent::Established)
}

/// Completes the operation in progress.
fn goes_on(context: &Context, stage: &mut Stage, phase: Phase, attempt: Attempt) -> Result<()> {
    match phase {
        Phase::Unconnected(setup) => {
            complete(stage, setup)?;
            connects(context, &stage.end)
        }
        Phase::Reserved(setup) => {
            complete(stage, setup)?;
            let (requests, port) = (held::<Evd>(stage)?, held::<Rsp>(stage)?.query()?.conn_qual);
            let caller = End::new(&context.open()?, Shape::default())?;
            calls(context, &caller, stage.host.address, port)?;
            let Event::ConnectionRequest { mut cr, .. } = context.next(requests)? else {
                bail!("there is no request");
            };
            cr.accept(None, &[])?;
            outcome(context, &caller, &stage.end, Attempt::Succeeds)
        }
        Phase::Passive(setup) | Phase::Tentative(setup) => {
            complete(stage, setup)?;
            let mut cr = stage.request.take().context("there is no request")?;
            cr.accept(None, &[])?;
            outcome(context, held(stage)?, &stage.end, attempt)
        }
        Phase::Connecting(_) => {
            let listener = held::<Listener>(stage)?;
            let server = End::new(held(stage)?, Shape::default())?;
            listener.request(context)?.accept(&server.ep, &[])?;
            outcome(context, &stage.end, &server, attempt)
        }
        Phase::Accepting(_) => {
            stage.end.ep.disconnect(Close::Abrupt)?;
            winds_up(context, &stage.end)
        }
        Phase::Gated(_) => {
            opens(context, stage)?;
            goes_on(context, stage, Phase::Connected(Paths::Plain), attempt)
        }
        Phase::GatedEnded(_) => {
            opens(context, stage)?;
            winds_up(context, &stage.end)
        }
        Phase::Connected(_) => {
            stage.end.send(64, 64, 2)?;
            let Event::Dto(dto) = next_within(context, &stage.end.request, MAX_RECOVERY_TIME)?
            else {
                bail!("there is no completion");
            };
            if dto.status == DtoStatus::Success {
                stage.end.ep.disconnect(Close::Abrupt)?;
            }
            winds_up(context, &stage.end)
        }
        Phase::Draining => {
            held::<End>(stage)?.receive(0, 64, 1)?;
            winds_up(context, &stage.end)
        }
        Phase::Flushing(_) => winds_up(context, &stage.end),
        Phase::Disconnected => {
            stage.end.ep.reset()?;
            while stage.end.recv.dequeue().is_ok() {}
            connects(context, &stage.end)
        }
        Phase::Freed => bail!("freed"),
    }
}

/// Checks one state while the network is lost.
fn check(
    context: &Context,
    row: &Row,
    attempt: Attempt,
    happens: &dyn Fn() -> Result<()>,
) -> Result<()> {
    let mut stage = (row.way)(context)?;
    let stays = may_post_recv(row.phase).is_ok() && !flushes_posts(row.phase);
    let receives = if stays { RECEIVES } else { 0 };
    (FIRST_COOKIE..FIRST_COOKIE + receives)
        .try_for_each(|cookie| stage.end.receive(0, 64, cookie))?;
    let before = stage.end.ep.status()?.recv_outstanding;
    happens()?;
    let now = phase_now(context, &stage, row.phase)?;
    if now != row.phase {
        println!("{}: now {now:?}", row.name);
        if matches!(now, Phase::GatedEnded(_)) {
            goes_on(context, &mut stage, now, attempt)?;
        }
        // Soft-RoCE's own QP for connection management may have failed to send the disconnect.
        stage.end.ep.reset()?;
    } else {
        if receives > 0 {
            same("receives", stage.end.ep.status()?.recv_outstanding, before)?;
        }
        goes_on(context, &mut stage, now, attempt)?;
    }
    drop(stage);
    no_objects_left(context.settings.scale)
}

/// Checks each state while each host loses its network. Each check begins with new devices, see
/// `address_loss`.
fn each(context: &Context, attempt: Attempt, happens: impl Fn(&Host) -> Result<()>) -> Result<()> {
    two_hosts(context)?;
    let guard = DeviceGuard::new(context)?;
    let hurried = context.settings.effort < 1.0;
    let mut checked = 0;
    let hosts = context.hosts().into_iter().enumerate();
    for ((number, host), (index, row)) in
        hosts.flat_map(|host| ROWS.iter().enumerate().map(move |row| (host, row)))
    {
        // A short run checks each state with one of the hosts.
        if hurried && index % 2 != number {
            continue;
        }
        if let Some(why) = no_way(context, row.phase) {
            println!("{} is left out: {why}", row.name);
            continue;
        }
        renew(&guard)?;
        let who = &host.netdev;
        check(context, row, attempt, &|| happens(host))
            .with_context(|| format!("{who} in {}", row.name))?;
        checked += 1;
    }
    ensure!(checked >= ROWS.len() - 2, "{checked} states were checked");
    renew(&guard)?;
    Pair::new(context, Shape::default()).context("connecting with new devices").map(drop)
}

fn link_down(context: &Context) -> Result<()> {
    each(context, Attempt::Succeeds, |host| {
        let unplugged = LinkDown::new(host)?;
        std::thread::sleep(LOSS_TIME);
        drop(unplugged);
        back(context)
    })
}

fn address_removed(context: &Context) -> Result<()> {
    context.addresses_may_go()?;
    each(context, Attempt::MayFail, |host| {
        let gone = RemovedAddress::new(host)?;
        std::thread::sleep(LOSS_TIME);
        drop(gone);
        back(context)
    })
}

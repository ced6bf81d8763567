// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Removes the RDMA device of an endpoint, in each of its states.
//!
//! The module's own model predicts the events. Only CONNECTED_MULTI_PATH is missing: no device has
//! several paths.

use super::device_removal::{all_calls_fail, catastrophic, device_gone, works_again};
use super::ep_stage::{self, Stage, Way};
use super::tests;
use crate::context::Context;
use crate::end::End;
use crate::expect::same;
use crate::harness::skip;
use crate::machine::{no_objects_left, DeviceGuard};
use crate::rust::model::ep::{
    flushes_posts, may_free, may_post_recv, may_post_request, step, AcceptFrom, Call, Close,
    Configuration, ConnectionEvent as ModelEvent, FinalEvent, GatedSide, Input, Network, Paths,
    Phase, Progress,
};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{ConnectionEvent, DtoOperation, DtoStatus, Error, Evd, Event, Transport};
use std::time::Duration;

tests! {
    unconnected, 120, "A device deleted under an UNCONNECTED endpoint returns its receives";
    unconfigured, 120, "A device deleted under an UNCONFIGURED_UNCONNECTED endpoint leaves it as it was";
    reserved, 120, "A device deleted under a RESERVED endpoint returns its receives";
    unconfigured_reserved, 120, "A device deleted under an UNCONFIGURED_RESERVED endpoint ends the reservation";
    passive, 120, "A device deleted under a PASSIVE_CONNECTION_PENDING endpoint rejects the caller";
    unconfigured_passive, 120, "A device deleted under an UNCONFIGURED_PASSIVE endpoint rejects the caller";
    tentative, 120, "A device deleted under a TENTATIVE_CONNECTION_PENDING endpoint rejects the caller";
    unconfigured_tentative, 120, "A device deleted under an UNCONFIGURED_TENTATIVE endpoint rejects the caller";
    connecting, 120, "A device deleted under an ACTIVE_CONNECTION_PENDING endpoint ends the attempt";
    #[Hosts]
    accepting, 120, "A device deleted under a COMPLETION_PENDING endpoint ends the attempt";
    #[Hosts]
    gated_active, 120, "A device deleted under an ACTIVE_CONNECTION_PENDING endpoint with a closed ready gate opens the gate";
    #[Hosts]
    gated_passive, 120, "A device deleted under a COMPLETION_PENDING endpoint with a closed ready gate opens the gate";
    #[Hosts]
    gated_ended, 120, "A device deleted under a DISCONNECT_PENDING endpoint with a closed ready gate opens the gate";
    #[Hosts]
    connected, 120, "A device deleted under a CONNECTED endpoint of the active side breaks the connection";
    #[Hosts]
    connected_passive, 120, "A device deleted under a CONNECTED endpoint of the passive side breaks the connection";
    #[Hosts]
    single_path, 120, "A device deleted under a CONNECTED_SINGLE_PATH endpoint breaks the connection";
    draining, 120, "A device deleted under a DISCONNECT_PENDING endpoint breaks the connection while requests finish";
    flushing, 120, "A device deleted under a DISCONNECT_PENDING endpoint ends the flush of its receives";
    #[Hosts]
    disconnected, 120, "A device deleted under a DISCONNECTED endpoint leaves it as it was";
}

/// First cookie of DTOs that are posted here. A stage's own are lower.
const FIRST_COOKIE: u64 = 100;
const RECEIVES: u64 = 4;
/// How long no further event may arrive (times the scale).
const QUIET_TIME: Duration = Duration::from_millis(20);

/// Returns the phase after these inputs, and the events on the way.
pub fn follow(phase: Phase, inputs: &[Input]) -> (Phase, Vec<ModelEvent>) {
    let (mut phase, mut notices) = (phase, Vec::new());
    for input in inputs {
        // Inputs from the network and the device are never errors.
        if let Ok((next, effects)) = step(phase, *input) {
            phase = next;
            notices.extend(effects.event);
        }
    }
    (phase, notices)
}

/// Returns the possible results of a removal. A peer on the same device may be removed a little
/// earlier.
fn due(phase: Phase, peer_goes: bool) -> Vec<(Phase, Vec<ModelEvent>)> {
    // The service point of a reserved endpoint is removed first.
    let (phase, _) = match phase {
        Phase::Reserved(_) => follow(phase, &[Call::Release.into()]),
        _ => (phase, Vec::new()),
    };
    let removed =
        [Network::DeviceRemoved.into(), Progress::RequestsIdle.into(), Progress::Idle.into()];
    let after_peer = [
        Network::PeerDisconnected.into(),
        Network::DeviceRemoved.into(),
        Progress::RequestsIdle.into(),
        Progress::Idle.into(),
    ];
    let mut due = vec![follow(phase, &removed)];
    if peer_goes {
        due.push(follow(phase, &after_peer));
    }
    due
}

/// Counts of DTOs that were posted on an endpoint.
struct Posted {
    receives: u64,
    requests: u64,
}

fn post(stage: &Stage, phase: Phase) -> Result<Posted> {
    // A DTO that is flushed at once is not outstanding when the device goes.
    if flushes_posts(phase) {
        return Ok(Posted { receives: 0, requests: 0 });
    }
    let receives = if may_post_recv(phase).is_ok() { RECEIVES } else { 0 };
    (FIRST_COOKIE..FIRST_COOKIE + receives)
        .try_for_each(|cookie| stage.end.receive(0, 64, cookie))?;
    // The peer takes one message. The others wait, if the transport allows it.
    let waits = stage.end.ia.query()?.transport != Transport::IWarp;
    let requests = match may_post_request(phase) {
        Ok(()) if waits => 3,
        Ok(()) => 1,
        Err(_) => 0,
    };
    (FIRST_COOKIE..FIRST_COOKIE + requests).try_for_each(|cookie| stage.end.send(0, 64, cookie))?;
    Ok(Posted { receives, requests })
}

/// Returns the next event. An EVD of a removed device cannot be waited on.
fn next(context: &Context, evd: &Evd) -> Result<Event> {
    let mut found = None;
    context.until("an event is queued", || {
        match evd.dequeue() {
            Ok((event, _)) => found = Some(event),
            Err(error) if error.is_empty() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(found.is_some())
    })?;
    found.context("there is no event")
}

/// Returns the DTOs that an EVD has events of: each at most once, in the order of the posts.
fn completed(context: &Context, evd: &Evd, receives: bool) -> Result<Vec<u64>> {
    let mut cookies = Vec::new();
    loop {
        let dto = match evd.dequeue() {
            Ok((Event::Dto(dto), _)) => dto,
            Ok((other, _)) => bail!("unexpected: {other}"),
            Err(error) if error.is_empty() => break,
            Err(error) => return Err(error.into()),
        };
        // Over TCP a request in progress fails when the device closes the connection.
        let under_way = context.client.is_iwarp() && dto.status == DtoStatus::LocalEp;
        let ended = under_way || [DtoStatus::Success, DtoStatus::Flushed].contains(&dto.status);
        ensure!(ended, "{} of a {}", dto.status, dto.operation);
        same("a receive", dto.operation == DtoOperation::Receive, receives)?;
        cookies.push(dto.cookie);
    }
    ensure!(cookies.is_sorted_by(|one, next| one < next), "out of order or twice: {cookies:?}");
    Ok(cookies)
}

/// Checks that one of the possible sequences of events arrives, and no further event.
fn expect_events(
    context: &Context,
    stage: &Stage,
    due: &[(Phase, Vec<ModelEvent>)],
    posted: &Posted,
) -> Result<()> {
    let end = &stage.end;
    let mut events = Vec::new();
    let most = due.iter().map(|(_, notices)| notices.len()).max().unwrap_or(0);
    for _ in 0..most {
        match next(context, &end.connect)? {
            Event::Connection { event, ep, .. } if ep == end.ep.handle() => {
                events.push(event.number())
            }
            other => bail!("expected a connection event, got {other}"),
        }
    }
    // The last connection event follows all DTO events. Without one they arrive at any time.
    if most == 0 {
        context.until("no DTO is outstanding", || {
            let status = end.ep.status()?;
            Ok(status.recv_outstanding + status.request_outstanding == 0)
        })?;
    }
    let (receives, requests) =
        (completed(context, &end.recv, true)?, completed(context, &end.request, false)?);
    let numbers = |notices: &[ModelEvent]| -> Vec<_> {
        notices.iter().map(|notice| notice.number()).collect()
    };
    ensure!(
        due.iter().any(|(_, notices)| numbers(notices) == events),
        "expected one of {due:?}, got {events:x?}"
    );
    for (cookies, posted) in [(receives, posted.receives), (requests, posted.requests)] {
        let ours: Vec<_> = cookies.into_iter().filter(|cookie| *cookie >= FIRST_COOKIE).collect();
        same("completed DTOs", ours, (FIRST_COOKIE..FIRST_COOKIE + posted).collect())?;
    }
    std::thread::sleep(context.scaled(QUIET_TIME));
    for evd in [&end.connect, &end.recv, &end.request] {
        match evd.dequeue() {
            Err(error) if error.is_empty() => {}
            Err(error) => return Err(error.into()),
            Ok((event, _)) => bail!("{event} after the last expected event"),
        }
    }
    Ok(())
}

/// Checks that each peer of the endpoint gets the end of its connection or attempt.
fn expect_end_at_peers(context: &Context, stage: &Stage) -> Result<()> {
    if context.link_is_spoilt() {
        // A removed device sends the last message of an id once, and it may get lost.
        return Ok(());
    }
    for peer in stage.hold.iter().filter_map(|held| held.downcast_ref::<End>()) {
        loop {
            match next(context, &peer.connect).context("event of the peer")? {
                Event::Connection { event: ConnectionEvent::Established, .. } => {}
                Event::Connection { .. } => break,
                other => bail!("the peer got {other}"),
            }
        }
    }
    Ok(())
}

fn code<T>(outcome: &Result<T, Error>) -> Result<u32> {
    match outcome {
        Ok(_) => Ok(0),
        Err(Error::Dat(error)) => Ok(error.code),
        Err(other) => bail!("{other}"),
    }
}

/// Checks the answer of every call: as the model predicts, or that the device is removed.
fn answers(context: &Context, stage: &mut Stage, phase: Phase) -> Result<()> {
    let state = stage.state()?;
    same("state", state.number(), phase.state().number())?;
    same("state in the status", stage.end.ep.status()?.state, state)?;
    all_calls_fail(context, &stage.end)?;
    let ep = &stage.end.ep;
    let model = |outcome: Result<(), crate::rust::model::code::DatError>| {
        outcome.map_or_else(|error| error.code(&[]), |()| 0)
    };
    for (close, how) in
        [(Close::Abrupt, libkdapl::Close::Abrupt), (Close::Graceful, libkdapl::Close::Graceful)]
    {
        let should = model(step(phase, Call::Disconnect(close).into()).map(drop));
        same("a disconnect", code(&ep.disconnect(how))?, should)?;
    }
    // A reset that needs a new QP fails: no device can create it.
    let makes_qp = step(phase, Call::Reset.into()).is_ok_and(|(_, effects)| effects.qp_reset);
    if makes_qp {
        device_gone(ep.reset()).context("a reset")?;
    } else {
        let should = model(step(phase, Call::Reset.into()).map(drop));
        same("a reset", code(&ep.reset())?, should)?;
    }
    let modify = ep.modify(stage.whole());
    match model(step(phase, Call::Configured.into()).map(drop)) {
        0 => device_gone(modify).context("a modify")?,
        should => same("a modify", code(&modify)?, should)?,
    }
    if let Some(cr) = &mut stage.request {
        cr.query()?;
        device_gone(cr.accept(None, &[])).context("an accept")?;
    }
    same("state after all calls", stage.state()?, state)?;
    let free = code(&stage.end.ep.free())?;
    same("the free", free, model(may_free(phase)))?;
    if let Some(cr) = &mut stage.request {
        cr.reject(&[])?;
        // The request was the last holder of its endpoint. The provider's own endpoint is freed
        // with it.
        let free = stage.end.ep.free();
        same("the free after the reject", free.is_ok(), matches!(phase, Phase::Passive(_)))?;
    }
    Ok(())
}

/// Checks one state.
fn check(context: &Context, way: Way, phase: Phase) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let mut stage = way(context)?;
    same("state of the row", stage.state()?.number(), phase.state().number())?;
    let posted = post(&stage, phase)?;
    guard.delete_of(&stage.host)?;
    catastrophic(context, &stage.end.ia)?;
    let due = due(phase, context.hosts().len() == 1);
    expect_events(context, &stage, &due, &posted)?;
    expect_end_at_peers(context, &stage)?;
    // Both possible sequences of events lead to the same phase.
    let end = due.first().map_or(phase, |(end, _)| *end);
    answers(context, &mut stage, end)?;
    guard.add()?;
    // The holders of the endpoint's state no longer block a connect. The endpoint's IA still
    // exists.
    stage.hold.clear();
    works_again(context)?;
    drop(stage);
    no_objects_left(context.settings.scale)?;
    works_again(context)
}

fn unconnected(context: &Context) -> Result<()> {
    check(context, ep_stage::unconnected, Phase::Unconnected(Configuration::Complete))
}

fn unconfigured(context: &Context) -> Result<()> {
    check(context, ep_stage::unconfigured, Phase::Unconnected(Configuration::Incomplete))
}

fn reserved(context: &Context) -> Result<()> {
    check(context, ep_stage::reserved, Phase::Reserved(Configuration::Complete))
}

fn unconfigured_reserved(context: &Context) -> Result<()> {
    check(context, ep_stage::unconfigured_reserved, Phase::Reserved(Configuration::Incomplete))
}

fn passive(context: &Context) -> Result<()> {
    check(context, ep_stage::passive, Phase::Passive(Configuration::Complete))
}

fn unconfigured_passive(context: &Context) -> Result<()> {
    check(context, ep_stage::unconfigured_passive, Phase::Passive(Configuration::Incomplete))
}

fn tentative(context: &Context) -> Result<()> {
    check(context, ep_stage::tentative, Phase::Tentative(Configuration::Complete))
}

fn unconfigured_tentative(context: &Context) -> Result<()> {
    check(context, ep_stage::unconfigured_tentative, Phase::Tentative(Configuration::Incomplete))
}

fn connecting(context: &Context) -> Result<()> {
    check(context, ep_stage::connecting, Phase::Connecting(Paths::Plain))
}

fn accepting(context: &Context) -> Result<()> {
    if context.client.device == context.server.device {
        return skip("the plain program that does not confirm keeps the device open");
    }
    check(context, ep_stage::accepting, Phase::Accepting(AcceptFrom::Unconnected))
}

fn gated_active(context: &Context) -> Result<()> {
    let phase = Phase::Gated(GatedSide::Active(Paths::Plain));
    check(context, ep_stage::gated_active, phase)
}

fn gated_passive(context: &Context) -> Result<()> {
    check(context, ep_stage::gated_passive, Phase::Gated(GatedSide::Passive))
}

fn gated_ended(context: &Context) -> Result<()> {
    check(context, ep_stage::gated_ended, Phase::GatedEnded(FinalEvent::Disconnected))
}

fn connected(context: &Context) -> Result<()> {
    check(context, ep_stage::connected, Phase::Connected(Paths::Plain))
}

fn connected_passive(context: &Context) -> Result<()> {
    check(context, ep_stage::connected_passive, Phase::Connected(Paths::Plain))
}

fn single_path(context: &Context) -> Result<()> {
    check(context, ep_stage::single_path, Phase::Connected(Paths::Single))
}

fn draining(context: &Context) -> Result<()> {
    check(context, ep_stage::draining, Phase::Draining)
}

fn flushing(context: &Context) -> Result<()> {
    check(context, ep_stage::flushing, Phase::Flushing(FinalEvent::Disconnected))
}

fn disconnected(context: &Context) -> Result<()> {
    check(context, ep_stage::disconnected, Phase::Disconnected)
}

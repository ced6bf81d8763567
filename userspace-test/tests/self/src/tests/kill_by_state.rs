// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Kills the process that owns an endpoint, in each state of the endpoint.

use super::device_removal::works_again;
use super::ep_stage::{no_way, ROWS};
use super::psp::Side;
use super::tests;
use crate::context::Context;
use crate::harness::skip;
use crate::machine::no_objects_left;
use crate::peer::{Peer, Step};
use crate::rust::model::ep::Phase;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{ConnectionEvent, EpCreator, EpState, Event, PspOptions};
use std::time::Duration;

tests! {
    #[Hosts]
    each_state, 300, "A process killed in each state of an endpoint leaves nothing behind";
    #[Hosts]
    accepting, 60, "A process killed in COMPLETION_PENDING leaves nothing behind";
    draining, 60, "A process killed in DISCONNECT_PENDING, while requests finish, leaves nothing behind";
    caller_gets_event, 120, "A caller gets an event when the process that holds its request is killed";
}

/// Reports the step, and waits to be killed.
fn stay(step: Step) -> Result<()> {
    println!("{step:?}");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Runs as the other process: brings an endpoint to a state, and waits.
pub fn stage(context: &Context, index: u64) -> Result<()> {
    let row = ROWS.get(index as usize).context("the state is unknown")?;
    let _stage = (row.way)(context)?;
    stay(Step::Created)
}

/// Returns whether some transports have no way to this phase.
fn somewhere_only(phase: Phase) -> bool {
    matches!(phase, Phase::Accepting(_) | Phase::Draining)
}

/// Kills the process in each state whose phase is one of these.
fn kill_in(context: &Context, which: impl Fn(Phase) -> bool) -> Result<()> {
    for (index, row) in ROWS.iter().enumerate().filter(|(_, row)| which(row.phase)) {
        let name = row.name;
        if let Some(why) = no_way(context, row.phase) {
            return skip(format!("{name} cannot be reached: {why}"));
        }
        let mut peer = Peer::play(context, &format!("Stage {index} 0"))?;
        peer.reaches(Step::Created).with_context(|| format!("towards {name}"))?;
        peer.kill()?;
        no_objects_left(context.settings.scale).with_context(|| format!("killed in {name}"))?;
        works_again(context)
            .with_context(|| format!("connecting after a process was killed in {name}"))?;
    }
    Ok(())
}

fn each_state(context: &Context) -> Result<()> {
    kill_in(context, |phase| !somewhere_only(phase))
}

fn accepting(context: &Context) -> Result<()> {
    kill_in(context, |phase| matches!(phase, Phase::Accepting(_)))
}

fn draining(context: &Context) -> Result<()> {
    kill_in(context, |phase| phase == Phase::Draining)
}

/// States of the called endpoint.
const CALLED_EP_STATES: [EpState; 4] = [
    EpState::PassiveConnectionPending,
    EpState::Reserved,
    EpState::UnconfiguredTentative,
    EpState::TentativeConnectionPending,
];

/// Runs as the other process: gets a request for an endpoint in that state, and waits. In RESERVED
/// it has not dequeued the request.
pub fn host(context: &Context, port: u64, index: i64) -> Result<()> {
    let state = *CALLED_EP_STATES.get(index as usize).context("the state is unknown")?;
    let side = Side::server(context)?;
    if matches!(state, EpState::Reserved | EpState::PassiveConnectionPending) {
        let _rsp = side.ia.create_rsp(port, &side.requests, Some(&side.end.ep))?;
        if state == EpState::Reserved {
            return stay(Step::Opened);
        }
        println!("{:?}", Step::Opened);
        let _request = side.request(context)?;
        ensure!(side.state()? == state, "the state is {}", side.state()?);
        return stay(Step::Connecting);
    }
    let endpoints = EpCreator::Provider;
    let options = PspOptions { conn_qual: Some(port), endpoints, ..Default::default() };
    let _psp = side.ia.create_psp_with(&side.requests, &options)?;
    println!("{:?}", Step::Opened);
    let (mut cr, ..) = side.request(context)?;
    let ep = cr.provided_ep()?.context("the request has no endpoint")?;
    if state == EpState::TentativeConnectionPending {
        side.configure(&ep)?;
    }
    ensure!(ep.status()?.state == state, "the state is {}", ep.status()?.state);
    stay(Step::Connecting)
}

fn caller_gets_event(context: &Context) -> Result<()> {
    for (index, state) in CALLED_EP_STATES.iter().enumerate() {
        let client = Side::client(context)?;
        let port = context.port();
        let mut peer = Peer::play(context, &format!("Host {port} {index}"))?;
        peer.reaches(Step::Opened)?;
        client.connect(context, &client.end.ep, port, b"call")?;
        if *state != EpState::Reserved {
            peer.reaches(Step::Connecting)?;
        }
        peer.kill()?;
        // The process has not answered. The module has.
        match context.next(&client.end.connect)? {
            Event::Connection {
                event: ConnectionEvent::NonPeerRejected | ConnectionEvent::PeerRejected,
                ..
            } => {}
            // siw had not seen the caller when its listener went. The caller's attempt ends after
            // ten seconds.
            Event::Connection { event: ConnectionEvent::Unreachable, .. }
                if context.client.is_siw() => {}
            other => {
                bail!("the process with the request died in {state}, but the event is {other}")
            }
        }
        drop(client);
        no_objects_left(context.settings.scale).with_context(|| format!("killed in {state}"))?;
    }
    Ok(())
}

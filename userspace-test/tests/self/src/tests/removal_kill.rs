// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The process that owns an endpoint dies, in each state of the endpoint.

use super::device::works_again;
use super::ep_stage::{no_way, ROWS};
use super::service::Side;
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
    in_each_state, 300, "A process killed in each state of an endpoint leaves nothing behind";
    #[Hosts]
    in_accepting, 60, "A process killed in COMPLETION_PENDING leaves nothing behind";
    in_draining, 60, "A process killed in DISCONNECT_PENDING, while requests finish, leaves nothing behind";
    caller_told, 120, "A caller is told when the process dies that has its request";
}

/// Says so, and stays until killed.
fn stay(step: Step) -> Result<()> {
    println!("{step:?}");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// The other process: brings an endpoint to a state, and stays.
pub fn stage(context: &Context, index: u64) -> Result<()> {
    let row = ROWS.get(index as usize).context("no such state")?;
    let _stage = (row.way)(context)?;
    stay(Step::Created)
}

/// To these phases there is not everywhere a way.
fn somewhere_only(phase: Phase) -> bool {
    matches!(phase, Phase::Accepting(_) | Phase::Draining)
}

/// In each state whose phase is one of these.
fn kill_in(context: &Context, which: impl Fn(Phase) -> bool) -> Result<()> {
    for (index, row) in ROWS.iter().enumerate().filter(|(_, row)| which(row.phase)) {
        let name = row.name;
        if let Some(why) = no_way(context, row.phase) {
            return skip(format!("no way to {name}: {why}"));
        }
        let mut peer = Peer::play(context, &format!("Stage {index} 0"))?;
        peer.reaches(Step::Created).with_context(|| format!("towards {name}"))?;
        peer.kill()?;
        no_objects_left(context.settings.scale).with_context(|| format!("killed in {name}"))?;
        works_again(context).with_context(|| format!("after one was killed in {name}"))?;
    }
    Ok(())
}

fn in_each_state(context: &Context) -> Result<()> {
    kill_in(context, |phase| !somewhere_only(phase))
}

fn in_accepting(context: &Context) -> Result<()> {
    kill_in(context, |phase| matches!(phase, Phase::Accepting(_)))
}

fn in_draining(context: &Context) -> Result<()> {
    kill_in(context, |phase| phase == Phase::Draining)
}

/// What a caller meets.
const CALLED: [EpState; 4] = [
    EpState::PassiveConnectionPending,
    EpState::Reserved,
    EpState::UnconfiguredTentative,
    EpState::TentativeConnectionPending,
];

/// The other process: has a request, with an endpoint in that state, and stays. In RESERVED it has
/// not heard of the request.
pub fn host(context: &Context, port: u64, index: i64) -> Result<()> {
    let state = *CALLED.get(index as usize).context("no such state")?;
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
    let ep = cr.provided_ep()?.context("no endpoint came with the request")?;
    if state == EpState::TentativeConnectionPending {
        side.configure(&ep)?;
    }
    ensure!(ep.status()?.state == state, "the state is {}", ep.status()?.state);
    stay(Step::Connecting)
}

fn caller_told(context: &Context) -> Result<()> {
    for (index, state) in CALLED.iter().enumerate() {
        let client = Side::client(context)?;
        let port = context.port();
        let mut peer = Peer::play(context, &format!("Host {port} {index}"))?;
        peer.reaches(Step::Opened)?;
        client.connect(context, &client.end.ep, port, b"call")?;
        if *state != EpState::Reserved {
            peer.reaches(Step::Connecting)?;
        }
        peer.kill()?;
        // Nobody has answered: the module did.
        match context.next(&client.end.connect)? {
            Event::Connection {
                event: ConnectionEvent::NonPeerRejected | ConnectionEvent::PeerRejected,
                ..
            } => {}
            // Its listener went before siw had looked at the caller, who gives up after ten seconds.
            Event::Connection { event: ConnectionEvent::Unreachable, .. }
                if context.client.is_siw() => {}
            other => bail!("the process with the request died in {state}, and {other} came"),
        }
        drop(client);
        no_objects_left(context.settings.scale).with_context(|| format!("killed in {state}"))?;
    }
    Ok(())
}

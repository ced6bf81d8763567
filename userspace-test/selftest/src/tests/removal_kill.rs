// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The process that owns an endpoint dies, in each state of the endpoint.

use super::device::works_again;
use super::ep_stage::{self, Way};
use super::service::Side;
use super::tests;
use crate::context::Context;
use crate::machine::no_objects_left;
use crate::peer::{Peer, Step};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{ConnectionEvent, EpCreator, EpState, Event, PspOptions};
use std::time::Duration;

tests! {
    in_each_state, 300, "A process killed in each state of an endpoint leaves nothing behind";
    caller_told, 120, "A caller is told when the process dies that has its request";
}

const WAYS: [(&str, Way); 16] = [
    ("UNCONNECTED", ep_stage::unconnected),
    ("UNCONFIGURED_UNCONNECTED", ep_stage::unconfigured),
    ("RESERVED", ep_stage::reserved),
    ("UNCONFIGURED_RESERVED", ep_stage::unconfigured_reserved),
    ("PASSIVE_CONNECTION_PENDING", ep_stage::passive),
    ("UNCONFIGURED_PASSIVE", ep_stage::unconfigured_passive),
    ("TENTATIVE_CONNECTION_PENDING", ep_stage::tentative),
    ("UNCONFIGURED_TENTATIVE", ep_stage::unconfigured_tentative),
    ("ACTIVE_CONNECTION_PENDING", ep_stage::connecting),
    ("COMPLETION_PENDING", ep_stage::accepting),
    ("CONNECTED, active", ep_stage::connected),
    ("CONNECTED, passive", ep_stage::connected_passive),
    ("CONNECTED_SINGLE_PATH", ep_stage::single_path),
    ("DISCONNECT_PENDING, requests", ep_stage::draining),
    ("DISCONNECT_PENDING, receives", ep_stage::flushing),
    ("DISCONNECTED", ep_stage::disconnected),
];

/// Says so, and stays until killed.
fn stay(step: Step) -> Result<()> {
    println!("{step:?}");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// The other process: brings an endpoint to a state, and stays.
pub fn stage(context: &Context, index: u64) -> Result<()> {
    let (_, way) = WAYS.get(index as usize).context("no such state")?;
    let _stage = way(context)?;
    stay(Step::Created)
}

fn in_each_state(context: &Context) -> Result<()> {
    let iwarp = context.client.is_iwarp();
    for (index, (name, _)) in WAYS.iter().enumerate() {
        // There a message that meets no receive ends the connection, and nobody confirms an accept.
        if iwarp && (name.ends_with("requests") || *name == "COMPLETION_PENDING") {
            continue;
        }
        let mut peer = Peer::play(context, &format!("Stage {index} 0"))?;
        peer.reaches(Step::Created).with_context(|| format!("towards {name}"))?;
        peer.kill()?;
        no_objects_left(context.settings.scale).with_context(|| format!("killed in {name}"))?;
        works_again(context).with_context(|| format!("after one was killed in {name}"))?;
    }
    Ok(())
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
    Side::may_listen(context)?;
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
            other => bail!("the process with the request died in {state}, and {other} came"),
        }
        drop(client);
        no_objects_left(context.settings.scale).with_context(|| format!("killed in {state}"))?;
    }
    Ok(())
}

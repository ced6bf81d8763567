// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Table of all calls in all states of an endpoint.
//!
//! Only CONNECTED_MULTI_PATH is missing: no device has several paths.

mod calls;

use super::ep_stage::{self, Stage, Way};
use super::tests;
use crate::context::Context;
use crate::expect::{refused_as, same};
use anyhow::{ensure, Context as _, Result};
use calls::{carry_out, Call, CALLS};
use libkdapl::EpState::{
    self, ActiveConnectionPending, CompletionPending, Connected, DisconnectPending, Disconnected,
    PassiveConnectionPending, Reserved, TentativeConnectionPending, UnconfiguredReserved,
    UnconfiguredUnconnected, Unconnected,
};
use libkdapl::{Error, Subtype, Type};
use Want::{Becomes, Gone, Stays};

tests! {
    unconnected, 120, "The table of calls holds in UNCONNECTED";
    unconfigured, 60, "The table of calls holds in UNCONFIGURED_UNCONNECTED";
    reserved, 60, "The table of calls holds in RESERVED";
    unconfigured_reserved, 60, "The table of calls holds in UNCONFIGURED_RESERVED";
    passive, 60, "The table of calls holds in PASSIVE_CONNECTION_PENDING";
    unconfigured_passive, 60, "The table of calls holds in UNCONFIGURED_PASSIVE";
    tentative, 60, "The table of calls holds in TENTATIVE_CONNECTION_PENDING";
    unconfigured_tentative, 60, "The table of calls holds in UNCONFIGURED_TENTATIVE";
    connecting, 240, "The table of calls holds in ACTIVE_CONNECTION_PENDING";
    #[Hosts]
    accepting, 120, "The table of calls holds in COMPLETION_PENDING";
    #[Hosts]
    gated_active, 60, "The table of calls holds in ACTIVE_CONNECTION_PENDING with a closed ready gate";
    #[Hosts]
    gated_passive, 60, "The table of calls holds in COMPLETION_PENDING with a closed ready gate";
    #[Hosts]
    gated_ended, 60, "The table of calls holds in DISCONNECT_PENDING with a closed ready gate";
    #[Hosts]
    connected, 60, "The table of calls holds in CONNECTED, on the active side";
    #[Hosts]
    connected_passive, 60, "The table of calls holds in CONNECTED, on the passive side";
    #[Hosts]
    single_path, 60, "The table of calls holds in CONNECTED_SINGLE_PATH";
    draining, 60, "The table of calls holds in DISCONNECT_PENDING, while requests finish";
    flushing, 60, "The table of calls holds in DISCONNECT_PENDING, while receives are flushed";
    #[Hosts]
    disconnected, 60, "The table of calls holds in DISCONNECTED";
}

/// Expected result of a call.
#[derive(Clone, Copy, Debug)]
enum Want {
    /// Success, and the state is unchanged.
    Stays,
    /// Success, and one of these states follows.
    Becomes(&'static [EpState]),
    /// Success, and the endpoint no longer exists.
    Gone,
}

/// State after an accept. The peer may have confirmed already.
const ACCEPTED: Want = Becomes(&[CompletionPending, Connected]);
/// State after a connect without an answer.
const CONNECTING: Want = Becomes(&[ActiveConnectionPending]);
/// State after a disconnect. It may be complete at once.
const DISCONNECTING: Want = Becomes(&[DisconnectPending, Disconnected]);

/// Checks all calls in one state, or a sample: those in `rows` by their result, the others are
/// refused as `name`.
fn check(context: &Context, way: Way, name: Subtype, rows: &[(Call, Want)]) -> Result<()> {
    for call in context.sample(CALLS) {
        let mut stage = way(context)?;
        let before = stage.state()?;
        let want = rows.iter().find(|(row, _)| row == call).map(|(_, want)| *want);
        let Some(outcome) = carry_out(context, &mut stage, *call)? else {
            continue;
        };
        judge(&stage, before, outcome, want, name)
            .with_context(|| format!("{call:?} in {before}, expected {want:?}"))?;
    }
    Ok(())
}

fn judge(
    stage: &Stage,
    before: EpState,
    outcome: Result<(), Error>,
    want: Option<Want>,
    name: Subtype,
) -> Result<()> {
    let Some(want) = want else {
        refused_as(outcome, Type::INVALID_STATE, name)?;
        return same("state", stage.state()?, before);
    };
    outcome?;
    match want {
        Stays => same("state", stage.state()?, before),
        Becomes(states) => {
            let state = stage.state()?;
            ensure!(states.contains(&state), "the state is {state}");
            Ok(())
        }
        Gone => refused_as(stage.end.ep.query(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_EP),
    }
}

fn unconnected(context: &Context) -> Result<()> {
    let rows = [
        (Call::Connect, CONNECTING),
        (Call::DupConnect, CONNECTING),
        (Call::CommonConnect, CONNECTING),
        (Call::Accept, ACCEPTED),
        (Call::DisconnectAbrupt, Becomes(&[Disconnected])),
        (Call::DisconnectGraceful, Becomes(&[Disconnected])),
        (Call::Reset, Stays),
        (Call::Modify, Stays),
        (Call::PostRecv, Stays),
        (Call::RspCreate, Becomes(&[Reserved])),
        (Call::Free, Gone),
    ];
    check(context, ep_stage::unconnected, Subtype::INVALID_STATE_EP_UNCONNECTED, &rows)
}

fn unconfigured(context: &Context) -> Result<()> {
    let rows = [
        (Call::Reset, Stays),
        (Call::Modify, Becomes(&[Unconnected])),
        (Call::RspCreate, Becomes(&[UnconfiguredReserved])),
        (Call::Free, Gone),
    ];
    check(context, ep_stage::unconfigured, Subtype::INVALID_STATE_EP_UNCONFIGURED, &rows)
}

fn reserved(context: &Context) -> Result<()> {
    let rows = [(Call::Modify, Stays), (Call::PostRecv, Stays)];
    check(context, ep_stage::reserved, Subtype::INVALID_STATE_EP_RESERVED, &rows)
}

fn unconfigured_reserved(context: &Context) -> Result<()> {
    let rows = [(Call::Modify, Becomes(&[Reserved]))];
    let name = Subtype::INVALID_STATE_EP_UNCONFRESERVED;
    check(context, ep_stage::unconfigured_reserved, name, &rows)
}

fn passive(context: &Context) -> Result<()> {
    let rows = [
        (Call::Accept, ACCEPTED),
        (Call::Reject, Becomes(&[Unconnected])),
        (Call::Modify, Stays),
        (Call::PostRecv, Stays),
    ];
    check(context, ep_stage::passive, Subtype::INVALID_STATE_EP_PASSCONNPENDING, &rows)
}

fn unconfigured_passive(context: &Context) -> Result<()> {
    let rows = [
        (Call::Reject, Becomes(&[UnconfiguredUnconnected])),
        (Call::Modify, Becomes(&[PassiveConnectionPending])),
    ];
    let name = Subtype::INVALID_STATE_EP_UNCONFPASSIVE;
    check(context, ep_stage::unconfigured_passive, name, &rows)
}

fn tentative(context: &Context) -> Result<()> {
    let rows = [
        (Call::Accept, ACCEPTED),
        (Call::Reject, Gone),
        (Call::Modify, Stays),
        (Call::PostRecv, Stays),
    ];
    check(context, ep_stage::tentative, Subtype::INVALID_STATE_EP_TENTCONNPENDING, &rows)
}

fn unconfigured_tentative(context: &Context) -> Result<()> {
    let rows = [(Call::Reject, Gone), (Call::Modify, Becomes(&[TentativeConnectionPending]))];
    let name = Subtype::INVALID_STATE_EP_UNCONFTENTATIVE;
    check(context, ep_stage::unconfigured_tentative, name, &rows)
}

/// Calls on an endpoint that is connecting.
const CALLS_WHILE_CONNECTING: [(Call, Want); 5] = [
    (Call::Ready, Stays),
    (Call::DisconnectAbrupt, DISCONNECTING),
    (Call::DisconnectGraceful, DISCONNECTING),
    (Call::PostRecv, Stays),
    (Call::Free, Gone),
];

fn connecting(context: &Context) -> Result<()> {
    // siw waits ten seconds for the answer to a connect that was cancelled.
    check(
        context,
        ep_stage::connecting,
        Subtype::INVALID_STATE_EP_ACTCONNPENDING,
        &CALLS_WHILE_CONNECTING,
    )
}

fn accepting(context: &Context) -> Result<()> {
    check(
        context,
        ep_stage::accepting,
        Subtype::INVALID_STATE_EP_COMPLPENDING,
        &CALLS_WHILE_CONNECTING,
    )
}

/// Calls on an established connection whose ready gate is closed.
const CALLS_BEHIND_GATE: [(Call, Want); 5] = [
    (Call::Ready, Becomes(&[Connected])),
    (Call::DisconnectAbrupt, DISCONNECTING),
    (Call::DisconnectGraceful, DISCONNECTING),
    (Call::PostRecv, Stays),
    (Call::Free, Gone),
];

fn gated_active(context: &Context) -> Result<()> {
    let name = Subtype::INVALID_STATE_EP_ACTCONNPENDING;
    check(context, ep_stage::gated_active, name, &CALLS_BEHIND_GATE)
}

fn gated_passive(context: &Context) -> Result<()> {
    let name = Subtype::INVALID_STATE_EP_COMPLPENDING;
    check(context, ep_stage::gated_passive, name, &CALLS_BEHIND_GATE)
}

fn gated_ended(context: &Context) -> Result<()> {
    let rows = [
        (Call::Ready, DISCONNECTING),
        (Call::DisconnectAbrupt, DISCONNECTING),
        (Call::DisconnectGraceful, DISCONNECTING),
        (Call::Free, Gone),
    ];
    check(context, ep_stage::gated_ended, Subtype::INVALID_STATE_EP_DISCPENDING, &rows)
}

/// Posts of all operations, in a state that accepts them.
const POSTS: [(Call, Want); 7] = [
    (Call::PostRecv, Stays),
    (Call::PostSend, Stays),
    (Call::PostWrite, Stays),
    (Call::PostRead, Stays),
    (Call::PostWriteImmed, Stays),
    (Call::PostFetchAdd, Stays),
    (Call::PostCmpSwap, Stays),
];

/// Calls on a connected endpoint other than posts.
const CALLS_WHILE_CONNECTED: [(Call, Want); 5] = [
    (Call::Ready, Stays),
    (Call::DisconnectAbrupt, DISCONNECTING),
    (Call::DisconnectGraceful, DISCONNECTING),
    (Call::BeDuplicated, Stays),
    (Call::Free, Gone),
];

/// Checks all calls on a connected endpoint.
fn check_connected(context: &Context, way: Way) -> Result<()> {
    let rows = [&CALLS_WHILE_CONNECTED[..], &POSTS].concat();
    check(context, way, Subtype::INVALID_STATE_EP_CONNECTED, &rows)
}

fn connected(context: &Context) -> Result<()> {
    check_connected(context, ep_stage::connected)
}

fn connected_passive(context: &Context) -> Result<()> {
    check_connected(context, ep_stage::connected_passive)
}

fn single_path(context: &Context) -> Result<()> {
    check_connected(context, ep_stage::single_path)
}

fn draining(context: &Context) -> Result<()> {
    let rows = [
        (Call::DisconnectAbrupt, DISCONNECTING),
        (Call::DisconnectGraceful, Stays),
        (Call::PostRecv, Stays),
        (Call::Free, Gone),
    ];
    check(context, ep_stage::draining, Subtype::INVALID_STATE_EP_DISCPENDING, &rows)
}

fn flushing(context: &Context) -> Result<()> {
    let others =
        [(Call::DisconnectAbrupt, Stays), (Call::DisconnectGraceful, Stays), (Call::Free, Gone)];
    let rows = [&others[..], &POSTS].concat();
    check(context, ep_stage::flushing, Subtype::INVALID_STATE_EP_DISCPENDING, &rows)
}

fn disconnected(context: &Context) -> Result<()> {
    let others = [
        (Call::DisconnectAbrupt, Stays),
        (Call::DisconnectGraceful, Stays),
        (Call::Reset, Becomes(&[Unconnected])),
        (Call::Free, Gone),
    ];
    let rows = [&others[..], &POSTS].concat();
    check(context, ep_stage::disconnected, Subtype::INVALID_STATE_EP_DISCONNECTED, &rows)
}

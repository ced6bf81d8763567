// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transitions of the phases without a connection or an attempt to connect.
//!
//! A QP is a queue pair.

use super::{
    step::{
        without_effects,
        StepResult,
        Transition, //
    },
    AcceptFrom,
    Call,
    Close,
    Configuration,
    Effects,
    Network,
    Phase, //
};

/// Starts a call that requires that the Endpoint is configured.
fn begin(phase: Phase, configuration: Configuration, next: Transition) -> StepResult {
    match configuration {
        Configuration::Complete => Ok(next),
        Configuration::Incomplete => Err(phase.invalid_state_error()),
    }
}

/// Starts an accept, which requires that the Endpoint is configured.
fn accept(from: AcceptFrom, configuration: Configuration) -> StepResult {
    let accepting = without_effects(Phase::Accepting(from));
    begin(from.phase(configuration), configuration, accepting)
}

/// Calls in [`Phase::Unconnected`].
pub(super) fn unconnected(configuration: Configuration, call: Call) -> StepResult {
    let phase = Phase::Unconnected(configuration);
    match call {
        Call::Connect(paths) => {
            let next = (Phase::Connecting(paths), Effects::START_TIMER);
            begin(phase, configuration, next)
        }
        Call::Accept => accept(AcceptFrom::Unconnected, configuration),
        // Flushes the posted receives: there is no other way to get them back without a connection.
        // The manual page forbids the call in this state (DAT 1.2, dat_ep_disconnect). It is
        // allowed here for the reason above. No connection ends, so only the completions of the
        // receives are reported.
        Call::Disconnect(Close::Abrupt | Close::Graceful) => {
            begin(phase, configuration, (Phase::Disconnected, Effects::FLUSH))
        }
        Call::Free => Ok((Phase::Freed, Effects::GONE)),
        Call::Configured => Ok(without_effects(Phase::Unconnected(Configuration::Complete))),
        Call::Reserve => Ok(without_effects(Phase::Reserved(configuration))),
        Call::Reset | Call::Release => Ok(without_effects(phase)),
        Call::ConnectAborted | Call::AcceptAborted | Call::Ready | Call::Requested => {
            Err(phase.invalid_state_error())
        }
    }
}

/// Calls in [`Phase::Reserved`].
pub(super) fn reserved(configuration: Configuration, call: Call) -> StepResult {
    match call {
        Call::Configured => Ok(without_effects(Phase::Reserved(Configuration::Complete))),
        Call::Requested => Ok(without_effects(Phase::Passive(configuration))),
        Call::Release => Ok(without_effects(Phase::Unconnected(configuration))),
        Call::Connect(_)
        | Call::ConnectAborted
        | Call::Accept
        | Call::AcceptAborted
        | Call::Ready
        | Call::Disconnect(Close::Abrupt | Close::Graceful)
        | Call::Reset
        | Call::Free
        | Call::Reserve => Err(Phase::Reserved(configuration).invalid_state_error()),
    }
}

/// Calls in [`Phase::Passive`]. After a reject the Endpoint is unconnected again.
pub(super) fn passive(configuration: Configuration, call: Call) -> StepResult {
    let released = without_effects(Phase::Unconnected(configuration));
    requested(AcceptFrom::Passive, configuration, released, call)
}

/// Calls in [`Phase::Tentative`]. After a reject the Endpoint is freed, since the provider created
/// it.
pub(super) fn tentative(configuration: Configuration, call: Call) -> StepResult {
    let released = (Phase::Freed, Effects::GONE);
    requested(AcceptFrom::Tentative, configuration, released, call)
}

/// Calls for an Endpoint that a connection request holds, which becomes `released` with a reject.
fn requested(
    from: AcceptFrom,
    configuration: Configuration,
    released: Transition,
    call: Call,
) -> StepResult {
    match call {
        Call::Accept => accept(from, configuration),
        Call::Configured => Ok(without_effects(from.phase(Configuration::Complete))),
        Call::Release => Ok(released),
        Call::Connect(_)
        | Call::ConnectAborted
        | Call::AcceptAborted
        | Call::Ready
        | Call::Disconnect(Close::Abrupt | Close::Graceful)
        | Call::Reset
        | Call::Free
        | Call::Reserve
        | Call::Requested => Err(from.phase(configuration).invalid_state_error()),
    }
}

/// Reports of the network in any phase without a connection.
///
/// No connection ends with the loss of the QP, so there is no connection event. An Endpoint that is
/// not configured has no QP and stays in its phase.
pub(super) fn on_network(
    phase: Phase,
    configuration: Configuration,
    network: Network,
) -> Transition {
    let effects = match network {
        Network::Broken => Effects::LOST,
        Network::DeviceRemoved => Effects::GONE,
        Network::Established
        | Network::EstablishedGated
        | Network::PeerRejected
        | Network::NonPeerRejected
        | Network::Unreachable
        | Network::TimedOut
        | Network::AcceptFailed
        | Network::PeerDisconnected => return without_effects(phase),
    };
    match configuration {
        Configuration::Complete => (Phase::Disconnected, effects),
        Configuration::Incomplete => without_effects(phase),
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transitions of the phases before a connection.
//!
//! A QP is a queue pair.

use super::{
    step::{
        quietly,
        Outcome, //
    },
    Close,
    Effects,
    Input,
    Origin,
    Phase,
    Setup, //
};

/// Handles the loss of the QP before a connection existed.
///
/// No connection ends, so there is no connection event. An Endpoint that is not configured has no
/// QP and stays in its phase.
fn lost(phase: Phase, setup: Setup, effects: Effects) -> Outcome {
    match setup {
        Setup::Ready => Ok((Phase::Disconnected, effects)),
        Setup::Unconfigured => quietly(phase),
    }
}

/// Starts a connect or an accept, which requires that the Endpoint is configured.
fn begin(phase: Phase, setup: Setup, next: Phase, effects: Effects) -> Outcome {
    match setup {
        Setup::Ready => Ok((next, effects)),
        Setup::Unconfigured => Err(phase.wrong()),
    }
}

/// Transitions from [`Phase::Unconnected`].
pub(super) fn unconnected(setup: Setup, input: Input) -> Outcome {
    let phase = Phase::Unconnected(setup);
    match input {
        Input::Connect(paths) => {
            begin(phase, setup, Phase::Connecting(paths), Effects::START_TIMER)
        }
        Input::Accept => begin(
            phase,
            setup,
            Phase::Accepting(Origin::Unconnected),
            Effects::NONE,
        ),
        // Flushes the posted receives: there is no other way to get them back without a connection.
        // The manual page forbids the call in this state, and the DAT design paper requires it. No
        // connection ends, so only the completions of the receives are reported.
        Input::Disconnect(Close::Abrupt | Close::Graceful) => {
            begin(phase, setup, Phase::Disconnected, Effects::FLUSH)
        }
        Input::Reset => quietly(phase),
        Input::Free => Ok((Phase::Freed, Effects::GONE)),
        Input::Configured => quietly(Phase::Unconnected(Setup::Ready)),
        Input::Reserve => quietly(Phase::Reserved(setup)),
        Input::ConnectAborted | Input::AcceptAborted | Input::Requested => Err(phase.wrong()),
        Input::Broken => lost(phase, setup, Effects::LOST),
        Input::DeviceRemoved => lost(phase, setup, Effects::GONE),
        Input::Release
        | Input::PathsChanged(_)
        | Input::Established
        | Input::PeerRejected
        | Input::NonPeerRejected
        | Input::Unreachable
        | Input::TimedOut
        | Input::AcceptFailed
        | Input::PeerDisconnected
        | Input::RequestsIdle
        | Input::Idle => quietly(phase),
    }
}

/// Transitions from [`Phase::Reserved`].
pub(super) fn reserved(setup: Setup, input: Input) -> Outcome {
    let phase = Phase::Reserved(setup);
    match input {
        Input::Configured => quietly(Phase::Reserved(Setup::Ready)),
        Input::Release => quietly(Phase::Unconnected(setup)),
        Input::Requested => quietly(Phase::Passive(setup)),
        Input::Connect(_)
        | Input::ConnectAborted
        | Input::Accept
        | Input::AcceptAborted
        | Input::Disconnect(Close::Abrupt | Close::Graceful)
        | Input::Reset
        | Input::Free
        | Input::Reserve => Err(phase.wrong()),
        Input::Broken => lost(phase, setup, Effects::LOST),
        Input::DeviceRemoved => lost(phase, setup, Effects::GONE),
        Input::PathsChanged(_)
        | Input::Established
        | Input::PeerRejected
        | Input::NonPeerRejected
        | Input::Unreachable
        | Input::TimedOut
        | Input::AcceptFailed
        | Input::PeerDisconnected
        | Input::RequestsIdle
        | Input::Idle => quietly(phase),
    }
}

/// Transitions from [`Phase::Passive`]. After a reject the Endpoint is unconnected again.
pub(super) fn passive(setup: Setup, input: Input) -> Outcome {
    let phase = Phase::Passive(setup);
    match input {
        Input::Configured => quietly(Phase::Passive(Setup::Ready)),
        Input::Release => quietly(Phase::Unconnected(setup)),
        Input::Accept => begin(
            phase,
            setup,
            Phase::Accepting(Origin::Passive),
            Effects::NONE,
        ),
        Input::Connect(_)
        | Input::ConnectAborted
        | Input::AcceptAborted
        | Input::Disconnect(Close::Abrupt | Close::Graceful)
        | Input::Reset
        | Input::Free
        | Input::Reserve
        | Input::Requested => Err(phase.wrong()),
        Input::Broken => lost(phase, setup, Effects::LOST),
        Input::DeviceRemoved => lost(phase, setup, Effects::GONE),
        Input::PathsChanged(_)
        | Input::Established
        | Input::PeerRejected
        | Input::NonPeerRejected
        | Input::Unreachable
        | Input::TimedOut
        | Input::AcceptFailed
        | Input::PeerDisconnected
        | Input::RequestsIdle
        | Input::Idle => quietly(phase),
    }
}

/// Transitions from [`Phase::Tentative`]. After a reject the Endpoint is freed, since the provider
/// created it.
pub(super) fn tentative(setup: Setup, input: Input) -> Outcome {
    let phase = Phase::Tentative(setup);
    match input {
        Input::Configured => quietly(Phase::Tentative(Setup::Ready)),
        Input::Release => Ok((Phase::Freed, Effects::GONE)),
        Input::Accept => begin(
            phase,
            setup,
            Phase::Accepting(Origin::Tentative),
            Effects::NONE,
        ),
        Input::Connect(_)
        | Input::ConnectAborted
        | Input::AcceptAborted
        | Input::Disconnect(Close::Abrupt | Close::Graceful)
        | Input::Reset
        | Input::Free
        | Input::Reserve
        | Input::Requested => Err(phase.wrong()),
        Input::Broken => lost(phase, setup, Effects::LOST),
        Input::DeviceRemoved => lost(phase, setup, Effects::GONE),
        Input::PathsChanged(_)
        | Input::Established
        | Input::PeerRejected
        | Input::NonPeerRejected
        | Input::Unreachable
        | Input::TimedOut
        | Input::AcceptFailed
        | Input::PeerDisconnected
        | Input::RequestsIdle
        | Input::Idle => quietly(phase),
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The phases before any connection.

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

/// The QP is of no more use before it ever was connected.
///
/// There is no connection that could end, so no connection event either. An Endpoint without a QP
/// has nothing to lose.
fn lost(phase: Phase, setup: Setup, effects: Effects) -> Outcome {
    match setup {
        Setup::Ready => Ok((Phase::Disconnected, effects)),
        Setup::Unconfigured => quietly(phase),
    }
}

/// Begins a connect or an accept, for which the Endpoint has to be configured.
fn begin(phase: Phase, setup: Setup, next: Phase, effects: Effects) -> Outcome {
    match setup {
        Setup::Ready => Ok((next, effects)),
        Setup::Unconfigured => Err(phase.wrong()),
    }
}

/// [`Phase::Unconnected`].
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
        // The only way to get posted receives back without a connection. The manual page forbids
        // it, the design paper needs it. No connection ends, so the receives are all that is heard.
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

/// [`Phase::Reserved`].
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

/// [`Phase::Passive`]: a rejected request gives the Endpoint back to its owner.
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

/// [`Phase::Tentative`]: a rejected request takes the Endpoint back to the provider, which made it.
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transitions of the phases in which a connection ends or has ended.
//!
//! A DTO is a Data Transfer Operation.

use super::{
    step::{
        quietly,
        Outcome, //
    },
    Close,
    Effects,
    Input,
    Last,
    Phase,
    Setup, //
};

/// Transitions from [`Phase::Draining`]. The connection still exists, and can still break.
pub(super) fn draining(input: Input) -> Outcome {
    match input {
        Input::RequestsIdle
        | Input::Disconnect(Close::Abrupt)
        | Input::PeerDisconnected
        | Input::PeerRejected
        | Input::NonPeerRejected => Ok((Phase::Flushing(Last::Disconnected), Effects::HANG_UP)),
        // No DTO is outstanding, so the phase `Flushing` is skipped.
        Input::Idle => Ok((
            Phase::Disconnected,
            Effects {
                notice: Some(Last::Disconnected.notice()),
                ..Effects::HANG_UP
            },
        )),
        Input::Unreachable | Input::AcceptFailed | Input::Broken => {
            Ok((Phase::Flushing(Last::Broken), Effects::HANG_UP))
        }
        Input::DeviceRemoved => Ok((Phase::Flushing(Last::Broken), Effects::GONE)),
        Input::Free => Ok((
            Phase::Freed,
            Effects {
                abandon_id: true,
                ..Effects::HANG_UP
            },
        )),
        Input::Disconnect(Close::Graceful)
        | Input::PathsChanged(_)
        | Input::Established
        | Input::TimedOut
        | Input::Release => quietly(Phase::Draining),
        Input::Connect(_)
        | Input::ConnectAborted
        | Input::Accept
        | Input::AcceptAborted
        | Input::Reset
        | Input::Configured
        | Input::Reserve
        | Input::Requested => Err(Phase::Draining.wrong()),
    }
}

/// Transitions from [`Phase::Flushing`]. The first input that ended the connection has decided
/// which event is reported, so later ones do not change it.
pub(super) fn flushing(last: Last, input: Input) -> Outcome {
    let phase = Phase::Flushing(last);
    match input {
        Input::Idle => Ok((
            Phase::Disconnected,
            Effects {
                notice: Some(last.notice()),
                ..Effects::NONE
            },
        )),
        Input::DeviceRemoved => Ok((phase, Effects::GONE)),
        Input::Free => Ok((Phase::Freed, Effects::GONE)),
        Input::Disconnect(Close::Abrupt | Close::Graceful)
        | Input::PathsChanged(_)
        | Input::Established
        | Input::PeerRejected
        | Input::NonPeerRejected
        | Input::Unreachable
        | Input::TimedOut
        | Input::AcceptFailed
        | Input::PeerDisconnected
        | Input::Broken
        | Input::RequestsIdle
        | Input::Release => quietly(phase),
        Input::Connect(_)
        | Input::ConnectAborted
        | Input::Accept
        | Input::AcceptAborted
        | Input::Reset
        | Input::Configured
        | Input::Reserve
        | Input::Requested => Err(phase.wrong()),
    }
}

/// Transitions from [`Phase::Disconnected`]. Only a reset leads back to an unconnected Endpoint.
pub(super) fn disconnected(input: Input) -> Outcome {
    match input {
        Input::Reset => Ok((
            Phase::Unconnected(Setup::Ready),
            Effects {
                qp_reset: true,
                abandon_id: true,
                ..Effects::NONE
            },
        )),
        Input::DeviceRemoved => Ok((Phase::Disconnected, Effects::GONE)),
        Input::Free => Ok((Phase::Freed, Effects::GONE)),
        // The connection has ended already. The call succeeds and produces no event.
        Input::Disconnect(Close::Abrupt | Close::Graceful)
        | Input::PathsChanged(_)
        | Input::Established
        | Input::PeerRejected
        | Input::NonPeerRejected
        | Input::Unreachable
        | Input::TimedOut
        | Input::AcceptFailed
        | Input::PeerDisconnected
        | Input::Broken
        | Input::RequestsIdle
        | Input::Idle
        | Input::Release => quietly(Phase::Disconnected),
        Input::Connect(_)
        | Input::ConnectAborted
        | Input::Accept
        | Input::AcceptAborted
        | Input::Configured
        | Input::Reserve
        | Input::Requested => Err(Phase::Disconnected.wrong()),
    }
}

/// Transitions from [`Phase::Freed`]. Network events have no effect, and the consumer has no
/// handle.
pub(super) fn freed(input: Input) -> Outcome {
    match input {
        Input::PathsChanged(_)
        | Input::Established
        | Input::PeerRejected
        | Input::NonPeerRejected
        | Input::Unreachable
        | Input::TimedOut
        | Input::AcceptFailed
        | Input::PeerDisconnected
        | Input::Broken
        | Input::RequestsIdle
        | Input::Idle
        | Input::DeviceRemoved
        | Input::Release => quietly(Phase::Freed),
        Input::Connect(_)
        | Input::ConnectAborted
        | Input::Accept
        | Input::AcceptAborted
        | Input::Disconnect(Close::Abrupt | Close::Graceful)
        | Input::Reset
        | Input::Free
        | Input::Configured
        | Input::Reserve
        | Input::Requested => Err(Phase::Freed.wrong()),
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The phases of winding up.

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

/// [`Phase::Draining`]: the connection still stands, and still may break.
pub(super) fn draining(input: Input) -> Outcome {
    match input {
        Input::RequestsIdle
        | Input::Disconnect(Close::Abrupt)
        | Input::PeerDisconnected
        | Input::PeerRejected
        | Input::NonPeerRejected => Ok((Phase::Flushing(Last::Disconnected), Effects::HANG_UP)),
        // Nothing is left to flush either.
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

/// [`Phase::Flushing`]: what is owed was decided by the first to end the connection.
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

/// [`Phase::Disconnected`]: only a reset leads back.
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
        // There is nothing left to disconnect: no event comes, and the call succeeds.
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

/// [`Phase::Freed`]: the network talks to nobody, the consumer has no handle.
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transitions of the phases with a connection, or with an attempt to connect.

use super::{
    step::{
        quietly,
        Outcome, //
    },
    Close,
    Effects,
    Input,
    Last,
    Notice,
    Origin,
    Paths,
    Phase,
    Setup, //
};

/// Ends a failed attempt. The connection event is reported at once, before the posted receives
/// flush.
fn failed(notice: Notice, effects: Effects) -> Outcome {
    Ok((
        Phase::Disconnected,
        Effects {
            stop_timer: true,
            qp_error: true,
            notice: Some(notice),
            ..effects
        },
    ))
}

/// Ends an attempt that the consumer aborts. DISCONNECTED is reported later, as after any
/// disconnect.
fn aborted(effects: Effects) -> Outcome {
    Ok((
        Phase::Flushing(Last::Disconnected),
        Effects {
            stop_timer: true,
            ..effects
        },
    ))
}

/// Enters [`Phase::Connected`].
fn established(paths: Paths) -> Outcome {
    Ok((
        Phase::Connected(paths),
        Effects {
            stop_timer: true,
            notice: Some(Notice::Established),
            ..Effects::NONE
        },
    ))
}

/// Frees an Endpoint that is connected or connecting. Nothing more is reported.
fn freed(effects: Effects) -> Outcome {
    Ok((
        Phase::Freed,
        Effects {
            stop_timer: true,
            abandon_id: true,
            ..effects
        },
    ))
}

/// Transitions from [`Phase::Connecting`].
pub(super) fn connecting(paths: Paths, input: Input) -> Outcome {
    let phase = Phase::Connecting(paths);
    match input {
        Input::Established => established(paths),
        Input::PeerRejected => failed(Notice::PeerRejected, Effects::NONE),
        // The manual page: NON_PEER_REJECTED is for all reasons but a reject by the peer's
        // consumer, an unreachable address and the time-out.
        Input::NonPeerRejected | Input::AcceptFailed | Input::Broken => {
            failed(Notice::NonPeerRejected, Effects::NONE)
        }
        // The disconnect is answered, in case the peer considers itself connected.
        Input::PeerDisconnected => failed(Notice::NonPeerRejected, Effects::HANG_UP),
        Input::DeviceRemoved => failed(Notice::NonPeerRejected, Effects::GONE),
        Input::Unreachable => failed(Notice::Unreachable, Effects::NONE),
        Input::TimedOut => failed(Notice::TimedOut, Effects::GONE),
        Input::ConnectAborted => Ok((
            Phase::Unconnected(Setup::Ready),
            Effects {
                stop_timer: true,
                abandon_id: true,
                ..Effects::NONE
            },
        )),
        Input::Disconnect(Close::Abrupt | Close::Graceful) => aborted(Effects::GONE),
        Input::Free => freed(Effects::FLUSH),
        Input::Connect(_)
        | Input::Accept
        | Input::AcceptAborted
        | Input::Reset
        | Input::Configured
        | Input::Reserve
        | Input::Requested => Err(phase.wrong()),
        Input::PathsChanged(now) => quietly(Phase::Connecting(now)),
        Input::Release | Input::RequestsIdle | Input::Idle => quietly(phase),
    }
}

/// Transitions from [`Phase::Accepting`]. Each failure is reported as ACCEPT_COMPLETION_ERROR.
pub(super) fn accepting(origin: Origin, input: Input) -> Outcome {
    let phase = Phase::Accepting(origin);
    match input {
        Input::Established => established(Paths::Plain),
        Input::PeerRejected
        | Input::NonPeerRejected
        | Input::Unreachable
        | Input::AcceptFailed
        | Input::Broken => failed(Notice::AcceptCompletionError, Effects::NONE),
        Input::PeerDisconnected => failed(Notice::AcceptCompletionError, Effects::HANG_UP),
        Input::DeviceRemoved => failed(Notice::AcceptCompletionError, Effects::GONE),
        Input::AcceptAborted => quietly(match origin {
            Origin::Unconnected => Phase::Unconnected(Setup::Ready),
            Origin::Passive => Phase::Passive(Setup::Ready),
            Origin::Tentative => Phase::Tentative(Setup::Ready),
        }),
        // The peer may have confirmed in the meantime, so a disconnect is sent to it.
        Input::Disconnect(Close::Abrupt | Close::Graceful) => aborted(Effects {
            send_disconnect: true,
            ..Effects::GONE
        }),
        Input::Free => freed(Effects::FLUSH),
        Input::Connect(_)
        | Input::ConnectAborted
        | Input::Accept
        | Input::Reset
        | Input::Configured
        | Input::Reserve
        | Input::Requested => Err(phase.wrong()),
        // Only the active side has a timer, so an expiry belongs to an earlier attempt.
        Input::TimedOut
        | Input::Release
        | Input::PathsChanged(_)
        | Input::RequestsIdle
        | Input::Idle => quietly(phase),
    }
}

/// Transitions from [`Phase::Connected`].
pub(super) fn connected(paths: Paths, input: Input) -> Outcome {
    let phase = Phase::Connected(paths);
    match input {
        Input::Disconnect(Close::Graceful) => quietly(Phase::Draining),
        // The peer reports a reject if it disconnects before it has received the confirmation of
        // the connection.
        Input::Disconnect(Close::Abrupt)
        | Input::PeerDisconnected
        | Input::PeerRejected
        | Input::NonPeerRejected => Ok((Phase::Flushing(Last::Disconnected), Effects::HANG_UP)),
        // The connection manager failed after the first receive had established the connection.
        // ESTABLISHED has been reported, so the failure is reported as the end of the connection.
        Input::Unreachable | Input::AcceptFailed | Input::Broken => {
            Ok((Phase::Flushing(Last::Broken), Effects::HANG_UP))
        }
        Input::DeviceRemoved => Ok((Phase::Flushing(Last::Broken), Effects::GONE)),
        Input::PathsChanged(now) => quietly(Phase::Connected(now)),
        Input::Free => freed(Effects::HANG_UP),
        Input::Connect(_)
        | Input::ConnectAborted
        | Input::Accept
        | Input::AcceptAborted
        | Input::Reset
        | Input::Configured
        | Input::Reserve
        | Input::Requested => Err(phase.wrong()),
        Input::Established
        | Input::TimedOut
        | Input::Release
        | Input::RequestsIdle
        | Input::Idle => quietly(phase),
    }
}

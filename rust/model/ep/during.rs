// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The phases with a connection, or with an attempt at one.

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

/// The attempt failed: the event tells at once, and the posted receives flush behind it.
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

/// The consumer takes the attempt back: DISCONNECTED is owed, as after any disconnect.
fn aborted(effects: Effects) -> Outcome {
    Ok((
        Phase::Flushing(Last::Disconnected),
        Effects {
            stop_timer: true,
            ..effects
        },
    ))
}

/// The connection stands.
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

/// The Endpoint is freed under way: nobody hears of the rest.
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

/// [`Phase::Connecting`].
pub(super) fn connecting(paths: Paths, input: Input) -> Outcome {
    let phase = Phase::Connecting(paths);
    match input {
        Input::Established => established(paths),
        Input::PeerRejected => failed(Notice::PeerRejected, Effects::NONE),
        // The manual page: every reason that is not the peer's consumer, silence or the timer.
        Input::NonPeerRejected | Input::AcceptFailed | Input::Broken => {
            failed(Notice::NonPeerRejected, Effects::NONE)
        }
        // It takes an answer if the peer believes that there was a connection.
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

/// [`Phase::Accepting`]: whatever goes wrong is ACCEPT_COMPLETION_ERROR.
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
        // The peer may have confirmed meanwhile.
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
        // The timer is the active side's: one that fires here belongs to another attempt.
        Input::TimedOut
        | Input::Release
        | Input::PathsChanged(_)
        | Input::RequestsIdle
        | Input::Idle => quietly(phase),
    }
}

/// [`Phase::Connected`].
pub(super) fn connected(paths: Paths, input: Input) -> Outcome {
    let phase = Phase::Connected(paths);
    match input {
        Input::Disconnect(Close::Graceful) => quietly(Phase::Draining),
        // A peer that disconnects before it has heard that the connection stands rejects it.
        Input::Disconnect(Close::Abrupt)
        | Input::PeerDisconnected
        | Input::PeerRejected
        | Input::NonPeerRejected => Ok((Phase::Flushing(Last::Disconnected), Effects::HANG_UP)),
        // The CM gave the connection up after the first receive had established it: it is not
        // told of ESTABLISHED again, but of the end.
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

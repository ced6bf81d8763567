// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transitions of the phases in which a connection ends or has ended.
//!
//! A DTO is a Data Transfer Operation.

use super::{
    connecting::hung_up,
    step::{
        without_effects,
        StepResult,
        Transition, //
    },
    Call,
    Close,
    Configuration,
    Effects,
    FinalEvent,
    Network,
    Phase,
    Progress, //
};

/// Enters [`Phase::Disconnected`], and reports the last connection event.
fn ended(last: FinalEvent, effects: Effects) -> Transition {
    let effects = Effects {
        event: Some(last.event()),
        ..effects
    };
    (Phase::Disconnected, effects)
}

/// Calls in [`Phase::Draining`].
pub(super) fn draining(call: Call) -> StepResult {
    match call {
        Call::Disconnect(Close::Abrupt) => Ok(hung_up(FinalEvent::Disconnected)),
        Call::Disconnect(Close::Graceful) | Call::Release => Ok(without_effects(Phase::Draining)),
        Call::Free => {
            let effects = Effects {
                abandon_id: true,
                ..Effects::HANG_UP
            };
            Ok((Phase::Freed, effects))
        }
        Call::Connect(_)
        | Call::ConnectAborted
        | Call::Accept
        | Call::AcceptAborted
        | Call::Ready
        | Call::Reset
        | Call::Configured
        | Call::Reserve
        | Call::Requested => Err(Phase::Draining.invalid_state_error()),
    }
}

/// Progress in [`Phase::Draining`].
pub(super) fn draining_on_progress(progress: Progress) -> Transition {
    match progress {
        Progress::RequestsIdle => hung_up(FinalEvent::Disconnected),
        // No DTO is outstanding, so the phase `Flushing` is skipped.
        Progress::Idle => ended(FinalEvent::Disconnected, Effects::HANG_UP),
    }
}

/// Calls in [`Phase::Flushing`]. The first input that ended the connection has decided which event
/// is reported, so a disconnect does not change it.
pub(super) fn flushing(last: FinalEvent, call: Call) -> StepResult {
    let phase = Phase::Flushing(last);
    match call {
        Call::Disconnect(Close::Abrupt | Close::Graceful) | Call::Release => {
            Ok(without_effects(phase))
        }
        Call::Free => Ok((Phase::Freed, Effects::GONE)),
        Call::Connect(_)
        | Call::ConnectAborted
        | Call::Accept
        | Call::AcceptAborted
        | Call::Ready
        | Call::Reset
        | Call::Configured
        | Call::Reserve
        | Call::Requested => Err(phase.invalid_state_error()),
    }
}

/// Progress in [`Phase::Flushing`].
pub(super) fn flushing_on_progress(last: FinalEvent, progress: Progress) -> Transition {
    match progress {
        Progress::RequestsIdle => without_effects(Phase::Flushing(last)),
        Progress::Idle => ended(last, Effects::NONE),
    }
}

/// Calls in [`Phase::Disconnected`]. Only a reset leads back to an unconnected Endpoint.
pub(super) fn disconnected(call: Call) -> StepResult {
    match call {
        Call::Reset => {
            let effects = Effects {
                qp_reset: true,
                abandon_id: true,
                ..Effects::NONE
            };
            Ok((Phase::Unconnected(Configuration::Complete), effects))
        }
        Call::Free => Ok((Phase::Freed, Effects::GONE)),
        // The connection has ended already. The call succeeds and produces no event.
        Call::Disconnect(Close::Abrupt | Close::Graceful) | Call::Release => {
            Ok(without_effects(Phase::Disconnected))
        }
        Call::Connect(_)
        | Call::ConnectAborted
        | Call::Accept
        | Call::AcceptAborted
        | Call::Ready
        | Call::Configured
        | Call::Reserve
        | Call::Requested => Err(Phase::Disconnected.invalid_state_error()),
    }
}

/// Reports of the network in [`Phase::Flushing`] and [`Phase::Disconnected`]. Only the device still
/// matters. The cause of the end has decided the last connection event already.
pub(super) fn on_network(phase: Phase, network: Network) -> Transition {
    match network {
        Network::DeviceRemoved => (phase, Effects::GONE),
        Network::Established
        | Network::EstablishedGated
        | Network::PeerRejected
        | Network::NonPeerRejected
        | Network::Unreachable
        | Network::TimedOut
        | Network::AcceptFailed
        | Network::PeerDisconnected
        | Network::Broken => without_effects(phase),
    }
}

/// Calls in [`Phase::Freed`]. The consumer has no handle, so only a service point or a connection
/// request can still be released.
pub(super) fn freed(call: Call) -> StepResult {
    match call {
        Call::Release => Ok(without_effects(Phase::Freed)),
        Call::Connect(_)
        | Call::ConnectAborted
        | Call::Accept
        | Call::AcceptAborted
        | Call::Ready
        | Call::Disconnect(Close::Abrupt | Close::Graceful)
        | Call::Reset
        | Call::Free
        | Call::Configured
        | Call::Reserve
        | Call::Requested => Err(Phase::Freed.invalid_state_error()),
    }
}

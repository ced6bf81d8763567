// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transitions of an established connection whose ready gate is closed.
//!
//! The consumer closes the gate when it connects or accepts, and opens it by `kdapl_ep_ready`.
//! Until then it gets no event of the connection. If the connection ends before, the consumer gets
//! ESTABLISHED, the receives and the last connection event once it has opened the gate. The removal
//! of the device opens the gate.
//!
//! A QP is a queue pair.

use super::{
    connecting::{
        freed,
        hung_up, //
    },
    disconnecting::{
        flushing,
        on_network as after_end, //
    },
    step::{
        without_effects,
        StepResult,
        Transition, //
    },
    Call,
    Close,
    ConnectionEvent,
    Effects,
    FinalEvent,
    GatedSide,
    Network,
    Phase, //
};

/// Reports ESTABLISHED and enters a phase, because the gate opens.
fn opened(phase: Phase) -> Transition {
    let effects = Effects {
        event: Some(ConnectionEvent::Established),
        ..Effects::NONE
    };
    (phase, effects)
}

/// Handles a call in [`Phase::Gated`].
pub(super) fn gated(side: GatedSide, call: Call) -> StepResult {
    let phase = Phase::Gated(side);
    match call {
        Call::Ready => Ok(opened(Phase::Connected(side.paths()))),
        // No request is outstanding, so a graceful disconnect does not wait. ESTABLISHED is never
        // reported, as if the attempt were aborted.
        Call::Disconnect(Close::Abrupt | Close::Graceful) => Ok(hung_up(FinalEvent::Disconnected)),
        Call::Free => Ok(freed(Effects::HANG_UP)),
        Call::Release => Ok(without_effects(phase)),
        Call::Connect(_)
        | Call::ConnectAborted
        | Call::Accept
        | Call::AcceptAborted
        | Call::Reset
        | Call::Configured
        | Call::Reserve
        | Call::Requested => Err(phase.invalid_state_error()),
    }
}

/// Handles a report of the network in [`Phase::Gated`]. The disconnect of the peer is answered, and
/// the QP is stopped. The consumer's events follow when it opens the gate.
pub(super) fn gated_on_network(phase: Phase, network: Network) -> Transition {
    match network {
        Network::PeerDisconnected | Network::PeerRejected | Network::NonPeerRejected => (
            Phase::GatedEnded(FinalEvent::Disconnected),
            Effects::HANG_UP,
        ),
        Network::Unreachable | Network::AcceptFailed | Network::Broken => {
            (Phase::GatedEnded(FinalEvent::Broken), Effects::HANG_UP)
        }
        Network::DeviceRemoved => removed(FinalEvent::Broken),
        Network::Established | Network::EstablishedGated | Network::TimedOut => {
            without_effects(phase)
        }
    }
}

/// Opens the gate because the device is being removed: no object of the device can wait.
fn removed(last: FinalEvent) -> Transition {
    let effects = Effects {
        event: Some(ConnectionEvent::Established),
        ..Effects::GONE
    };
    (Phase::Flushing(last), effects)
}

/// Handles a report of the network in [`Phase::GatedEnded`]. As after any end, only the removal of
/// the device has an effect.
pub(super) fn ended_on_network(last: FinalEvent, network: Network) -> Transition {
    match network {
        Network::DeviceRemoved => removed(last),
        other => after_end(Phase::GatedEnded(last), other),
    }
}

/// Handles a call in [`Phase::GatedEnded`].
pub(super) fn ended(last: FinalEvent, call: Call) -> StepResult {
    match call {
        Call::Ready => Ok(opened(Phase::Flushing(last))),
        Call::Release => Ok(without_effects(Phase::GatedEnded(last))),
        // A disconnect leaves out ESTABLISHED, as if the attempt were aborted.
        Call::Disconnect(Close::Abrupt | Close::Graceful)
        | Call::Free
        | Call::Connect(_)
        | Call::ConnectAborted
        | Call::Accept
        | Call::AcceptAborted
        | Call::Reset
        | Call::Configured
        | Call::Reserve
        | Call::Requested => flushing(last, call),
    }
}

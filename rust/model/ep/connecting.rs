// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transitions of the phases with a connection, or with an attempt to connect.

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
    ConnectionEvent,
    Effects,
    FinalEvent,
    GatedSide,
    Network,
    Paths,
    Phase, //
};

/// Ends a failed attempt. The connection event is reported at once, before the posted receives
/// flush.
fn failed(event: ConnectionEvent, effects: Effects) -> Transition {
    let effects = Effects {
        stop_timer: true,
        qp_error: true,
        event: Some(event),
        ..effects
    };
    (Phase::Disconnected, effects)
}

/// Ends an attempt that the consumer aborts. DISCONNECTED is reported later, as after any
/// disconnect.
fn aborted(effects: Effects) -> Transition {
    let effects = Effects {
        stop_timer: true,
        ..effects
    };
    (Phase::Flushing(FinalEvent::Disconnected), effects)
}

/// Enters [`Phase::Connected`].
fn established(paths: Paths) -> Transition {
    let effects = Effects {
        stop_timer: true,
        event: Some(ConnectionEvent::Established),
        ..Effects::NONE
    };
    (Phase::Connected(paths), effects)
}

/// Enters [`Phase::Gated`].
fn gated(side: GatedSide) -> Transition {
    let effects = Effects {
        stop_timer: true,
        ..Effects::NONE
    };
    (Phase::Gated(side), effects)
}

/// Frees an Endpoint that is connected or connecting. Nothing more is reported.
pub(super) fn freed(effects: Effects) -> Transition {
    let effects = Effects {
        stop_timer: true,
        abandon_id: true,
        ..effects
    };
    (Phase::Freed, effects)
}

/// Calls in [`Phase::Connecting`].
pub(super) fn connecting(paths: Paths, call: Call) -> StepResult {
    let phase = Phase::Connecting(paths);
    match call {
        Call::ConnectAborted => {
            // The timer has not been started. Another thread may connect at once, and start its
            // own.
            let effects = Effects {
                abandon_id: true,
                ..Effects::NONE
            };
            Ok((Phase::Unconnected(Configuration::Complete), effects))
        }
        Call::Disconnect(Close::Abrupt | Close::Graceful) => Ok(aborted(Effects::GONE)),
        Call::Free => Ok(freed(Effects::FLUSH)),
        // The caller has opened the gate.
        Call::Ready | Call::Release => Ok(without_effects(phase)),
        Call::Connect(_)
        | Call::Accept
        | Call::AcceptAborted
        | Call::Reset
        | Call::Configured
        | Call::Reserve
        | Call::Requested => Err(phase.invalid_state_error()),
    }
}

/// Reports of the network in [`Phase::Connecting`].
pub(super) fn connecting_on_network(paths: Paths, network: Network) -> Transition {
    use ConnectionEvent as Event;
    match network {
        Network::Established => established(paths),
        Network::EstablishedGated => gated(GatedSide::Active(paths)),
        Network::PeerRejected => failed(Event::PeerRejected, Effects::NONE),
        // The manual page: NON_PEER_REJECTED is for all reasons but a reject by the peer's
        // consumer, an unreachable address and the time-out.
        Network::NonPeerRejected | Network::AcceptFailed | Network::Broken => {
            failed(Event::NonPeerRejected, Effects::NONE)
        }
        // The disconnect is answered, in case the peer considers itself connected.
        Network::PeerDisconnected => failed(Event::NonPeerRejected, Effects::HANG_UP),
        Network::DeviceRemoved => failed(Event::NonPeerRejected, Effects::GONE),
        Network::Unreachable => failed(Event::Unreachable, Effects::NONE),
        Network::TimedOut => failed(Event::TimedOut, Effects::GONE),
    }
}

/// Calls in [`Phase::Accepting`].
pub(super) fn accepting(from: AcceptFrom, call: Call) -> StepResult {
    let phase = Phase::Accepting(from);
    match call {
        Call::AcceptAborted => Ok(without_effects(from.phase(Configuration::Complete))),
        // The peer may have confirmed in the meantime, so a disconnect is sent to it.
        Call::Disconnect(Close::Abrupt | Close::Graceful) => Ok(aborted(Effects {
            send_disconnect: true,
            ..Effects::GONE
        })),
        Call::Free => Ok(freed(Effects::FLUSH)),
        // The caller has opened the gate.
        Call::Ready | Call::Release => Ok(without_effects(phase)),
        Call::Connect(_)
        | Call::ConnectAborted
        | Call::Accept
        | Call::Reset
        | Call::Configured
        | Call::Reserve
        | Call::Requested => Err(phase.invalid_state_error()),
    }
}

/// Reports of the network in [`Phase::Accepting`]. Each failure is reported as
/// ACCEPT_COMPLETION_ERROR.
pub(super) fn accepting_on_network(from: AcceptFrom, network: Network) -> Transition {
    let failed = |effects| failed(ConnectionEvent::AcceptCompletionError, effects);
    match network {
        Network::Established => established(Paths::Plain),
        Network::EstablishedGated => gated(GatedSide::Passive),
        Network::PeerRejected
        | Network::NonPeerRejected
        | Network::Unreachable
        | Network::AcceptFailed
        | Network::Broken => failed(Effects::NONE),
        Network::PeerDisconnected => failed(Effects::HANG_UP),
        Network::DeviceRemoved => failed(Effects::GONE),
        // Only the active side has a timer, so an expiry belongs to an earlier attempt.
        Network::TimedOut => without_effects(Phase::Accepting(from)),
    }
}

/// Calls in [`Phase::Connected`].
pub(super) fn connected(paths: Paths, call: Call) -> StepResult {
    let phase = Phase::Connected(paths);
    match call {
        Call::Disconnect(Close::Graceful) => Ok(without_effects(Phase::Draining)),
        Call::Disconnect(Close::Abrupt) => Ok(hung_up(FinalEvent::Disconnected)),
        Call::Free => Ok(freed(Effects::HANG_UP)),
        // The gate is open already.
        Call::Ready | Call::Release => Ok(without_effects(phase)),
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

/// Reports of the network in [`Phase::Connected`] and [`Phase::Draining`], which both have a
/// connection that can break.
pub(super) fn connected_on_network(phase: Phase, network: Network) -> Transition {
    match network {
        // The peer reports a reject if it disconnects before it has received the confirmation of
        // the connection.
        Network::PeerDisconnected | Network::PeerRejected | Network::NonPeerRejected => {
            hung_up(FinalEvent::Disconnected)
        }
        // The connection manager failed after the first receive had established the connection.
        // ESTABLISHED has been reported, so the failure is reported as the end of the connection.
        Network::Unreachable | Network::AcceptFailed | Network::Broken => {
            hung_up(FinalEvent::Broken)
        }
        Network::DeviceRemoved => (Phase::Flushing(FinalEvent::Broken), Effects::GONE),
        Network::Established | Network::EstablishedGated | Network::TimedOut => {
            without_effects(phase)
        }
    }
}

/// Disconnects from the peer, and lets the posted Data Transfer Operations flush.
pub(super) fn hung_up(last: FinalEvent) -> Transition {
    (Phase::Flushing(last), Effects::HANG_UP)
}

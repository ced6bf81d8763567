// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transition function of the state machine.
//!
//! A call has one function for each phase, since most calls are allowed in few phases only. A
//! report of the network has one function for all phases in which it means the same, and so has
//! progress. The functions of the phases without a connection are in `unconnected`, those of the
//! phases with a connection or an attempt to connect in `connecting`, those with a closed
//! ready gate in `gated`, and those of the phases in which a connection ends or has ended in
//! `disconnecting`. Each has an arm for every input.
//!
//! A DTO is a Data Transfer Operation.

use super::{
    super::code::DatError,
    connecting,
    disconnecting,
    gated,
    unconnected,
    Call,
    Effects,
    Input,
    Network,
    Phase,
    Progress, //
};

/// The next phase, and the effects of the transition to it.
pub(super) type Transition = (Phase, Effects);

/// Result of a step.
pub(super) type StepResult = Result<Transition, DatError>;

/// Computes the next phase of an Endpoint and the effects of the transition.
///
/// The caller executes the effects. If the new phase is [`Phase::Draining`] or [`Phase::Flushing`],
/// it then feeds [`Progress::RequestsIdle`] if no request is outstanding, and [`Progress::Idle`] if
/// no DTO is outstanding. Other phases ignore these two inputs.
///
/// An input must belong to the current attempt to connect. The caller filters out the timers and
/// the ids of the connection manager of earlier attempts.
///
/// # Errors
///
/// A call that the phase does not allow: INVALID_STATE with the subtype of the state, or
/// INVALID_HANDLE after the Endpoint was freed.
pub(crate) fn step(phase: Phase, input: Input) -> StepResult {
    match input {
        Input::Call(call) => on_call(phase, call),
        Input::Network(network) => Ok(on_network(phase, network)),
        Input::Progress(progress) => Ok(on_progress(phase, progress)),
    }
}

/// Transitions for a call.
fn on_call(phase: Phase, call: Call) -> StepResult {
    match phase {
        Phase::Unconnected(configuration) => unconnected::unconnected(configuration, call),
        Phase::Reserved(configuration) => unconnected::reserved(configuration, call),
        Phase::Passive(configuration) => unconnected::passive(configuration, call),
        Phase::Tentative(configuration) => unconnected::tentative(configuration, call),
        Phase::Connecting(paths) => connecting::connecting(paths, call),
        Phase::Accepting(from) => connecting::accepting(from, call),
        Phase::Gated(side) => gated::gated(side, call),
        Phase::GatedEnded(last) => gated::ended(last, call),
        Phase::Connected(paths) => connecting::connected(paths, call),
        Phase::Draining => disconnecting::draining(call),
        Phase::Flushing(last) => disconnecting::flushing(last, call),
        Phase::Disconnected => disconnecting::disconnected(call),
        Phase::Freed => disconnecting::freed(call),
    }
}

/// Transitions for a report of the network or of the device.
fn on_network(phase: Phase, network: Network) -> Transition {
    match phase {
        Phase::Unconnected(configuration)
        | Phase::Reserved(configuration)
        | Phase::Passive(configuration)
        | Phase::Tentative(configuration) => unconnected::on_network(phase, configuration, network),
        Phase::Connecting(paths) => connecting::connecting_on_network(paths, network),
        Phase::Accepting(from) => connecting::accepting_on_network(from, network),
        Phase::Gated(_) => gated::gated_on_network(phase, network),
        Phase::Connected(_) | Phase::Draining => connecting::connected_on_network(phase, network),
        Phase::GatedEnded(last) => gated::ended_on_network(last, network),
        Phase::Flushing(_) | Phase::Disconnected => disconnecting::on_network(phase, network),
        // The consumer has no handle, and the device no object of the Endpoint.
        Phase::Freed => without_effects(phase),
    }
}

/// Transitions for progress of the posted Data Transfer Operations, which only the end of a
/// connection waits for.
fn on_progress(phase: Phase, progress: Progress) -> Transition {
    match phase {
        Phase::Draining => disconnecting::draining_on_progress(progress),
        Phase::Flushing(last) => disconnecting::flushing_on_progress(last, progress),
        Phase::Unconnected(_)
        | Phase::Reserved(_)
        | Phase::Passive(_)
        | Phase::Tentative(_)
        | Phase::Connecting(_)
        | Phase::Accepting(_)
        | Phase::Gated(_)
        | Phase::GatedEnded(_)
        | Phase::Connected(_)
        | Phase::Disconnected
        | Phase::Freed => without_effects(phase),
    }
}

/// Returns a phase, new or unchanged, without effects.
pub(super) fn without_effects(phase: Phase) -> Transition {
    (phase, Effects::NONE)
}

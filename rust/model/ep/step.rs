// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Inputs of the state machine, and its transition function.
//!
//! Each phase has one function, with an arm for every input. The functions of the phases before a
//! connection are in `before`, those of the phases with a connection or an attempt to connect in
//! `during`, and those of the phases after it in `after`.
//!
//! Abbreviations: CM (connection manager), DTO (Data Transfer Operation), EVD (Event Dispatcher),
//! PZ (Protection Zone), QP (queue pair).

use super::{
    super::code::DatError,
    after,
    before,
    during,
    Effects,
    Paths,
    Phase, //
};

/// How to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Close {
    /// Close at once, and flush the outstanding DTOs.
    Abrupt,
    /// Close after the outstanding requests have completed.
    Graceful,
}

/// Input of the state machine.
#[cfg_attr(
    not(kdapl_host),
    expect(dead_code, reason = "the number of paths never changes yet")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Input {
    /// `dat_ep_connect` starts, for a connection with these paths.
    Connect(Paths),
    /// `dat_ep_connect` fails before it returns.
    ///
    /// If this input is an error, an event has reported the result already, and the call returns
    /// success.
    ConnectAborted,
    /// `dat_cr_accept` starts for this Endpoint.
    Accept,
    /// `dat_cr_accept` fails before it returns, and the QP has not been changed. (After a change of
    /// the QP the caller feeds [`Input::AcceptFailed`] instead.)
    ///
    /// An error means the same as for [`Input::ConnectAborted`].
    AcceptAborted,
    /// `dat_ep_disconnect`.
    Disconnect(Close),
    /// `dat_ep_reset`.
    Reset,
    /// `dat_ep_free`.
    Free,
    /// `dat_ep_modify` has supplied the missing PZ and EVDs.
    Configured,
    /// `dat_rsp_create` reserves the Endpoint.
    Reserve,
    /// The Reserved Service Point was freed, or the connection request was rejected.
    Release,
    /// A connection request has arrived at the Reserved Service Point.
    Requested,
    /// The number of paths has changed.
    PathsChanged(Paths),
    /// The connection is established: the connection manager (CM) reports it, or the first receive
    /// has completed.
    Established,
    /// The peer's consumer has rejected the connection request.
    PeerRejected,
    /// The connection request was rejected, but not by the peer's consumer.
    NonPeerRejected,
    /// The address does not respond.
    Unreachable,
    /// The connect timer of this attempt has expired.
    TimedOut,
    /// The CM has failed after the accept.
    AcceptFailed,
    /// The peer has disconnected, or the CM confirms the disconnect of this side.
    PeerDisconnected,
    /// The connection has failed: the QP reports an error, or a completion reports that the peer
    /// does not respond.
    Broken,
    /// No request is outstanding.
    RequestsIdle,
    /// No DTO is outstanding, and every DTO event has been queued.
    Idle,
    /// The device is being removed.
    DeviceRemoved,
}

/// Result of a step.
pub(super) type Outcome = Result<(Phase, Effects), DatError>;

/// Computes the next phase of an Endpoint and the effects of the transition.
///
/// The caller executes the effects. If the new phase is [`Phase::Draining`] or [`Phase::Flushing`],
/// it then feeds [`Input::RequestsIdle`] if no request is outstanding, and [`Input::Idle`] if no
/// DTO is outstanding. Other phases ignore these two inputs.
///
/// An input must belong to the current attempt to connect. The caller filters out the timers and
/// the CM ids of earlier attempts.
///
/// # Errors
///
/// A call of the consumer that the phase does not allow: INVALID_STATE with the subtype of the
/// state, or INVALID_HANDLE after the Endpoint was freed. An input from the network is never an
/// error. If it has no meaning in the phase, the phase stays the same and there are no effects.
pub(crate) fn step(phase: Phase, input: Input) -> Outcome {
    match phase {
        Phase::Unconnected(setup) => before::unconnected(setup, input),
        Phase::Reserved(setup) => before::reserved(setup, input),
        Phase::Passive(setup) => before::passive(setup, input),
        Phase::Tentative(setup) => before::tentative(setup, input),
        Phase::Connecting(paths) => during::connecting(paths, input),
        Phase::Accepting(origin) => during::accepting(origin, input),
        Phase::Connected(paths) => during::connected(paths, input),
        Phase::Draining => after::draining(input),
        Phase::Flushing(last) => after::flushing(last, input),
        Phase::Disconnected => after::disconnected(input),
        Phase::Freed => after::freed(input),
    }
}

/// Returns a phase, new or unchanged, without effects.
pub(super) fn quietly(phase: Phase) -> Outcome {
    Ok((phase, Effects::NONE))
}

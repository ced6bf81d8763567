// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What may happen to an Endpoint, and the function that says what comes of it.
//!
//! The transitions themselves are one function a phase, each with an arm for every input: those
//! of a phase before any connection are in `before`, those with a connection or an attempt at one
//! in `during`, those of winding up in `after`.

use super::{
    super::code::DatError,
    after,
    before,
    during,
    Effects,
    Paths,
    Phase, //
};

/// How a connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Close {
    /// At once; what is outstanding flushes.
    Abrupt,
    /// After the outstanding requests have finished.
    Graceful,
}

/// What may happen to an Endpoint.
#[cfg_attr(
    not(kdapl_host),
    expect(dead_code, reason = "no path ever comes or goes yet")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Input {
    /// `dat_ep_connect` begins, for a connection with these paths.
    Connect(Paths),
    /// `dat_ep_connect` fails synchronously after all. An error means that the network was
    /// quicker: an event tells the outcome already, and the call reports success.
    ConnectAborted,
    /// `dat_cr_accept` with this Endpoint begins.
    Accept,
    /// `dat_cr_accept` fails synchronously after all, the QP untouched (once it was touched the
    /// caller feeds [`Input::AcceptFailed`]). An error has the meaning it has for
    /// [`Input::ConnectAborted`].
    AcceptAborted,
    /// `dat_ep_disconnect`.
    Disconnect(Close),
    /// `dat_ep_reset`.
    Reset,
    /// `dat_ep_free`.
    Free,
    /// `dat_ep_modify` brought what was missing.
    Configured,
    /// `dat_rsp_create` takes the Endpoint.
    Reserve,
    /// The Reserved Service Point was freed, or the request rejected.
    Release,
    /// A request came in on the Reserved Service Point.
    Requested,
    /// The number of paths changed.
    PathsChanged(Paths),
    /// The connection stands: the CM says so, or the first receive completed.
    Established,
    /// The peer's consumer rejected.
    PeerRejected,
    /// Somebody else rejected.
    NonPeerRejected,
    /// The address does not answer.
    Unreachable,
    /// The connect timer of this attempt fired.
    TimedOut,
    /// The CM failed after the accept.
    AcceptFailed,
    /// The peer disconnected, or the CM says that we have.
    PeerDisconnected,
    /// The QP failed, a completion says that the peer is dead, or the like.
    Broken,
    /// No request is outstanding (any more).
    RequestsIdle,
    /// Nothing is outstanding (any more), and every DTO event has been queued.
    Idle,
    /// The device goes away.
    DeviceRemoved,
}

/// What a step leads to.
pub(super) type Outcome = Result<(Phase, Effects), DatError>;

/// Takes an Endpoint from one phase to the next.
///
/// After the effects are executed the caller feeds [`Input::RequestsIdle`] if no request is
/// outstanding and [`Input::Idle`] if nothing is, where the new phase is [`Phase::Draining`] or
/// [`Phase::Flushing`]; anywhere else both are ignored, so it may feed them whenever they hold.
///
/// Inputs must be of the present attempt: a timer or a CM id of an earlier one is for the caller
/// to tell apart.
///
/// # Errors
///
/// A consumer's call in a phase that does not allow it: INVALID_STATE with the subtype that names
/// the state, INVALID_HANDLE once the Endpoint was freed. What the network does is never an error:
/// where it no longer matters the phase stays and there are no effects.
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

/// A phase with nothing to do, be it a new one or the old one.
pub(super) fn quietly(phase: Phase) -> Outcome {
    Ok((phase, Effects::NONE))
}

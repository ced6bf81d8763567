// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Inputs of the state machine, grouped by their source.
//!
//! Only a [`Call`] can be refused. The call returns the error.
//!
//! Abbreviations: CM (connection manager), DTO (Data Transfer Operation), EVD (Event Dispatcher),
//! PZ (Protection Zone), QP (queue pair).

use super::Paths;

/// How to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Close {
    /// Close at once, and flush the outstanding DTOs.
    Abrupt,
    /// Close after the outstanding requests have completed.
    Graceful,
}

/// Call for an Endpoint: by the consumer, or by the service point or the connection request that
/// holds the Endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    /// `dat_ep_connect` starts, for a connection with these paths.
    Connect(Paths),
    /// `dat_ep_connect` fails before it returns, and before it has performed the effects of
    /// [`Call::Connect`].
    ///
    /// If this input is an error, an event has reported the result already, and the call returns
    /// success.
    ConnectAborted,
    /// `dat_cr_accept` starts for this Endpoint.
    Accept,
    /// `dat_cr_accept` fails before it returns, and the QP has not been changed. (After a change of
    /// the QP the caller feeds [`Network::AcceptFailed`] instead.)
    ///
    /// An error means the same as for [`Call::ConnectAborted`].
    AcceptAborted,
    /// `kdapl_ep_ready` opens the ready gate.
    Ready,
    /// `dat_ep_disconnect`.
    Disconnect(Close),
    /// `dat_ep_reset`.
    Reset,
    /// `dat_ep_free`. The caller stops the Endpoint itself, and uses no effects.
    Free,
    /// `dat_ep_modify` has replaced the QP, or has supplied the missing PZ.
    Configured,
    /// `dat_rsp_create` reserves the Endpoint.
    Reserve,
    /// The Reserved Service Point passes a connection request to the Endpoint.
    Requested,
    /// The Reserved Service Point was freed, or the connection request was rejected. This call is
    /// never refused.
    Release,
}

/// Report of the network or of the device. It is never an error. If it has no meaning in a phase,
/// it has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Network {
    /// The connection is established: the connection manager (CM) reports it, or the first receive
    /// has completed.
    Established,
    /// As `Established`, and the ready gate is closed.
    EstablishedGated,
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
    /// The device is being removed.
    DeviceRemoved,
}

/// Progress of the posted DTOs. It is never an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Progress {
    /// No request is outstanding.
    RequestsIdle,
    /// No DTO is outstanding, and every DTO event has been queued.
    Idle,
}

/// Input of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Input {
    /// A call for the Endpoint.
    Call(Call),
    /// A report of the network or of the device.
    Network(Network),
    /// Progress of the posted DTOs.
    Progress(Progress),
}

impl From<Call> for Input {
    fn from(call: Call) -> Self {
        Self::Call(call)
    }
}

impl From<Network> for Input {
    fn from(network: Network) -> Self {
        Self::Network(network)
    }
}

impl From<Progress> for Input {
    fn from(progress: Progress) -> Self {
        Self::Progress(progress)
    }
}

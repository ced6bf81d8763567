// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Names that the journal and the tracepoints print.
//!
//! They are DAT's names without the prefixes. Values that DAT does not define have names of kDAPL.

use super::super::{
    ep::{
        Call,
        Close,
        FinalEvent,
        GatedSide,
        Input,
        Network,
        Phase,
        Progress,
        State, //
    },
    event::{
        DtoStatus,
        Operation, //
    },
};

impl Operation {
    /// Returns the name to print.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Send => "SEND",
            Self::SendWithInvalidate => "SEND_WITH_INVALIDATE",
            Self::RdmaWrite => "RDMA_WRITE",
            Self::RdmaRead => "RDMA_READ",
            Self::RdmaReadToRmr => "RDMA_READ_TO_RMR",
            Self::Receive => "RECEIVE",
            Self::ReceiveWithInvalidate => "RECEIVE_WITH_INVALIDATE",
            Self::BindMw => "BIND_MW",
            Self::LmrFmr => "LMR_FMR",
            Self::LmrInvalidate => "LMR_INVALIDATE",
            Self::RdmaWriteImmed => "RDMA_WRITE_IMMED",
            Self::RecvImmed => "RECV_IMMED",
            Self::FetchAdd => "FETCH_ADD",
            Self::CmpSwap => "CMP_SWAP",
            Self::RecvMsgImmed => "RECV_MSG_IMMED",
        }
    }
}

impl DtoStatus {
    /// Returns the name to print.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::Flushed => "FLUSHED",
            Self::LocalLength => "LOCAL_LENGTH",
            Self::LocalEp => "LOCAL_EP",
            Self::LocalProtection => "LOCAL_PROTECTION",
            Self::BadResponse => "BAD_RESPONSE",
            Self::RemoteAccess => "REMOTE_ACCESS",
            Self::RemoteResponder => "REMOTE_RESPONDER",
            Self::Transport => "TRANSPORT",
            Self::ReceiverNotReady => "RECEIVER_NOT_READY",
            Self::PartialPacket => "PARTIAL_PACKET",
            Self::RmrOperationFailed => "RMR_OPERATION_FAILED",
            Self::LocalMmError => "LOCAL_MM_ERROR",
        }
    }
}

impl State {
    /// Returns the name to print.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unconnected => "UNCONNECTED",
            Self::UnconfiguredUnconnected => "UNCONFIGURED_UNCONNECTED",
            Self::Reserved => "RESERVED",
            Self::UnconfiguredReserved => "UNCONFIGURED_RESERVED",
            Self::PassiveConnectionPending => "PASSIVE_CONNECTION_PENDING",
            Self::UnconfiguredPassive => "UNCONFIGURED_PASSIVE",
            Self::ActiveConnectionPending => "ACTIVE_CONNECTION_PENDING",
            Self::TentativeConnectionPending => "TENTATIVE_CONNECTION_PENDING",
            Self::UnconfiguredTentative => "UNCONFIGURED_TENTATIVE",
            Self::Connected => "CONNECTED",
            Self::DisconnectPending => "DISCONNECT_PENDING",
            Self::Disconnected => "DISCONNECTED",
            Self::CompletionPending => "COMPLETION_PENDING",
            Self::ConnectedSinglePath => "CONNECTED_SINGLE_PATH",
        }
    }
}

impl Phase {
    /// Returns the name to print: the name of the DAT state, or a more precise one where several
    /// phases share a state.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Draining => "DISCONNECT_PENDING_REQUESTS",
            Self::Flushing(FinalEvent::Disconnected) => "DISCONNECT_PENDING_FLUSH",
            Self::Flushing(FinalEvent::Broken) => "BROKEN_PENDING_FLUSH",
            Self::Gated(GatedSide::Active(_)) => "ESTABLISHED_GATED_ACTIVE",
            Self::Gated(GatedSide::Passive) => "ESTABLISHED_GATED_PASSIVE",
            Self::GatedEnded(FinalEvent::Disconnected) => "DISCONNECTED_GATED",
            Self::GatedEnded(FinalEvent::Broken) => "BROKEN_GATED",
            Self::Freed => "FREED",
            Self::Unconnected(_)
            | Self::Reserved(_)
            | Self::Passive(_)
            | Self::Tentative(_)
            | Self::Connecting(_)
            | Self::Accepting(_)
            | Self::Connected(_)
            | Self::Disconnected => self.state().name(),
        }
    }
}

impl Call {
    /// Returns the name to print.
    const fn name(self) -> &'static str {
        match self {
            Self::Connect(_) => "CONNECT",
            Self::ConnectAborted => "CONNECT_ABORTED",
            Self::Accept => "ACCEPT",
            Self::AcceptAborted => "ACCEPT_ABORTED",
            Self::Ready => "READY",
            Self::Disconnect(Close::Abrupt) => "DISCONNECT_ABRUPT",
            Self::Disconnect(Close::Graceful) => "DISCONNECT_GRACEFUL",
            Self::Reset => "RESET",
            Self::Free => "FREE",
            Self::Configured => "CONFIGURED",
            Self::Reserve => "RESERVE",
            Self::Requested => "REQUESTED",
            Self::Release => "RELEASE",
        }
    }
}

impl Network {
    /// Returns the name to print.
    const fn name(self) -> &'static str {
        match self {
            Self::Established => "ESTABLISHED",
            Self::EstablishedGated => "ESTABLISHED_GATED",
            Self::PeerRejected => "PEER_REJECTED",
            Self::NonPeerRejected => "NON_PEER_REJECTED",
            Self::Unreachable => "UNREACHABLE",
            Self::TimedOut => "TIMED_OUT",
            Self::AcceptFailed => "ACCEPT_FAILED",
            Self::PeerDisconnected => "PEER_DISCONNECTED",
            Self::Broken => "BROKEN",
            Self::DeviceRemoved => "DEVICE_REMOVED",
        }
    }
}

impl Progress {
    /// Returns the name to print.
    const fn name(self) -> &'static str {
        match self {
            Self::RequestsIdle => "REQUESTS_IDLE",
            Self::Idle => "IDLE",
        }
    }
}

impl Input {
    /// Returns the name to print.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Call(call) => call.name(),
            Self::Network(network) => network.name(),
            Self::Progress(progress) => progress.name(),
        }
    }
}

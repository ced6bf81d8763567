// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion flags: what a DTO may ask for, and what that means for its event.
//!
//! Two things decide whether the event of a completion wakes anybody: the *mode* that the Endpoint's
//! receives or requests were configured for, which is then that of the EVD as well (see
//! [`streams`](super::streams)), and the flags of the DTO itself, which the mode has to allow.

use super::event::{
    DtoStatus,
    Operation, //
};

/// `DAT_COMPLETION_FLAGS`: what a DTO asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompletionFlags(u32);

impl CompletionFlags {
    /// No event if the DTO succeeds.
    pub(crate) const SUPPRESS: Self = Self(0x01);
    /// The peer's receive is to wake a consumer that waits for solicited completions.
    pub(crate) const SOLICITED_WAIT: Self = Self(0x02);
    /// The event wakes nobody.
    pub(crate) const UNSIGNALLED: Self = Self(0x04);
    /// Not before earlier RDMA reads and atomic operations have completed.
    pub(crate) const BARRIER_FENCE: Self = Self(0x08);
    /// Of an Endpoint only: the threshold of a wait decides.
    const EVD_THRESHOLD: Self = Self(0x10);

    /// Every flag there is.
    pub(crate) const ALL: u32 = Self::SUPPRESS.0
        | Self::SOLICITED_WAIT.0
        | Self::UNSIGNALLED.0
        | Self::BARRIER_FENCE.0
        | Self::EVD_THRESHOLD.0;

    /// The flags that a DTO asks for; `None` unless its operation knows them all and its Endpoint is
    /// configured for them.
    pub(crate) const fn of_dto(bits: u32, operation: Operation, mode: Mode) -> Option<Self> {
        let request = Self::SUPPRESS.0 | Self::BARRIER_FENCE.0;
        let by_operation = match operation {
            Operation::Send | Operation::RdmaWriteImmed => request | Self::SOLICITED_WAIT.0,
            Operation::Receive
            | Operation::ReceiveWithInvalidate
            | Operation::RecvImmed
            | Operation::RecvMsgImmed => 0,
            Operation::FetchAdd
            | Operation::CmpSwap
            | Operation::RdmaWrite
            | Operation::RdmaRead
            | Operation::BindMw
            | Operation::LmrFmr
            | Operation::LmrInvalidate => request,
        };
        let by_mode = match mode {
            Mode::Unsignalled => Self::UNSIGNALLED.0,
            Mode::Threshold | Mode::Solicited => 0,
        };
        if bits & !(by_operation | by_mode) == 0 {
            Some(Self(bits))
        } else {
            None
        }
    }

    /// Whether every flag of `flags` is set.
    pub(crate) const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

/// Which completions wake who waits: the completion flags of an Endpoint's receives or requests, and
/// the configuration of the EVD that they go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each, once there are as many events as a wait wants: DAT_COMPLETION_EVD_THRESHOLD_FLAG, and
    /// the default.
    Threshold,
    /// Those that were not posted with DAT_COMPLETION_UNSIGNALLED_FLAG.
    Unsignalled,
    /// Receives of messages that were sent with DAT_COMPLETION_SOLICITED_WAIT_FLAG.
    Solicited,
}

impl Mode {
    /// Of an Endpoint's requests; `None` if there is no such configuration.
    pub(crate) const fn of_requests(bits: u32) -> Option<Self> {
        match CompletionFlags(bits) {
            CompletionFlags(0) | CompletionFlags::EVD_THRESHOLD => Some(Self::Threshold),
            CompletionFlags::UNSIGNALLED => Some(Self::Unsignalled),
            _ => None,
        }
    }

    /// Of an Endpoint's receives; `None` if there is no such configuration.
    pub(crate) const fn of_receives(bits: u32) -> Option<Self> {
        match CompletionFlags(bits) {
            CompletionFlags::SOLICITED_WAIT => Some(Self::Solicited),
            _ => Self::of_requests(bits),
        }
    }
}

/// What becomes of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// No event.
    Dropped,
    /// An event that wakes nobody.
    Quiet,
    /// An event that wakes the waiter.
    Wakes,
}

/// What becomes of a completion, by what the DTO asked for and how it ended.
///
/// Failures are never hidden: whatever was asked for, they are queued and wake. Nobody can tell from a
/// completion whether the message was solicited: who waits for such is woken by the completion
/// queue's notification, and never by an event that was drained.
pub(crate) const fn signals(flags: CompletionFlags, mode: Mode, status: DtoStatus) -> Signal {
    match (status, mode) {
        (DtoStatus::Success, _) if flags.has(CompletionFlags::SUPPRESS) => Signal::Dropped,
        (DtoStatus::Success, _) if flags.has(CompletionFlags::UNSIGNALLED) => Signal::Quiet,
        (DtoStatus::Success, Mode::Solicited) => Signal::Quiet,
        (DtoStatus::Success, Mode::Threshold | Mode::Unsignalled)
        | (
            DtoStatus::Flushed
            | DtoStatus::LocalLength
            | DtoStatus::LocalEp
            | DtoStatus::LocalProtection
            | DtoStatus::BadResponse
            | DtoStatus::RemoteAccess
            | DtoStatus::RemoteResponder
            | DtoStatus::Transport
            | DtoStatus::ReceiverNotReady
            | DtoStatus::PartialPacket
            | DtoStatus::RmrOperationFailed
            | DtoStatus::LocalMmError,
            _,
        ) => Signal::Wakes,
    }
}

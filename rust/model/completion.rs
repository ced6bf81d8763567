// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion flags of a Data Transfer Operation (DTO), and their effect on its event.
//!
//! Two settings decide whether a completion wakes the waiter of its Event Dispatcher (EVD):
//!
//! * the [`WakeMode`] that the Endpoint's receives or requests are configured for, which the EVD
//!   adopts (see [`streams`](super::streams));
//! * the flags of the DTO, as far as the mode allows them.

use super::event::{
    DtoStatus,
    Operation, //
};

/// Completion flags of a DTO: `DAT_COMPLETION_FLAGS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompletionFlags(u32);

impl CompletionFlags {
    /// Produce no event if the DTO succeeds.
    pub(crate) const SUPPRESS: Self = Self(0x01);
    /// Wake the peer's consumer if it waits for solicited completions.
    pub(crate) const SOLICITED_WAIT: Self = Self(0x02);
    /// Queue an event that wakes no waiter.
    pub(crate) const UNSIGNALLED: Self = Self(0x04);
    /// Start only after earlier RDMA reads and atomic operations have completed.
    pub(crate) const BARRIER_FENCE: Self = Self(0x08);
    /// Configuration of an Endpoint: wake the waiter at its threshold. Not a flag of a DTO.
    const EVD_THRESHOLD: Self = Self(0x10);
    /// Produce no event, not even for a failure. Not a flag of DAT: it distinguishes the requests
    /// of kDAPL. It includes [`CompletionFlags::SUPPRESS`].
    pub(crate) const MARKER: Self = Self(0x8000_0000 | Self::SUPPRESS.0);
    /// The DTO was posted after the end of the connection. Not a flag of DAT.
    pub(crate) const AFTER_END: Self = Self(0x4000_0000);
    /// Start an invalidation only after earlier requests have completed. Kernel consumers only.
    pub(crate) const LMR_INVALIDATE_FENCE: Self = Self(0x20);
    /// Report the success of a registration with the completion of the next request only. Not a
    /// flag of DAT. It includes [`CompletionFlags::SUPPRESS`]. Kernel consumers only.
    pub(crate) const WITH_NEXT: Self = Self(Self::WITH_NEXT_BIT | Self::SUPPRESS.0);
    const WITH_NEXT_BIT: u32 = 0x40;

    /// All flags of processes.
    pub(crate) const ALL: u32 = Self::SUPPRESS.0
        | Self::SOLICITED_WAIT.0
        | Self::UNSIGNALLED.0
        | Self::BARRIER_FENCE.0
        | Self::EVD_THRESHOLD.0;

    /// All flags of kernel consumers.
    pub(crate) const ALL_OF_KERNEL: u32 =
        Self::ALL | Self::LMR_INVALIDATE_FENCE.0 | Self::WITH_NEXT.0;

    /// Converts the flags of a DTO. `None` if the operation does not support a flag, or if the
    /// Endpoint is not configured for it.
    #[inline]
    pub(crate) const fn of_dto(bits: u32, operation: Operation, mode: WakeMode) -> Option<Self> {
        // Most DTOs have none.
        if bits == 0 {
            return Some(Self(0));
        }
        let request = Self::SUPPRESS.0 | Self::BARRIER_FENCE.0;
        let by_operation = match operation {
            Operation::Send | Operation::SendWithInvalidate | Operation::RdmaWriteImmed => {
                request | Self::SOLICITED_WAIT.0
            }
            Operation::Receive
            | Operation::ReceiveWithInvalidate
            | Operation::RecvImmed
            | Operation::RecvMsgImmed => 0,
            Operation::FetchAdd
            | Operation::CmpSwap
            | Operation::RdmaWrite
            | Operation::RdmaRead
            | Operation::RdmaReadToRmr
            | Operation::BindMw => request,
            Operation::LmrFmr => request | Self::WITH_NEXT_BIT,
            Operation::LmrInvalidate => request | Self::LMR_INVALIDATE_FENCE.0,
        };
        let by_mode = match mode {
            WakeMode::Unsignalled => Self::UNSIGNALLED.0,
            WakeMode::Threshold | WakeMode::Solicited => 0,
        };
        let flags = Self(bits);
        let is_complete = bits & Self::WITH_NEXT_BIT == 0 || flags.has(Self::WITH_NEXT);
        if is_complete && bits & !(by_operation | by_mode) == 0 {
            Some(flags)
        } else {
            None
        }
    }

    /// Returns these flags and `flags`.
    pub(crate) const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// Returns whether all of `flags` are set.
    pub(crate) const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns whether the request has to wait for earlier ones. The verbs have one fence, which
    /// serves both flags.
    pub(crate) const fn is_fenced(self) -> bool {
        self.has(Self::BARRIER_FENCE) || self.has(Self::LMR_INVALIDATE_FENCE)
    }
}

/// Condition under which completions wake a waiter.
///
/// It is configured by the completion flags of an Endpoint's receives or requests. The EVD that
/// they feed adopts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeMode {
    /// Each completion counts, and the waiter is woken at its threshold. The default, and
    /// DAT_COMPLETION_EVD_THRESHOLD_FLAG.
    Threshold,
    /// Completions of DTOs that were posted without DAT_COMPLETION_UNSIGNALLED_FLAG wake.
    Unsignalled,
    /// Receives of messages that were sent with DAT_COMPLETION_SOLICITED_WAIT_FLAG wake.
    Solicited,
}

impl WakeMode {
    /// Returns the mode that these flags configure for requests; `None` if the combination is not
    /// valid.
    pub(crate) const fn of_requests(bits: u32) -> Option<Self> {
        match CompletionFlags(bits) {
            CompletionFlags(0) | CompletionFlags::EVD_THRESHOLD => Some(Self::Threshold),
            CompletionFlags::UNSIGNALLED => Some(Self::Unsignalled),
            _ => None,
        }
    }

    /// Returns the mode that these flags configure for receives; `None` if the combination is not
    /// valid.
    pub(crate) const fn of_receives(bits: u32) -> Option<Self> {
        match CompletionFlags(bits) {
            CompletionFlags::SOLICITED_WAIT => Some(Self::Solicited),
            _ => Self::of_requests(bits),
        }
    }
}

/// Event that a completion produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notification {
    /// No event.
    None,
    /// An event that wakes no waiter.
    Quiet,
    /// An event that wakes the waiter.
    Wake,
}

/// Decides which event a completion produces.
///
/// A failure of a DTO is never suppressed: it is queued and wakes regardless of the flags. A
/// completion does not say whether its message was solicited. So a waiter for solicited completions
/// is woken by the notification of the completion queue, and never by a successful completion that
/// was drained.
pub(crate) const fn notification_for(
    flags: CompletionFlags,
    mode: WakeMode,
    status: DtoStatus,
) -> Notification {
    match (status, mode) {
        (DtoStatus::Success, _) if flags.has(CompletionFlags::SUPPRESS) => Notification::None,
        (DtoStatus::Success, _) if flags.has(CompletionFlags::UNSIGNALLED) => Notification::Quiet,
        (DtoStatus::Success, WakeMode::Solicited) => Notification::Quiet,
        _ if flags.has(CompletionFlags::MARKER) => Notification::None,
        (DtoStatus::Success, WakeMode::Threshold | WakeMode::Unsignalled)
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
        ) => Notification::Wake,
    }
}

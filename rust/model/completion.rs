// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion flags, and what they mean for the event of a DTO.

use super::event::DtoStatus;

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
    /// Not before earlier RDMA reads have completed.
    pub(crate) const BARRIER_FENCE: Self = Self(0x08);
    /// The threshold of the EVD decides who is woken.
    pub(crate) const EVD_THRESHOLD: Self = Self(0x10);

    /// Every flag there is.
    const ALL: u32 = Self::SUPPRESS.0
        | Self::SOLICITED_WAIT.0
        | Self::UNSIGNALLED.0
        | Self::BARRIER_FENCE.0
        | Self::EVD_THRESHOLD.0;

    /// The flags of a word; `None` if it has a bit that is no flag.
    pub(crate) const fn from_bits(bits: u32) -> Option<Self> {
        if bits & !Self::ALL == 0 {
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
/// Failures are never hidden: whatever was asked for, they are queued and wake.
pub(crate) const fn signals(flags: CompletionFlags, status: DtoStatus) -> Signal {
    match status {
        DtoStatus::Success if flags.has(CompletionFlags::SUPPRESS) => Signal::Dropped,
        DtoStatus::Success if flags.has(CompletionFlags::UNSIGNALLED) => Signal::Quiet,
        DtoStatus::Success
        | DtoStatus::Flushed
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
        | DtoStatus::LocalMmError => Signal::Wakes,
    }
}

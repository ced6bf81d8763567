// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What DAT says of each operation: its place in the call that posts it, and what it may touch.

use super::{
    code::{
        DatError,
        DatResult,
        Kind,
        Subtype, //
    },
    event::Operation,
    handle::Direction,
};

/// Bytes that an atomic operation works on, and to a multiple of which their address is aligned.
pub(crate) const ATOMIC_SIZE: u64 = 8;

/// Positions among the arguments of the call that posts an operation, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// How many local segments there are; of an atomic operation, which has one, that segment.
    pub(crate) segments: u8,
    /// The peer's memory; 0 if there is none.
    pub(crate) remote: u8,
    /// The completion flags.
    pub(crate) flags: u8,
}

impl Operation {
    /// Whether it is of the InfiniBand extensions, whose completions are events of their own.
    pub(crate) const fn is_extension(self) -> bool {
        match self {
            Self::RdmaWriteImmed
            | Self::RecvImmed
            | Self::FetchAdd
            | Self::CmpSwap
            | Self::RecvMsgImmed => true,
            Self::Send
            | Self::RdmaWrite
            | Self::RdmaRead
            | Self::Receive
            | Self::ReceiveWithInvalidate
            | Self::BindMw
            | Self::LmrFmr
            | Self::LmrInvalidate => false,
        }
    }

    /// Whether it changes 64 bits of the peer's memory in one go.
    pub(crate) const fn is_atomic(self) -> bool {
        matches!(self, Self::FetchAdd | Self::CmpSwap)
    }

    /// Which queue of a QP it goes to.
    pub(crate) const fn direction(self) -> Direction {
        match self {
            Self::Receive | Self::ReceiveWithInvalidate | Self::RecvImmed | Self::RecvMsgImmed => {
                Direction::Receive
            }
            Self::Send
            | Self::RdmaWrite
            | Self::RdmaRead
            | Self::BindMw
            | Self::LmrFmr
            | Self::LmrInvalidate
            | Self::RdmaWriteImmed
            | Self::FetchAdd
            | Self::CmpSwap => Direction::Request,
        }
    }

    /// Whether it writes to its local segments; else it reads them.
    pub(crate) const fn writes_here(self) -> bool {
        match self {
            Self::Receive
            | Self::ReceiveWithInvalidate
            | Self::RecvImmed
            | Self::RecvMsgImmed
            | Self::RdmaRead
            | Self::FetchAdd
            | Self::CmpSwap => true,
            Self::Send
            | Self::RdmaWrite
            | Self::BindMw
            | Self::LmrFmr
            | Self::LmrInvalidate
            | Self::RdmaWriteImmed => false,
        }
    }

    /// Where the call that posts it has what may be wrong.
    pub(crate) const fn arguments(self) -> Arguments {
        let (segments, remote, flags) = match self {
            Self::RdmaWrite | Self::RdmaRead => (2, 5, 6),
            Self::RdmaWriteImmed => (2, 5, 7),
            Self::FetchAdd => (3, 5, 6),
            Self::CmpSwap => (4, 6, 7),
            Self::Send
            | Self::Receive
            | Self::ReceiveWithInvalidate
            | Self::BindMw
            | Self::LmrFmr
            | Self::LmrInvalidate
            | Self::RecvImmed
            | Self::RecvMsgImmed => (2, 0, 5),
        };
        Arguments {
            segments,
            remote,
            flags,
        }
    }

    /// Whether it may go from `length` bytes of local memory to this place at the peer, or from there.
    /// A remote length of 0 is not looked at.
    ///
    /// # Errors
    ///
    /// LENGTH_ERROR if the remote segment is too short, or the local one of an atomic operation not of
    /// 64 bits; INVALID_PARAMETER if an atomic operation is to work on an address that is not aligned.
    pub(crate) const fn may_reach(
        self,
        length: u64,
        remote_address: u64,
        remote_length: u32,
    ) -> DatResult {
        let Arguments { remote, .. } = self.arguments();
        if remote == 0 {
            return Ok(());
        }
        // A widening cast; `u64::from` is not `const`.
        let too_short = remote_length != 0 && length > remote_length as u64;
        if too_short || (self.is_atomic() && length != ATOMIC_SIZE) {
            return Err(DatError::new(Kind::LengthError, Subtype::Unspecified));
        }
        if self.is_atomic() && remote_address % ATOMIC_SIZE != 0 {
            return Err(DatError::invalid_parameter(remote));
        }
        Ok(())
    }
}

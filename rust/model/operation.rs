// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Properties of each type of Data Transfer Operation (DTO).

use super::{
    code::{
        order,
        Arg,
        DatError,
        DatResult,
        Kind,
        Order,
        Subtype, //
    },
    event::Operation,
    handle::Direction,
};

/// Bytes of the operand of an atomic operation. Its address must be aligned to them.
pub(crate) const ATOMIC_SIZE: u64 = 8;

impl Operation {
    /// Returns whether the operation belongs to the InfiniBand extensions, whose completions have
    /// an event type of their own.
    pub(crate) const fn is_extension(self) -> bool {
        match self {
            Self::RdmaWriteImmed
            | Self::RecvImmed
            | Self::FetchAdd
            | Self::CmpSwap
            | Self::RecvMsgImmed => true,
            Self::Send
            | Self::SendWithInvalidate
            | Self::RdmaWrite
            | Self::RdmaRead
            | Self::RdmaReadToRmr
            | Self::Receive
            | Self::ReceiveWithInvalidate
            | Self::BindMw
            | Self::LmrFmr
            | Self::LmrInvalidate => false,
        }
    }

    /// Returns whether the operation changes 64 bits of the peer's memory atomically.
    pub(crate) const fn is_atomic(self) -> bool {
        matches!(self, Self::FetchAdd | Self::CmpSwap)
    }

    /// Returns whether the operation counts as an RDMA read of the peer's memory.
    pub(crate) const fn reads_remotely(self) -> bool {
        self.is_rdma_read() || self.is_atomic()
    }

    /// Returns whether the operation is an RDMA read.
    pub(crate) const fn is_rdma_read(self) -> bool {
        matches!(self, Self::RdmaRead | Self::RdmaReadToRmr)
    }

    /// Returns whether RMR contexts name the operation's local memory. LMR contexts name that of
    /// the others.
    pub(crate) const fn names_local_rmrs(self) -> bool {
        matches!(self, Self::RdmaReadToRmr)
    }

    /// Returns whether the operation changes memory regions of this side, and transfers no data.
    pub(crate) const fn is_local(self) -> bool {
        match self {
            Self::BindMw | Self::LmrFmr | Self::LmrInvalidate => true,
            Self::Send
            | Self::SendWithInvalidate
            | Self::RdmaWrite
            | Self::RdmaRead
            | Self::RdmaReadToRmr
            | Self::Receive
            | Self::ReceiveWithInvalidate
            | Self::RdmaWriteImmed
            | Self::RecvImmed
            | Self::FetchAdd
            | Self::CmpSwap
            | Self::RecvMsgImmed => false,
        }
    }

    /// Returns the type that the completion event reports.
    pub(crate) const fn reported(self) -> Self {
        match self {
            Self::SendWithInvalidate => Self::Send,
            Self::RdmaReadToRmr => Self::RdmaRead,
            other => other,
        }
    }

    /// Returns the queue of a queue pair that the operation is posted to.
    pub(crate) const fn direction(self) -> Direction {
        match self {
            Self::Receive | Self::ReceiveWithInvalidate | Self::RecvImmed | Self::RecvMsgImmed => {
                Direction::Receive
            }
            Self::Send
            | Self::SendWithInvalidate
            | Self::RdmaWrite
            | Self::RdmaRead
            | Self::RdmaReadToRmr
            | Self::BindMw
            | Self::LmrFmr
            | Self::LmrInvalidate
            | Self::RdmaWriteImmed
            | Self::FetchAdd
            | Self::CmpSwap => Direction::Request,
        }
    }

    /// Returns whether the operation writes to its local segments. Otherwise it reads them.
    pub(crate) const fn writes_local_memory(self) -> bool {
        match self {
            Self::Receive
            | Self::ReceiveWithInvalidate
            | Self::RecvImmed
            | Self::RecvMsgImmed
            | Self::RdmaRead
            | Self::RdmaReadToRmr
            | Self::FetchAdd
            | Self::CmpSwap => true,
            Self::Send
            | Self::SendWithInvalidate
            | Self::RdmaWrite
            | Self::BindMw
            | Self::LmrFmr
            | Self::LmrInvalidate
            | Self::RdmaWriteImmed => false,
        }
    }

    /// Returns whether the operation reads or writes memory of the peer that the consumer names.
    pub(crate) const fn names_remote_memory(self) -> bool {
        match self {
            Self::RdmaWrite
            | Self::RdmaRead
            | Self::RdmaReadToRmr
            | Self::RdmaWriteImmed
            | Self::FetchAdd
            | Self::CmpSwap => true,
            Self::Send
            | Self::SendWithInvalidate
            | Self::Receive
            | Self::ReceiveWithInvalidate
            | Self::BindMw
            | Self::LmrFmr
            | Self::LmrInvalidate
            | Self::RecvImmed
            | Self::RecvMsgImmed => false,
        }
    }

    /// Returns the order of the arguments of the call that posts this operation.
    pub(crate) const fn order(self) -> &'static Order {
        match self {
            Self::RdmaWrite => order::dat_ep_post_rdma_write,
            Self::RdmaRead => order::dat_ep_post_rdma_read,
            Self::RdmaReadToRmr => order::dat_ep_post_rdma_read_to_rmr,
            Self::RdmaWriteImmed => order::dat_ib_post_rdma_write_immed,
            Self::FetchAdd => order::dat_ib_post_fetch_and_add,
            Self::CmpSwap => order::dat_ib_post_cmp_and_swap,
            Self::Receive | Self::ReceiveWithInvalidate | Self::RecvImmed | Self::RecvMsgImmed => {
                order::dat_ep_post_recv
            }
            Self::Send => order::dat_ep_post_send,
            Self::LmrFmr => order::dat_lmr_fmr,
            Self::LmrInvalidate => order::dat_lmr_invalidate,
            Self::SendWithInvalidate => order::dat_ep_post_send_with_invalidate,
            Self::BindMw => order::dat_rmr_bind,
        }
    }

    /// Checks the lengths and the alignment of a transfer between `length` bytes of local memory
    /// and the peer's memory. A `remote_length` of 0 is not checked.
    ///
    /// # Errors
    ///
    /// * LENGTH_ERROR if the remote segment is too short, or if the local segment of an atomic
    ///   operation does not have 64 bits;
    /// * INVALID_PARAMETER if the remote address of an atomic operation is not aligned.
    #[inline]
    pub(crate) const fn check_remote(
        self,
        length: u64,
        remote_address: u64,
        remote_length: u32,
    ) -> DatResult {
        if !self.names_remote_memory() {
            return Ok(());
        }
        // A widening cast; `u64::from` is not `const`.
        let too_short = remote_length != 0 && length > remote_length as u64;
        if too_short || (self.is_atomic() && length != ATOMIC_SIZE) {
            return Err(DatError::new(Kind::LengthError, Subtype::Unspecified));
        }
        if self.is_atomic() && remote_address % ATOMIC_SIZE != 0 {
            return Err(DatError::Invalid(Arg::RemoteSegment));
        }
        Ok(())
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! InfiniBand extensions of DAT 2.0 that an adapter supports.

use super::{
    code::{
        DatResult,
        Kind, //
    },
    event::Operation,
};

/// Set of the extended operations of an adapter: `KDAPL_EXTENSION_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extensions(u32);

impl Extensions {
    /// RDMA write with immediate data.
    const IMMED_DATA: u32 = 0x01;
    /// Fetch and add.
    const FETCH_AND_ADD: u32 = 0x02;
    /// Compare and swap.
    const CMP_AND_SWAP: u32 = 0x04;

    /// Returns the operations of a device. iWARP supports none of them.
    pub(crate) const fn new(is_iwarp: bool, has_atomics: bool) -> Self {
        Self(match (is_iwarp, has_atomics) {
            (true, _) => 0,
            (false, false) => Self::IMMED_DATA,
            (false, true) => Self::IMMED_DATA | Self::FETCH_AND_ADD | Self::CMP_AND_SWAP,
        })
    }

    /// Returns the set as a bit mask.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether atomic operations of a peer can access local memory.
    pub(crate) const fn has_atomics(self) -> bool {
        self.0 & (Self::FETCH_AND_ADD | Self::CMP_AND_SWAP) != 0
    }

    /// Checks whether the adapter supports this operation.
    ///
    /// # Errors
    ///
    /// MODEL_NOT_SUPPORTED if it does not.
    pub(crate) fn check_supported(self, operation: Operation) -> DatResult {
        let needed = match operation {
            Operation::RdmaWriteImmed | Operation::RecvImmed | Operation::RecvMsgImmed => {
                Self::IMMED_DATA
            }
            Operation::FetchAdd => Self::FETCH_AND_ADD,
            Operation::CmpSwap => Self::CMP_AND_SWAP,
            Operation::Send
            | Operation::SendWithInvalidate
            | Operation::RdmaWrite
            | Operation::RdmaRead
            | Operation::RdmaReadToRmr
            | Operation::Receive
            | Operation::ReceiveWithInvalidate
            | Operation::BindMw
            | Operation::LmrFmr
            | Operation::LmrInvalidate => 0,
        };
        if needed & !self.0 != 0 {
            return Err(Kind::ModelNotSupported.into());
        }
        Ok(())
    }
}

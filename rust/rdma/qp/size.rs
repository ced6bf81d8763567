// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Sizes of a queue pair.

use kdapl_bindings as bindings;

/// Size of a queue pair.
#[derive(Clone, Copy)]
pub(crate) struct Capacity {
    pub(crate) max_send_wr: u32,
    pub(crate) max_recv_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_recv_sge: u32,
}

impl Capacity {
    /// Returns the capacity of a queue pair that takes its receives from a shared receive queue.
    /// Its own queue of receives has no entries: mlx4 refuses any (`set_rq_size()`).
    pub(super) fn without_receives(self) -> Self {
        Self {
            max_recv_wr: 0,
            max_recv_sge: 0,
            ..self
        }
    }

    /// Returns the capacity with at least one entry in each queue. Drivers round up to a power of
    /// two, and shift by the logarithm, which 0 does not have.
    pub(super) fn with_receives(self) -> Self {
        Self {
            max_recv_wr: self.max_recv_wr.max(1),
            max_recv_sge: self.max_recv_sge.max(1),
            ..self
        }
    }

    /// Converts the capacity for a driver.
    pub(super) fn as_raw(self) -> bindings::ib_qp_cap {
        bindings::ib_qp_cap {
            max_send_wr: self.max_send_wr.max(1),
            max_recv_wr: self.max_recv_wr,
            max_send_sge: self.max_send_sge.max(1),
            max_recv_sge: self.max_recv_sge,
            ..Default::default()
        }
    }
}

/// Limits of concurrent RDMA reads that both sides agreed on.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReadDepth {
    /// Reads of the peer that may be in progress at this side.
    pub(crate) responder: u8,
    /// Reads of this side that may be in progress at the peer.
    pub(crate) initiator: u8,
}

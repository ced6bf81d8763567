// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the sides of a connection tell each other.

use crate::rdma::qp::ReadDepth;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Retries of the transport before it gives a peer up. One more would be allowed, but soft-RoCE takes
/// 7 for ever, as it is right for [`RNR_RETRY_COUNT`] only.
pub(in crate::rdma) const RETRY_COUNT: u8 = 6;

/// Retries while the peer has no receive posted: for ever. A peer that is slow is not dead.
const RNR_RETRY_COUNT: u8 = 7;

/// What a connect or an accept tells the peer.
pub(crate) struct ConnParam<'a> {
    /// For the peer's consumer.
    pub(crate) private_data: &'a [u8],
    /// RDMA reads to agree on.
    pub(crate) depth: ReadDepth,
    /// The queue pair.
    pub(crate) qp_num: u32,
}

impl ConnParam<'_> {
    pub(super) fn to_raw(&self) -> Result<bindings::rdma_conn_param> {
        Ok(bindings::rdma_conn_param {
            private_data: self.private_data.as_ptr().cast(),
            private_data_len: u8::try_from(self.private_data.len()).map_err(|_| EINVAL)?,
            responder_resources: self.depth.responder,
            initiator_depth: self.depth.initiator,
            retry_count: RETRY_COUNT,
            rnr_retry_count: RNR_RETRY_COUNT,
            qp_num: self.qp_num,
            ..Default::default()
        })
    }
}

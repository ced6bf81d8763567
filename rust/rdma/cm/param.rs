// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the sides of a connection tell each other.

use crate::rdma::qp::ReadDepth;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Retries that the request asks of the peer's transport. Ours are in [`Qp::connect`], and so are those
/// of a peer with kDAPL. 7 would be endless on soft-RoCE.
///
/// [`Qp::connect`]: crate::rdma::qp::Qp::connect
const RETRY_COUNT: u8 = 6;

/// Retries while the peer has no receive posted: endless. A peer that is slow is not dead.
const RNR_RETRY_COUNT: u8 = 7;

/// What a connect or an accept tells the peer.
pub(crate) struct ConnParam<'a> {
    /// For the peer's consumer.
    pub(crate) private_data: &'a [u8],
    /// RDMA reads to agree on.
    pub(crate) depth: ReadDepth,
}

impl ConnParam<'_> {
    /// For the queue pair with this number.
    pub(super) fn to_raw(&self, qp_num: u32) -> Result<bindings::rdma_conn_param> {
        Ok(bindings::rdma_conn_param {
            private_data: self.private_data.as_ptr().cast(),
            private_data_len: u8::try_from(self.private_data.len()).map_err(|_| EINVAL)?,
            responder_resources: self.depth.responder,
            initiator_depth: self.depth.initiator,
            retry_count: RETRY_COUNT,
            rnr_retry_count: RNR_RETRY_COUNT,
            qp_num,
            ..Default::default()
        })
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Parameters that the two sides of a connection exchange.

use crate::rdma::qp::ReadDepth;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Retry count that the request asks of the peer's transport. [`Qp::connect`] sets the count of the
/// local queue pair, and overrides the requested one at a peer with kDAPL. The value 7 would mean
/// endless retries on soft-RoCE.
///
/// [`Qp::connect`]: crate::rdma::qp::Qp::connect
const RETRY_COUNT: u8 = 6;

/// Retry count while the peer has no receive posted. 7 means endless: a slow peer is not a dead
/// one.
const RNR_RETRY_COUNT: u8 = 7;

/// Parameters of a connect or an accept.
pub(crate) struct ConnParam<'a> {
    /// Private data for the peer's consumer.
    pub(crate) private_data: &'a [u8],
    /// Limits of RDMA reads that this side proposes.
    pub(crate) depth: ReadDepth,
    /// Whether the queue pair uses a shared receive queue.
    pub(crate) srq: bool,
}

impl ConnParam<'_> {
    /// Converts the parameters for the queue pair with this number.
    pub(super) fn to_raw(&self, qp_num: u32) -> Result<bindings::rdma_conn_param> {
        Ok(bindings::rdma_conn_param {
            private_data: self.private_data.as_ptr().cast(),
            private_data_len: u8::try_from(self.private_data.len()).map_err(|_| EINVAL)?,
            responder_resources: self.depth.responder,
            initiator_depth: self.depth.initiator,
            retry_count: RETRY_COUNT,
            rnr_retry_count: RNR_RETRY_COUNT,
            srq: self.srq.into(),
            qp_num,
            ..Default::default()
        })
    }
}

#[kunit_tests(kdapl_rdma_cm_param)]
mod tests {
    use super::*;

    fn to_raw(private_data: &[u8]) -> Result<bindings::rdma_conn_param> {
        let depth = ReadDepth {
            responder: 3,
            initiator: 4,
        };
        ConnParam {
            private_data,
            depth,
            srq: false,
        }
        .to_raw(9)
    }

    #[test]
    fn the_length_of_private_data_has_eight_bits() {
        assert_eq!(to_raw(&[0; 255]).map(|raw| raw.private_data_len), Ok(255));
        assert_eq!(to_raw(&[0; 256]).err(), Some(EINVAL));
    }

    #[test]
    fn each_depth_has_its_own_side() -> Result {
        let raw = to_raw(&[])?;
        assert_eq!((raw.responder_resources, raw.initiator_depth), (3, 4));
        Ok(())
    }
}

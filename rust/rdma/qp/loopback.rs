// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connects a queue pair to itself.

use super::{
    Handler,
    Qp, //
};
use crate::rdma::cq::Handler as CqHandler;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Encoded ACK time-out, retry counts and RNR timer. No packet is ever sent, so any will do.
const TIMEOUT: u8 = 14;
const RETRIES: u8 = 7;
const RNR_TIMER: u8 = 12;

impl<H: Handler, C: CqHandler> Qp<H, C> {
    /// Moves the queue pair of a port from INIT to RTS, with itself as its peer. It is meant for
    /// requests that the device carries out without a peer, as those that register memory.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` over iWARP, where a queue pair needs a TCP connection; `ENODEV` if the port has
    /// no address; `ENOMEM`; any other error of the driver.
    pub(crate) fn connect_to_itself(&self, port: u32) -> Result {
        self.receive_from_itself(port)?;
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_RTS,
            timeout: TIMEOUT,
            retry_cnt: RETRIES,
            rnr_retry: RETRIES,
            max_rd_atomic: 1,
            ..Default::default()
        };
        self.state.lock().modify(
            &mut attr,
            bindings::ib_qp_attr_mask_IB_QP_STATE
                | bindings::ib_qp_attr_mask_IB_QP_TIMEOUT
                | bindings::ib_qp_attr_mask_IB_QP_RETRY_CNT
                | bindings::ib_qp_attr_mask_IB_QP_RNR_RETRY
                | bindings::ib_qp_attr_mask_IB_QP_SQ_PSN
                | bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC,
        )
    }

    /// Moves the queue pair from INIT to RTR.
    fn receive_from_itself(&self, port: u32) -> Result {
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_RTR,
            dest_qp_num: self.number(),
            max_dest_rd_atomic: 1,
            min_rnr_timer: RNR_TIMER,
            ..Default::default()
        };
        let device = self._pd.device().as_ptr();
        // SAFETY: The device is alive, and `attr` is initialised.
        let ret = unsafe { bindings::kdapl_helper_path_to_self(device, port, &raw mut attr) };
        kernel::error::to_result(ret)?;
        let result = self.state.lock().modify(
            &mut attr,
            bindings::ib_qp_attr_mask_IB_QP_STATE
                | bindings::ib_qp_attr_mask_IB_QP_AV
                | bindings::ib_qp_attr_mask_IB_QP_PATH_MTU
                | bindings::ib_qp_attr_mask_IB_QP_DEST_QPN
                | bindings::ib_qp_attr_mask_IB_QP_RQ_PSN
                | bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC
                | bindings::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER,
        );
        // SAFETY: The helper has filled in the address vector, which is not used afterwards.
        unsafe { bindings::rdma_destroy_ah_attr(&raw mut attr.ah_attr) };
        result
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Lists the padding of messages.

use crate::raw::number;
use libkdapl::raw::call;
use libkdapl::sys::*;

/// Returns the name, number, size and offset of the padding of each message with padding.
pub fn fields() -> [(&'static str, u32, usize, usize); 25] {
    macro_rules! pads {
        ($($call:ident: $message:ident,)+) => {
            [$((
                call::$call.name(),
                number(call::$call),
                size_of::<$message>(),
                std::mem::offset_of!($message, pad),
            ),)+]
        };
    }
    pads![
        IA_CLOSE: kdapl_ia_close,
        EVD_CREATE: kdapl_evd_create,
        EVD_WAIT: kdapl_evd_wait,
        EVD_DEQUEUE: kdapl_evd_wait,
        EVD_RESIZE: kdapl_evd_resize,
        CNO_CREATE: kdapl_cno,
        CNO_QUERY: kdapl_cno_query,
        CNO_MODIFY_AGENT: kdapl_cno,
        CNO_FD: kdapl_cno_fd,
        EP_CREATE: kdapl_ep_create,
        EP_GET_STATUS: kdapl_ep_status,
        EP_CONNECT: kdapl_ep_connect,
        EP_COMMON_CONNECT: kdapl_ep_common_connect,
        EP_DISCONNECT: kdapl_ep_disconnect,
        EP_PRIVATE_DATA: kdapl_ep_private_data,
        CSP_CREATE: kdapl_csp,
        CR_QUERY: kdapl_cr_query,
        CR_ACCEPT: kdapl_cr_answer,
        CR_REJECT: kdapl_cr_answer,
        LMR_CREATE: kdapl_lmr_create,
        LMR_QUERY: kdapl_lmr_query,
        RMR_BIND: kdapl_rmr_bind,
        SRQ_CREATE: kdapl_srq_create,
        SRQ_RESIZE: kdapl_srq_number,
        SRQ_SET_LW: kdapl_srq_number,
    ]
}

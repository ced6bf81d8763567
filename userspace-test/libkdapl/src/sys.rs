// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Messages of `/dev/kdapl`, generated from `include/uapi/rdma/kdapl.h`.
//!
//! bindgen's layout tests compare each offset with the C compiler's. The sizes below are the
//! published ABI and change only with its version.
#![allow(unsafe_code, missing_docs, non_camel_case_types)]

include!(concat!(env!("OUT_DIR"), "/uapi.rs"));

impl Default for kdapl_ep_attr {
    /// Asks for the default of every attribute.
    fn default() -> Self {
        Self {
            max_message_size: 0,
            max_rdma_size: 0,
            service_type: 0,
            qos: 0,
            recv_completion_flags: 0,
            request_completion_flags: 0,
            max_recv_dtos: 0,
            max_request_dtos: 0,
            max_recv_iov: 0,
            max_request_iov: 0,
            max_rdma_read_in: KDAPL_RDMA_READS_DEFAULT,
            max_rdma_read_out: KDAPL_RDMA_READS_DEFAULT,
            max_rdma_read_iov: 0,
            max_rdma_write_iov: 0,
            peer_timeout_ms: 0,
            keepalive_ms: 0,
            reserved: [0; 14],
        }
    }
}

macro_rules! published_sizes {
    ($($message:ident = $bytes:literal),* $(,)?) => {
        $(const _: () = assert!(
            size_of::<$message>() == $bytes,
            concat!("struct ", stringify!($message), " is not of its published size")
        );)*
    };
}

published_sizes! {
    kdapl_hdr = 16, kdapl_sockaddr = 128, kdapl_event = 64, kdapl_triplet = 16, kdapl_dto = 72,
    kdapl_ep_attr = 128, kdapl_device = 304, kdapl_port = 240, kdapl_ia_open = 104,
    kdapl_ia_query = 432, kdapl_ia_stat = 256,
    kdapl_ia_close = 24, kdapl_handle = 24, kdapl_evd_create = 48, kdapl_evd_query = 56,
    kdapl_evd_wait = 64, kdapl_evd_post_se = 32, kdapl_evd_modify_cno = 32, kdapl_evd_resize = 32,
    kdapl_cno = 32, kdapl_cno_query = 40, kdapl_cno_wait = 40, kdapl_cno_fd = 32,
    kdapl_evd_fd = 32, kdapl_trigger = 8,
    kdapl_ep_create = 200, kdapl_ep_query = 488, kdapl_ep_modify = 192, kdapl_ep_status = 48,
    kdapl_ep_connect = 192, kdapl_ep_dup_connect = 56, kdapl_ep_common_connect = 176,
    kdapl_ep_disconnect = 32, kdapl_ep_private_data = 288, kdapl_ep_post = 96,
    kdapl_ep_submit = 88, kdapl_ep_watermark = 32, kdapl_ep_recv_query = 32,
    kdapl_psp_create = 48, kdapl_psp_query = 48, kdapl_rsp = 48,
    kdapl_csp = 176, kdapl_cr_query = 432, kdapl_cr_answer = 48, kdapl_cr_handoff = 32,
    kdapl_lmr_create = 88, kdapl_lmr_query = 88, kdapl_rmr_create = 32, kdapl_rmr_bind = 88,
    kdapl_rmr_query = 64, kdapl_srq_create = 48, kdapl_srq_post = 48, kdapl_srq_query = 64,
    kdapl_srq_number = 32, kdapl_uring_sqe = 16, kdapl_uring_cancel = 32,
    kdapl_uring_stream = 48,
}

// First published sizes of the structs that have been extended.
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(kdapl_ia_query, abi_version) == KDAPL_IA_QUERY_SIZE_MIN as usize);
    assert!(offset_of!(kdapl_dto, remote) == KDAPL_DTO_SIZE_MIN as usize);
    assert!(offset_of!(kdapl_ep_post, dto.remote) == KDAPL_EP_POST_SIZE_MIN as usize);
    assert!(size_of::<kdapl_event>() == KDAPL_EVENT_SIZE_MIN as usize);
};

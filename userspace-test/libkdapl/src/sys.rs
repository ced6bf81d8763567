// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The messages of `/dev/kdapl`, generated from `include/uapi/rdma/kdapl.h`.
//!
//! bindgen's layout tests compare every offset with what the C compiler sees;
//! the sizes below are the published ABI and change only with its version.
#![allow(unsafe_code, missing_docs, non_camel_case_types)]

include!(concat!(env!("OUT_DIR"), "/uapi.rs"));

macro_rules! published_sizes {
    ($($message:ident = $bytes:literal),* $(,)?) => {
        $(const _: () = assert!(
            size_of::<$message>() == $bytes,
            concat!("struct ", stringify!($message), " is not of its published size")
        );)*
    };
}

published_sizes! {
    kdapl_hdr = 8, kdapl_sockaddr = 32, kdapl_event = 64, kdapl_triplet = 16,
    kdapl_device = 192, kdapl_ia_open = 96, kdapl_ia_query = 288, kdapl_ia_close = 16,
    kdapl_handle = 16, kdapl_evd_create = 40, kdapl_evd_query = 48, kdapl_evd_wait = 96,
    kdapl_evd_post_se = 24, kdapl_ep_attr = 64, kdapl_ep_create = 128, kdapl_ep_query = 224,
    kdapl_ep_status = 40, kdapl_ep_connect = 80, kdapl_ep_disconnect = 24,
    kdapl_ep_private_data = 280, kdapl_ep_post = 80, kdapl_dto = 64, kdapl_ep_submit = 120, kdapl_psp_create = 40,
    kdapl_ep_modify = 120, kdapl_ep_dup_connect = 48, kdapl_ep_common_connect = 64,
    kdapl_psp_query = 40, kdapl_rsp = 40, kdapl_csp = 72, kdapl_cr_query = 328,
    kdapl_cr_answer = 40, kdapl_cr_handoff = 24,
    kdapl_lmr_create = 80, kdapl_lmr_query = 80, kdapl_evd_modify_cno = 24, kdapl_evd_resize = 24,
    kdapl_cno = 24, kdapl_cno_query = 32, kdapl_cno_wait = 32, kdapl_cno_fd = 24,
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The table of functions that `libdat2` calls. The header defines the type of each function, so
//! that a function with another signature does not compile.

use crate::open;
use std::ffi::c_char;
use std::ptr;
use udat::abi::DAT_PROVIDER;
use udat::calls::*;

/// Makes the table for a line of `dat.conf` that names the adapter `name`. Two lines may have the
/// same name and differ in thread safety. Only two functions depend on it.
pub fn table(name: *const c_char, thread_safe: bool) -> DAT_PROVIDER {
    DAT_PROVIDER {
        device_name: name,
        extension: ptr::null_mut(),
        ia_open_func: Some(if thread_safe { open::open_thread_safe } else { open::open }),
        ia_query_func: Some(dat_ia_query),
        ia_close_func: Some(dat_ia_close),
        set_consumer_context_func: Some(dat_set_consumer_context),
        get_consumer_context_func: Some(dat_get_consumer_context),
        get_handle_type_func: Some(dat_get_handle_type),
        cno_create_func: Some(dat_cno_create),
        cno_modify_agent_func: Some(dat_cno_modify_agent),
        cno_query_func: Some(dat_cno_query),
        cno_free_func: Some(dat_cno_free),
        cno_wait_func: Some(dat_cno_wait),
        cr_query_func: Some(dat_cr_query),
        cr_accept_func: Some(dat_cr_accept),
        cr_reject_func: Some(dat_cr_reject),
        cr_handoff_func: Some(dat_cr_handoff),
        evd_create_func: Some(dat_evd_create),
        evd_query_func: Some(dat_evd_query),
        evd_modify_cno_func: Some(dat_evd_modify_cno),
        evd_enable_func: Some(dat_evd_enable),
        evd_disable_func: Some(dat_evd_disable),
        evd_wait_func: Some(dat_evd_wait),
        evd_resize_func: Some(dat_evd_resize),
        evd_post_se_func: Some(dat_evd_post_se),
        evd_dequeue_func: Some(dat_evd_dequeue),
        evd_free_func: Some(dat_evd_free),
        ep_create_func: Some(dat_ep_create),
        ep_query_func: Some(dat_ep_query),
        ep_modify_func: Some(dat_ep_modify),
        ep_connect_func: Some(dat_ep_connect),
        ep_dup_connect_func: Some(dat_ep_dup_connect),
        ep_disconnect_func: Some(dat_ep_disconnect),
        ep_post_send_func: Some(dat_ep_post_send),
        ep_post_recv_func: Some(dat_ep_post_recv),
        ep_post_rdma_read_func: Some(dat_ep_post_rdma_read),
        ep_post_rdma_write_func: Some(dat_ep_post_rdma_write),
        ep_get_status_func: Some(dat_ep_get_status),
        ep_free_func: Some(dat_ep_free),
        lmr_create_func: Some(dat_lmr_create),
        lmr_query_func: Some(dat_lmr_query),
        lmr_free_func: Some(dat_lmr_free),
        rmr_create_func: Some(dat_rmr_create),
        rmr_query_func: Some(dat_rmr_query),
        rmr_bind_func: Some(dat_rmr_bind),
        rmr_free_func: Some(dat_rmr_free),
        psp_create_func: Some(dat_psp_create),
        psp_query_func: Some(dat_psp_query),
        psp_free_func: Some(dat_psp_free),
        rsp_create_func: Some(dat_rsp_create),
        rsp_query_func: Some(dat_rsp_query),
        rsp_free_func: Some(dat_rsp_free),
        pz_create_func: Some(dat_pz_create),
        pz_query_func: Some(dat_pz_query),
        pz_free_func: Some(dat_pz_free),
        psp_create_any_func: Some(dat_psp_create_any),
        ep_reset_func: Some(dat_ep_reset),
        evd_set_unwaitable_func: Some(dat_evd_set_unwaitable),
        evd_clear_unwaitable_func: Some(dat_evd_clear_unwaitable),
        lmr_sync_rdma_read_func: Some(dat_lmr_sync_rdma_read),
        lmr_sync_rdma_write_func: Some(dat_lmr_sync_rdma_write),
        ep_create_with_srq_func: Some(dat_ep_create_with_srq),
        ep_recv_query_func: Some(dat_ep_recv_query),
        ep_set_watermark_func: Some(dat_ep_set_watermark),
        srq_create_func: Some(dat_srq_create),
        srq_free_func: Some(dat_srq_free),
        srq_post_recv_func: Some(dat_srq_post_recv),
        srq_query_func: Some(dat_srq_query),
        srq_resize_func: Some(dat_srq_resize),
        srq_set_lw_func: Some(dat_srq_set_lw),
        csp_create_func: Some(dat_csp_create),
        csp_query_func: Some(dat_csp_query),
        csp_free_func: Some(dat_csp_free),
        ep_common_connect_func: Some(dat_ep_common_connect),
        rmr_create_for_ep_func: Some(dat_rmr_create_for_ep),
        ep_post_send_with_invalidate_func: Some(dat_ep_post_send_with_invalidate),
        ep_post_rdma_read_to_rmr_func: Some(dat_ep_post_rdma_read_to_rmr),
        cno_fd_create_func: Some(dat_cno_fd_create),
        cno_trigger_func: Some(dat_cno_trigger),
        ia_ha_related_func: Some(open::ha_related),
        handle_extendedop_func: Some(if thread_safe {
            open::extended_thread_safe
        } else {
            open::extended
        }),
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_a_function() {
        const SLOTS: usize = 79;
        let table = table(c"kdapl0".as_ptr(), false);
        // SAFETY: The table consists of as many pointers as the sizes show.
        let words = unsafe { std::mem::transmute::<DAT_PROVIDER, [usize; 2 + SLOTS]>(table) };
        assert!(words[2..].iter().all(|word| *word != 0));
    }
}

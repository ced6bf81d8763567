// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The table of functions that `libdat2` calls. The header defines the type of each function, so
//! that a function with another signature does not compile.

use crate::abi::DAT_PROVIDER;
use crate::service::{csp, psp, rsp};
use crate::{cno, context, cr, ep, evd, extension, ia, lmr, pz, rmr, srq};
use std::ffi::c_char;
use std::ptr;

/// Makes the table for a line of `dat.conf` that names the adapter `name`. Two lines may have the
/// same name and differ in thread safety. Only two functions depend on it.
pub fn table(name: *const c_char, thread_safe: bool) -> DAT_PROVIDER {
    DAT_PROVIDER {
        device_name: name,
        extension: ptr::null_mut(),
        ia_open_func: Some(if thread_safe { ia::open_thread_safe } else { ia::open }),
        ia_query_func: Some(ia::query),
        ia_close_func: Some(ia::close),
        set_consumer_context_func: Some(context::set),
        get_consumer_context_func: Some(context::get),
        get_handle_type_func: Some(context::handle_type),
        cno_create_func: Some(cno::create),
        cno_modify_agent_func: Some(cno::modify_agent),
        cno_query_func: Some(cno::query),
        cno_free_func: Some(cno::free),
        cno_wait_func: Some(cno::wait),
        cr_query_func: Some(cr::query),
        cr_accept_func: Some(cr::accept),
        cr_reject_func: Some(cr::reject),
        cr_handoff_func: Some(cr::handoff),
        evd_create_func: Some(evd::create),
        evd_query_func: Some(evd::query),
        evd_modify_cno_func: Some(evd::modify_cno),
        evd_enable_func: Some(evd::enable),
        evd_disable_func: Some(evd::disable),
        evd_wait_func: Some(evd::wait),
        evd_resize_func: Some(evd::resize),
        evd_post_se_func: Some(evd::post_se),
        evd_dequeue_func: Some(evd::dequeue),
        evd_free_func: Some(evd::free),
        ep_create_func: Some(ep::create),
        ep_query_func: Some(ep::query),
        ep_modify_func: Some(ep::modify),
        ep_connect_func: Some(ep::connect),
        ep_dup_connect_func: Some(ep::dup_connect),
        ep_disconnect_func: Some(ep::disconnect),
        ep_post_send_func: Some(ep::post_send),
        ep_post_recv_func: Some(ep::post_recv),
        ep_post_rdma_read_func: Some(ep::post_rdma_read),
        ep_post_rdma_write_func: Some(ep::post_rdma_write),
        ep_get_status_func: Some(ep::get_status),
        ep_free_func: Some(ep::free),
        lmr_create_func: Some(lmr::create),
        lmr_query_func: Some(lmr::query),
        lmr_free_func: Some(lmr::free),
        rmr_create_func: Some(rmr::create),
        rmr_query_func: Some(rmr::query),
        rmr_bind_func: Some(rmr::bind),
        rmr_free_func: Some(rmr::free),
        psp_create_func: Some(psp::create),
        psp_query_func: Some(psp::query),
        psp_free_func: Some(psp::free),
        rsp_create_func: Some(rsp::create),
        rsp_query_func: Some(rsp::query),
        rsp_free_func: Some(rsp::free),
        pz_create_func: Some(pz::create),
        pz_query_func: Some(pz::query),
        pz_free_func: Some(pz::free),
        psp_create_any_func: Some(psp::create_any),
        ep_reset_func: Some(ep::reset),
        evd_set_unwaitable_func: Some(evd::set_unwaitable),
        evd_clear_unwaitable_func: Some(evd::clear_unwaitable),
        lmr_sync_rdma_read_func: Some(lmr::sync_rdma_read),
        lmr_sync_rdma_write_func: Some(lmr::sync_rdma_write),
        ep_create_with_srq_func: Some(ep::create_with_srq),
        ep_recv_query_func: Some(ep::recv_query),
        ep_set_watermark_func: Some(ep::set_watermark),
        srq_create_func: Some(srq::create),
        srq_free_func: Some(srq::free),
        srq_post_recv_func: Some(srq::post_recv),
        srq_query_func: Some(srq::query),
        srq_resize_func: Some(srq::resize),
        srq_set_lw_func: Some(srq::set_lw),
        csp_create_func: Some(csp::create),
        csp_query_func: Some(csp::query),
        csp_free_func: Some(csp::free),
        ep_common_connect_func: Some(ep::common_connect),
        rmr_create_for_ep_func: Some(rmr::create_for_ep),
        ep_post_send_with_invalidate_func: Some(ep::post_send_with_invalidate),
        ep_post_rdma_read_to_rmr_func: Some(ep::post_rdma_read_to_rmr),
        cno_fd_create_func: Some(cno::fd_create),
        cno_trigger_func: Some(cno::trigger),
        ia_ha_related_func: Some(ia::ha_related),
        handle_extendedop_func: Some(if thread_safe {
            extension::handle_thread_safe
        } else {
            extension::handle
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

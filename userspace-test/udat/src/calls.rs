// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The calls of `include/dat2`, by their names there. The calls that open an IA and
//! `dat_extension_op` are those of the library that a program is linked with.

pub use crate::cno::{
    create as dat_cno_create, fd_create as dat_cno_fd_create, free as dat_cno_free,
    modify_agent as dat_cno_modify_agent, query as dat_cno_query, trigger as dat_cno_trigger,
    wait as dat_cno_wait,
};
pub use crate::context::{
    get as dat_get_consumer_context, handle_type as dat_get_handle_type,
    set as dat_set_consumer_context,
};
pub use crate::cr::{
    accept as dat_cr_accept, handoff as dat_cr_handoff, query as dat_cr_query,
    reject as dat_cr_reject,
};
pub use crate::ep::{
    common_connect as dat_ep_common_connect, connect as dat_ep_connect, create as dat_ep_create,
    create_with_srq as dat_ep_create_with_srq, disconnect as dat_ep_disconnect,
    dup_connect as dat_ep_dup_connect, free as dat_ep_free, get_status as dat_ep_get_status,
    modify as dat_ep_modify, post_rdma_read as dat_ep_post_rdma_read,
    post_rdma_read_to_rmr as dat_ep_post_rdma_read_to_rmr,
    post_rdma_write as dat_ep_post_rdma_write, post_recv as dat_ep_post_recv,
    post_send as dat_ep_post_send, post_send_with_invalidate as dat_ep_post_send_with_invalidate,
    query as dat_ep_query, recv_query as dat_ep_recv_query, reset as dat_ep_reset,
    set_watermark as dat_ep_set_watermark,
};
pub use crate::evd::{
    clear_unwaitable as dat_evd_clear_unwaitable, create as dat_evd_create,
    dequeue as dat_evd_dequeue, disable as dat_evd_disable, enable as dat_evd_enable,
    free as dat_evd_free, modify_cno as dat_evd_modify_cno, post_se as dat_evd_post_se,
    query as dat_evd_query, resize as dat_evd_resize, set_unwaitable as dat_evd_set_unwaitable,
    wait as dat_evd_wait,
};
pub use crate::ia::{close as dat_ia_close, query as dat_ia_query};
pub use crate::lmr::{
    create as dat_lmr_create, free as dat_lmr_free, query as dat_lmr_query,
    sync_rdma_read as dat_lmr_sync_rdma_read, sync_rdma_write as dat_lmr_sync_rdma_write,
};
pub use crate::pz::{create as dat_pz_create, free as dat_pz_free, query as dat_pz_query};
pub use crate::rmr::{
    bind as dat_rmr_bind, create as dat_rmr_create, create_for_ep as dat_rmr_create_for_ep,
    free as dat_rmr_free, query as dat_rmr_query,
};
pub use crate::service::csp::{
    create as dat_csp_create, free as dat_csp_free, query as dat_csp_query,
};
pub use crate::service::psp::{
    create as dat_psp_create, create_any as dat_psp_create_any, free as dat_psp_free,
    query as dat_psp_query,
};
pub use crate::service::rsp::{
    create as dat_rsp_create, free as dat_rsp_free, query as dat_rsp_query,
};
pub use crate::srq::{
    create as dat_srq_create, free as dat_srq_free, post_recv as dat_srq_post_recv,
    query as dat_srq_query, resize as dat_srq_resize, set_lw as dat_srq_set_lw,
};

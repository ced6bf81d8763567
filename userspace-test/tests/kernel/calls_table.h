/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The exported calls: the name, the stage that makes the objects of each, and an invocation. */
#ifndef CALLS_TABLE_H
#define CALLS_TABLE_H

/* Lists each exported call, its stage, and its invocation. */
#define CALLS(CALL)									\
	CALL(dat_ia_openv, objects, open_second())					\
	CALL(kdapl_ia_open_net, objects, open_second_in_net())				\
	CALL(dat_ia_query, objects, dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &told.ia,	\
						 DAT_PROVIDER_FIELD_NONE, NULL))	\
	CALL(dat_ia_close, second_adapter, dat_ia_close(at.second, DAT_CLOSE_ABRUPT_FLAG)) \
	CALL(dat_get_handle_type, objects, dat_get_handle_type(pz, &told.type))		\
	CALL(dat_strerror, objects,							\
		dat_strerror(DAT_CLASS_ERROR | DAT_ABORT, &told.name, &told.name))	\
	CALL(dat_pz_create, objects, dat_pz_create(ia, &made))				\
	CALL(dat_pz_query, objects, dat_pz_query(pz, 0, &told.pz))			\
	CALL(dat_pz_free, second_adapter, dat_pz_free(pz))				\
	CALL(dat_ia_memtype_hint, objects, dat_ia_memtype_hint(ia, DAT_MEM_TYPE_VIRTUAL, 1, \
		DAT_MEM_OPTIMIZE_DONT_CARE, &told.length, NULL))			\
	CALL(dat_lmr_kcreate, objects, register_for_peers())				\
	CALL(dat_lmr_query, objects, dat_lmr_query(lmr, 0, &told.lmr))			\
	CALL(dat_lmr_free, objects, dat_lmr_free(lmr))					\
	CALL(dat_lmr_sync_rdma_read, objects, dat_lmr_sync_rdma_read(ia, &at.place, 1))	\
	CALL(dat_lmr_sync_rdma_write, objects, dat_lmr_sync_rdma_write(ia, &at.place, 1)) \
	CALL(kdapl_lmr_free_unused, objects, kdapl_lmr_free_unused(lmr))		\
	CALL(dat_lmr_allocate, objects, dat_lmr_allocate(ia, pz, 2, DAT_LMR_SCOPE_PZ, &made)) \
	CALL(dat_lmr_fmr, allocated, fmr())						\
	CALL(dat_lmr_invalidate, registered, dat_lmr_invalidate(made, at.pair.ep[0], no_cookie, \
		DAT_COMPLETION_DEFAULT_FLAG))						\
	CALL(dat_ia_reserved_lmr, objects, dat_ia_reserved_lmr(ia, &made, &lmr_context)) \
	CALL(dat_rmr_create, objects, dat_rmr_create(pz, &made))			\
	CALL(dat_rmr_query, objects, dat_rmr_query(at.rmr, 0, &told.rmr))		\
	CALL(dat_rmr_bind, connected, bind())						\
	CALL(dat_rmr_free, objects, dat_rmr_free(at.rmr))				\
	CALL(dat_srq_create, objects, dat_srq_create(ia, pz, &srq_attr, &made))		\
	CALL(dat_srq_post_recv, objects, dat_srq_post_recv(at.srq, 1, &at.place, no_cookie)) \
	CALL(dat_srq_query, objects, dat_srq_query(at.srq, 0, &told.srq))		\
	CALL(dat_srq_resize, objects, dat_srq_resize(at.srq, 4))			\
	CALL(dat_srq_set_lw, objects, dat_srq_set_lw(at.srq, 2))			\
	CALL(dat_srq_free, objects, dat_srq_free(at.srq))				\
	CALL(dat_evd_kcreate, objects, dat_evd_kcreate(ia, 100, DAT_UPCALL_MANY, &upcalls, \
		DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG, &made))			\
	CALL(kdapl_evd_create_bh, objects, kdapl_evd_create_bh(ia, 100, DAT_UPCALL_NOTIFY, \
		&upcalls, 8, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG, &made))		\
	CALL(dat_evd_modify_upcall, objects, dat_evd_modify_upcall(at.evd,		\
		DAT_UPCALL_SINGLE_INSTANCE, &upcalls, DAT_UPCALL_INVOC_NEW))		\
	CALL(dat_evd_query, objects, dat_evd_query(at.evd, 0, &told.evd))		\
	CALL(dat_evd_modify_cno, objects, dat_evd_modify_cno(at.evd, at.cno))		\
	CALL(dat_evd_enable, objects, dat_evd_enable(at.evd))				\
	CALL(dat_evd_disable, objects, dat_evd_disable(at.evd))				\
	CALL(dat_evd_set_unwaitable, objects, dat_evd_set_unwaitable(at.evd))		\
	CALL(dat_evd_clear_unwaitable, objects, dat_evd_clear_unwaitable(at.evd))	\
	CALL(dat_evd_wait, objects, dat_evd_wait(at.evd, PATIENCE_US, 1, &told.event, NULL)) \
	CALL(dat_evd_dequeue, objects, dat_evd_dequeue(at.evd, &told.event))		\
	CALL(dat_evd_resize, objects, dat_evd_resize(at.pair.dto[0], 3000))		\
	CALL(dat_evd_post_se, objects, post_number(at.evd, 3))				\
	CALL(dat_evd_free, objects, dat_evd_free(at.evd))				\
	CALL(dat_cno_create, objects, dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &made)) \
	CALL(dat_cno_modify_agent, objects,						\
	     dat_cno_modify_agent(at.cno, DAT_OS_WAIT_PROXY_AGENT_NULL))		\
	CALL(dat_cno_query, objects, dat_cno_query(at.cno, 0, &told.cno))		\
	CALL(dat_cno_wait, objects, dat_cno_wait(at.cno, PATIENCE_US, &made))		\
	CALL(dat_cno_trigger, objects, dat_cno_trigger(at.cno))				\
	CALL(dat_cno_free, objects, dat_cno_free(at.cno))				\
	CALL(dat_ep_create, objects, dat_ep_create(ia, pz, at.pair.dto[0], at.pair.dto[1], \
		at.pair.connection[0], NULL, &made))					\
	CALL(dat_ep_create_with_srq, objects, dat_ep_create_with_srq(ia, pz, at.pair.dto[0], \
		at.pair.dto[1], at.pair.connection[0], at.srq, NULL, &made))		\
	CALL(dat_ep_query, objects, dat_ep_query(at.pair.ep[0], DAT_EP_FIELD_ALL, &told.ep)) \
	CALL(dat_ep_modify, objects, dat_ep_modify(at.pair.ep[0],			\
		DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &at.ep_param))			\
	CALL(dat_ep_connect, services, connect_to(at.conn_qual))			\
	CALL(dat_ep_dup_connect, connected, dat_ep_dup_connect(made, at.pair.ep[0],	\
		PATIENCE_US, 0, NULL, DAT_QOS_BEST_EFFORT))				\
	CALL(dat_ep_common_connect, services, dat_ep_common_connect(at.pair.ep[0],	\
		(DAT_IA_ADDRESS_PTR)&at.common, PATIENCE_US, 0, NULL))			\
	CALL(kdapl_ep_ready, connected, kdapl_ep_ready(at.pair.ep[0]))			\
	CALL(kdapl_ep_dup_connect, connected, kdapl_ep_dup_connect(made, at.pair.ep[0],	\
		PATIENCE_US, 0, NULL, DAT_QOS_BEST_EFFORT, KDAPL_READY_GATE_FLAG))	\
	CALL(kdapl_ep_common_connect, services, kdapl_ep_common_connect(at.pair.ep[0],	\
		(DAT_IA_ADDRESS_PTR)&at.common, PATIENCE_US, 0, NULL, KDAPL_READY_GATE_FLAG)) \
	CALL(dat_ep_disconnect, connected,						\
		dat_ep_disconnect(at.pair.ep[0], DAT_CLOSE_ABRUPT_FLAG))		\
	CALL(dat_ep_set_watermark, objects, dat_ep_set_watermark(at.pair.ep[0], 3, 4))	\
	CALL(dat_ep_recv_query, objects, dat_ep_recv_query(at.pair.ep[0], NULL, NULL))	\
	CALL(dat_ep_get_status, objects,						\
		dat_ep_get_status(at.pair.ep[0], &told.state, NULL, NULL))		\
	CALL(kdapl_ep_private_data, connected,						\
		kdapl_ep_private_data(at.pair.ep[0], &size, told.data))			\
	CALL(kdapl_ep_addresses, connected,						\
		kdapl_ep_addresses(at.pair.ep[0], &told.address, NULL))			\
	CALL(dat_ep_reset, disconnected, dat_ep_reset(at.pair.ep[0]))			\
	CALL(dat_ep_free, connected, dat_ep_free(at.pair.ep[0]))			\
	CALL(dat_ep_post_send, connected, dat_ep_post_send(at.pair.ep[0], 1, &at.place, no_cookie, \
		DAT_COMPLETION_DEFAULT_FLAG))						\
	CALL(kdapl_ep_post_list, connected, kdapl_ep_post_list(at.pair.ep[0], 2, at.list, NULL)) \
	CALL(dat_ep_post_send_with_invalidate, connected, dat_ep_post_send_with_invalidate( \
		at.pair.ep[0], 1, &at.place, no_cookie, DAT_COMPLETION_DEFAULT_FLAG,	\
		DAT_FALSE, 0))								\
	CALL(dat_ep_post_recv, objects, dat_ep_post_recv(at.pair.ep[0], 1, &at.place, no_cookie, \
		DAT_COMPLETION_DEFAULT_FLAG))						\
	CALL(dat_ep_post_rdma_write, connected, dat_ep_post_rdma_write(			\
		at.pair.ep[0], 1, &at.place, no_cookie, &at.remote,			\
		DAT_COMPLETION_DEFAULT_FLAG))						\
	CALL(dat_ep_post_rdma_read, connected, dat_ep_post_rdma_read(at.pair.ep[0], 1, &at.place, \
		no_cookie, &at.remote, DAT_COMPLETION_DEFAULT_FLAG))			\
	CALL(dat_ep_post_rdma_read_to_rmr, bound, dat_ep_post_rdma_read_to_rmr(at.pair.ep[0], \
		&at.local, no_cookie, &at.remote, DAT_COMPLETION_DEFAULT_FLAG))		\
	CALL(dat_psp_create, services, dat_psp_create(ia, (1ull << 34) + at.conn_qual,	\
		at.pair.connection[1], DAT_PSP_CONSUMER_FLAG, &made))			\
	CALL(dat_psp_create_any, objects, dat_psp_create_any(ia, &at.conn_qual,		\
		at.pair.connection[1], DAT_PSP_PROVIDER_FLAG, &made))			\
	CALL(dat_psp_query, services, dat_psp_query(at.psp, 0, &told.psp))		\
	CALL(dat_psp_free, services, dat_psp_free(at.psp))				\
	CALL(dat_rsp_create, services, dat_rsp_create(ia, (1ull << 34) + at.conn_qual,	\
		at.pair.ep[1], at.pair.connection[1], &made))				\
	CALL(dat_rsp_query, services, dat_rsp_query(at.rsp, 0, &told.rsp))		\
	CALL(dat_rsp_free, services, dat_rsp_free(at.rsp))				\
	CALL(dat_csp_create, objects, dat_csp_create(ia, &stream, ia_attr.ia_address_ptr, \
		at.pair.connection[1], &made))						\
	CALL(dat_csp_query, services, dat_csp_query(at.csp, 0, &told.csp))		\
	CALL(dat_csp_free, services, dat_csp_free(at.csp))				\
	CALL(dat_cr_query, asked, dat_cr_query(at.cr, 0, &told.cr))			\
	CALL(kdapl_cr_private_data, asked, kdapl_cr_private_data(at.cr, &size, told.data)) \
	CALL(kdapl_cr_address, asked, kdapl_cr_address(at.cr, &told.address))			\
	CALL(dat_cr_accept, asked, dat_cr_accept(at.cr, at.pair.ep[1], 3, "yes"))	\
	CALL(kdapl_cr_accept, asked, kdapl_cr_accept(at.cr, at.pair.ep[1], 3, "yes",	\
		KDAPL_READY_GATE_FLAG))							\
	CALL(dat_cr_reject, asked, dat_cr_reject(at.cr, 2, "no"))			\
	CALL(dat_cr_handoff, asked, dat_cr_handoff(at.cr, at.other_qual))		\
	CALL(kdapl_cr_handoff_to_user, asked,						\
		kdapl_cr_handoff_to_user(at.cr, at.other_qual, 0))

/* Calls that not every adapter supports. */
#define EXTENSIONS(CALL)								\
	CALL(dat_ib_post_rdma_write_immed, connected, dat_ib_post_rdma_write_immed(	\
		at.pair.ep[0], 1, &at.place, no_cookie, &at.remote, 7,			\
		DAT_COMPLETION_DEFAULT_FLAG))						\
	CALL(dat_ib_post_fetch_and_add, connected, dat_ib_post_fetch_and_add(at.pair.ep[0], 1, \
		&at.place, no_cookie, &at.remote, DAT_COMPLETION_DEFAULT_FLAG))		\
	CALL(dat_ib_post_cmp_and_swap, connected, dat_ib_post_cmp_and_swap(at.pair.ep[0], 1, 2, \
		&at.place, no_cookie, &at.remote, DAT_COMPLETION_DEFAULT_FLAG))

#endif /* CALLS_TABLE_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The interface between libdat2 and providers.
 *
 * A program that is linked with libkdat does not need this header.
 */
#pragma once

#include <stdarg.h>

#include <dat2/udat.h>

/** Names of a provider's functions that libdat2 looks up. */
#define DAT_PROVIDER_INIT_FUNC_NAME	dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME	dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR	"dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR	"dat_provider_fini"

/** A provider's table of functions. Each has the type of the call of the same name. */
typedef struct dat_provider {
	const char *device_name;
	DAT_PVOID extension;
	DAT_RETURN (DAT_API *ia_open_func)(const DAT_NAME_PTR name, DAT_COUNT qlen,
					   DAT_EVD_HANDLE *evd, DAT_IA_HANDLE *ia);
	__typeof__(dat_ia_query) *ia_query_func;
	__typeof__(dat_ia_close) *ia_close_func;
	__typeof__(dat_set_consumer_context) *set_consumer_context_func;
	__typeof__(dat_get_consumer_context) *get_consumer_context_func;
	__typeof__(dat_get_handle_type) *get_handle_type_func;
	__typeof__(dat_cno_create) *cno_create_func;
	__typeof__(dat_cno_modify_agent) *cno_modify_agent_func;
	__typeof__(dat_cno_query) *cno_query_func;
	__typeof__(dat_cno_free) *cno_free_func;
	__typeof__(dat_cno_wait) *cno_wait_func;
	__typeof__(dat_cr_query) *cr_query_func;
	__typeof__(dat_cr_accept) *cr_accept_func;
	__typeof__(dat_cr_reject) *cr_reject_func;
	__typeof__(dat_cr_handoff) *cr_handoff_func;
	__typeof__(dat_evd_create) *evd_create_func;
	__typeof__(dat_evd_query) *evd_query_func;
	__typeof__(dat_evd_modify_cno) *evd_modify_cno_func;
	__typeof__(dat_evd_enable) *evd_enable_func;
	__typeof__(dat_evd_disable) *evd_disable_func;
	__typeof__(dat_evd_wait) *evd_wait_func;
	__typeof__(dat_evd_resize) *evd_resize_func;
	__typeof__(dat_evd_post_se) *evd_post_se_func;
	__typeof__(dat_evd_dequeue) *evd_dequeue_func;
	__typeof__(dat_evd_free) *evd_free_func;
	__typeof__(dat_ep_create) *ep_create_func;
	__typeof__(dat_ep_query) *ep_query_func;
	__typeof__(dat_ep_modify) *ep_modify_func;
	__typeof__(dat_ep_connect) *ep_connect_func;
	__typeof__(dat_ep_dup_connect) *ep_dup_connect_func;
	__typeof__(dat_ep_disconnect) *ep_disconnect_func;
	__typeof__(dat_ep_post_send) *ep_post_send_func;
	__typeof__(dat_ep_post_recv) *ep_post_recv_func;
	__typeof__(dat_ep_post_rdma_read) *ep_post_rdma_read_func;
	__typeof__(dat_ep_post_rdma_write) *ep_post_rdma_write_func;
	__typeof__(dat_ep_get_status) *ep_get_status_func;
	__typeof__(dat_ep_free) *ep_free_func;
	__typeof__(dat_lmr_create) *lmr_create_func;
	__typeof__(dat_lmr_query) *lmr_query_func;
	__typeof__(dat_lmr_free) *lmr_free_func;
	__typeof__(dat_rmr_create) *rmr_create_func;
	__typeof__(dat_rmr_query) *rmr_query_func;
	__typeof__(dat_rmr_bind) *rmr_bind_func;
	__typeof__(dat_rmr_free) *rmr_free_func;
	__typeof__(dat_psp_create) *psp_create_func;
	__typeof__(dat_psp_query) *psp_query_func;
	__typeof__(dat_psp_free) *psp_free_func;
	__typeof__(dat_rsp_create) *rsp_create_func;
	__typeof__(dat_rsp_query) *rsp_query_func;
	__typeof__(dat_rsp_free) *rsp_free_func;
	__typeof__(dat_pz_create) *pz_create_func;
	__typeof__(dat_pz_query) *pz_query_func;
	__typeof__(dat_pz_free) *pz_free_func;
	__typeof__(dat_psp_create_any) *psp_create_any_func;
	__typeof__(dat_ep_reset) *ep_reset_func;
	__typeof__(dat_evd_set_unwaitable) *evd_set_unwaitable_func;
	__typeof__(dat_evd_clear_unwaitable) *evd_clear_unwaitable_func;
	__typeof__(dat_lmr_sync_rdma_read) *lmr_sync_rdma_read_func;
	__typeof__(dat_lmr_sync_rdma_write) *lmr_sync_rdma_write_func;
	__typeof__(dat_ep_create_with_srq) *ep_create_with_srq_func;
	__typeof__(dat_ep_recv_query) *ep_recv_query_func;
	__typeof__(dat_ep_set_watermark) *ep_set_watermark_func;
	__typeof__(dat_srq_create) *srq_create_func;
	__typeof__(dat_srq_free) *srq_free_func;
	__typeof__(dat_srq_post_recv) *srq_post_recv_func;
	__typeof__(dat_srq_query) *srq_query_func;
	__typeof__(dat_srq_resize) *srq_resize_func;
	__typeof__(dat_srq_set_lw) *srq_set_lw_func;
	__typeof__(dat_csp_create) *csp_create_func;
	__typeof__(dat_csp_query) *csp_query_func;
	__typeof__(dat_csp_free) *csp_free_func;
	__typeof__(dat_ep_common_connect) *ep_common_connect_func;
	__typeof__(dat_rmr_create_for_ep) *rmr_create_for_ep_func;
	__typeof__(dat_ep_post_send_with_invalidate) *ep_post_send_with_invalidate_func;
	__typeof__(dat_ep_post_rdma_read_to_rmr) *ep_post_rdma_read_to_rmr_func;
	__typeof__(dat_cno_fd_create) *cno_fd_create_func;
	__typeof__(dat_cno_trigger) *cno_trigger_func;
	DAT_RETURN (DAT_API *ia_ha_related_func)(DAT_IA_HANDLE ia, const DAT_NAME_PTR name,
						 DAT_BOOLEAN *related);
	DAT_RETURN (DAT_API *handle_extendedop_func)(DAT_HANDLE handle, int operation,
						     va_list arguments);
} DAT_PROVIDER;

/** Called by libdat2 to load and unload a provider, with a line of dat.conf. */
void DAT_API dat_provider_init(const DAT_PROVIDER_INFO *info, const char *parameters);
void DAT_API dat_provider_fini(const DAT_PROVIDER_INFO *info);

/** Called by a provider. */
DAT_EXPORT DAT_RETURN DAT_API
dat_registry_add_provider(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info);
DAT_EXPORT DAT_RETURN DAT_API
dat_registry_remove_provider(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info);

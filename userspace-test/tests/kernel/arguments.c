// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The names of codes, and the number of each argument that an exported call refuses. upcalls.c has
 * the numbers of dat_evd_kcreate() and dat_evd_modify_upcall().
 */
#include <linux/string.h>
#include <net/net_namespace.h>

#include <rdma/kdat_ib_extensions.h>

#include "ktest.h"

/* A call whose argument `n` is invalid. */
#define INVALID(n, call)	REFUSED(call, DAT_INVALID_PARAMETER, DAT_INVALID_ARG(n))

static int argument_numbers_of_ia_calls(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = pair_memory };
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_LMR_CONTEXT context;
	const DAT_REGION_DESCRIPTION nowhere = {};
	const DAT_LMR_TRIPLET nothing = {};
	DAT_IA_HANDLE other;
	DAT_LMR_HANDLE lmr;
	const char *name;
	DAT_VLEN length;

#define KCREATE(privileges, optimize, lmr, context)					\
	dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, 64, pz, privileges,		\
			DAT_VA_TYPE_VA, optimize, lmr, context, NULL, NULL, NULL)

	INVALID(2, dat_ia_open(ia_attr.adapter_name, 0, &evd, &other));
	INVALID(3, dat_ia_open(ia_attr.adapter_name, 8, NULL, &other));
	INVALID(4, dat_ia_open(ia_attr.adapter_name, 8, &evd, NULL));
	INVALID(2, kdapl_ia_open_net(ia_attr.adapter_name, NULL, 8, &evd, &other));
	INVALID(3, kdapl_ia_open_net(ia_attr.adapter_name, &init_net, 0, &evd, &other));
	INVALID(4, kdapl_ia_open_net(ia_attr.adapter_name, &init_net, 8, NULL, &other));
	INVALID(5, kdapl_ia_open_net(ia_attr.adapter_name, &init_net, 8, &evd, NULL));
	INVALID(2, dat_ia_close(ia, 2));
	INVALID(2, dat_get_handle_type(ia, NULL));
	INVALID(1, dat_strerror(DAT_CLASS_ERROR, &name, &name));
	INVALID(2, dat_strerror(DAT_SUCCESS, NULL, &name));
	INVALID(3, dat_strerror(DAT_SUCCESS, &name, NULL));
	INVALID(2, dat_pz_create(ia, NULL));
	INVALID(3, dat_pz_query(pz, 0, NULL));
	INVALID(6, KCREATE(0x100, DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, &context));
	INVALID(8, KCREATE(DAT_MEM_PRIV_LOCAL_READ_FLAG, 5, &lmr, &context));
	INVALID(9, KCREATE(DAT_MEM_PRIV_LOCAL_READ_FLAG, 0, NULL, &context));
	INVALID(10, KCREATE(DAT_MEM_PRIV_LOCAL_READ_FLAG, 0, &lmr, NULL));
	INVALID(3, dat_lmr_kcreate(ia, DAT_MEM_TYPE_PHYSICAL, nowhere, 64, pz,
				   DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA, 0, &lmr, &context,
				   NULL, NULL, NULL));
	INVALID(4, dat_ia_memtype_hint(ia, DAT_MEM_TYPE_VIRTUAL, 64, 5, &length, NULL));
	INVALID(3, dat_lmr_query(pz, 0, NULL));
	INVALID(2, dat_lmr_sync_rdma_read(ia, NULL, 1));
	INVALID(3, dat_lmr_sync_rdma_write(ia, &nothing, 1ULL << 31));
	INVALID(4, dat_lmr_allocate(ia, pz, 1, 3, &lmr));
	INVALID(5, dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_PZ, NULL));
	INVALID(2, dat_ia_reserved_lmr(ia, NULL, &context));
	INVALID(3, dat_ia_reserved_lmr(ia, &lmr, NULL));
#undef KCREATE
	return 0;
}

static int argument_numbers_of_registrations(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = PTR_ALIGN(pair_memory, PAGE_SIZE) };
	const DAT_MEM_PRIV_FLAGS read = DAT_MEM_PRIV_LOCAL_READ_FLAG;
	struct pair pair = {};
	DAT_LMR_HANDLE lmr;

#define FMR(type, privileges, flags)							\
	dat_lmr_fmr(lmr, type, region, 1, privileges, DAT_VA_TYPE_VA, pair.ep[0], cookie(1),	\
		    flags, NULL, NULL)

	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	OK(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_PZ, &lmr));
	INVALID(5, FMR(DAT_MEM_TYPE_VIRTUAL, 0x100, DAT_COMPLETION_DEFAULT_FLAG));
	INVALID(9, FMR(DAT_MEM_TYPE_VIRTUAL, read, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG));
	/* Without DAT_COMPLETION_SUPPRESS_FLAG. */
	INVALID(9, FMR(DAT_MEM_TYPE_VIRTUAL, read, 0x40));
	OK(FMR(DAT_MEM_TYPE_VIRTUAL, read, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	TRY(next_dto(pair.dto[0], DAT_DTO_LMR_FMR, 1, 0));
	INVALID(4, dat_lmr_invalidate(lmr, pair.ep[0], cookie(1),
				      DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	INVALID(4, dat_lmr_invalidate(lmr, pair.ep[0], cookie(1), KDAPL_COMPLETION_WITH_NEXT_FLAG));
	OK(dat_lmr_invalidate(lmr, pair.ep[0], cookie(1),
			      DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG));
	TRY(next_dto(pair.dto[0], DAT_DTO_LMR_INVALIDATE, 1, 0));
	region.for_physical = NULL;
	INVALID(3, FMR(DAT_MEM_TYPE_PHYSICAL, read, DAT_COMPLETION_DEFAULT_FLAG));
#undef FMR
	return 0;
}

static int argument_numbers_of_evd_and_cno_calls(void)
{
	const DAT_OS_WAIT_PROXY_AGENT agent = {};
	const DAT_EVENT none = {};
	DAT_EVD_HANDLE evd, dtos;
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;

	TRY(make_evd(4, DAT_UPCALL_DISABLE, NULL, &evd));
	OK(dat_evd_kcreate(ia, 4, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, &dtos));
	INVALID(3, dat_evd_query(evd, 0, NULL));
	INVALID(3, dat_evd_wait(evd, 0, 0, &event, NULL));
	INVALID(4, dat_evd_wait(evd, 0, 1, NULL, NULL));
	INVALID(2, dat_evd_dequeue(evd, NULL));
	INVALID(2, dat_evd_resize(evd, 0));
	INVALID(1, post_number(dtos, 1));
	INVALID(2, dat_evd_post_se(evd, &none));
	INVALID(2, dat_evd_post_se(evd, NULL));
	INVALID(3, dat_cno_create(ia, agent, NULL));
	OK(dat_cno_create(ia, agent, &cno));
	INVALID(3, dat_cno_query(cno, 0, NULL));
	INVALID(3, dat_cno_wait(cno, 0, NULL));
	return 0;
}

static int argument_numbers_of_ep_calls(void)
{
	const DAT_EP_ATTR negative = { .max_recv_dtos = -1 };
	struct sockaddr *to = ia_attr.ia_address_ptr;
	DAT_EVD_HANDLE dto, connection;
	DAT_EP_PARAM param = {};
	DAT_EP_ATTR most = {};
	struct pair pair = {};
	u8 data[300] = {};
	DAT_EP_HANDLE ep;

#define CREATE(recv_evd, request_evd, connect_evd, attr, ep)				\
	dat_ep_create(ia, pz, recv_evd, request_evd, connect_evd, attr, ep)
#define CONNECT(conn_qual, timeout, size, data)						\
	dat_ep_connect(ep, to, conn_qual, timeout, size, data, DAT_QOS_BEST_EFFORT,	\
		       DAT_CONNECT_DEFAULT_FLAG)
#define DUP_CONNECT(timeout, size, data)						\
	dat_ep_dup_connect(ep, pair.ep[1], timeout, size, data, DAT_QOS_BEST_EFFORT)

	TRY(pair_make(&pair));
	dto = pair.dto[0];
	connection = pair.connection[0];
	most.max_recv_dtos = ia_attr.max_dto_per_ep + 1;
	INVALID(3, CREATE(connection, dto, connection, NULL, &ep));
	INVALID(4, CREATE(dto, connection, connection, NULL, &ep));
	INVALID(5, CREATE(dto, dto, dto, NULL, &ep));
	INVALID(6, CREATE(dto, dto, connection, &negative, &ep));
	INVALID(6, CREATE(dto, dto, connection, &most, &ep));
	INVALID(7, CREATE(dto, dto, connection, NULL, NULL));
	ep = pair.ep[0];
	INVALID(2, dat_ep_query(ep, (DAT_EP_PARAM_MASK)DAT_EP_FIELD_ALL + 1, &param));
	INVALID(3, dat_ep_query(ep, DAT_EP_FIELD_ALL, NULL));
	/* An EVD has the number that it has in dat_ep_create(). */
	param.recv_evd_handle = connection;
	param.request_evd_handle = connection;
	param.connect_evd_handle = dto;
	INVALID(2, dat_ep_modify(ep, DAT_EP_FIELD_EP_STATE, &param));
	INVALID(3, dat_ep_modify(ep, DAT_EP_FIELD_RECV_EVD_HANDLE, NULL));
	INVALID(3, dat_ep_modify(ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param));
	INVALID(4, dat_ep_modify(ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param));
	INVALID(5, dat_ep_modify(ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	param.ep_attr = most;
	INVALID(3, dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
	param.ep_attr = negative;
	INVALID(3, dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
	INVALID(3, CONNECT(0, PATIENCE_US, 0, NULL));
	INVALID(4, CONNECT(7000, 0, 0, NULL));
	INVALID(5, CONNECT(7000, PATIENCE_US, -1, data));
	INVALID(5, CONNECT(7000, PATIENCE_US, sizeof(data), data));
	INVALID(6, CONNECT(7000, PATIENCE_US, 1, NULL));
	INVALID(3, DUP_CONNECT(0, 0, NULL));
	INVALID(4, DUP_CONNECT(PATIENCE_US, -1, data));
	INVALID(4, DUP_CONNECT(PATIENCE_US, sizeof(data), data));
	INVALID(5, DUP_CONNECT(PATIENCE_US, 1, NULL));
	INVALID(3, dat_ep_common_connect(ep, to, 0, 0, NULL));
	INVALID(4, dat_ep_common_connect(ep, to, PATIENCE_US, -1, data));
	INVALID(4, dat_ep_common_connect(ep, to, PATIENCE_US, sizeof(data), data));
	INVALID(5, dat_ep_common_connect(ep, to, PATIENCE_US, 1, NULL));
	INVALID(2, dat_ep_disconnect(ep, 2));
#undef CREATE
#undef CONNECT
#undef DUP_CONNECT
	return 0;
}

static int argument_numbers_of_posts(void)
{
	const DAT_COMPLETION_FLAGS none = DAT_COMPLETION_DEFAULT_FLAG, unknown = 0x80;
	const DAT_DTO_COOKIE no_cookie = {};
	const DAT_RMR_TRIPLET remote = {};
	struct pair pair = {};
	DAT_LMR_TRIPLET local;
	DAT_EP_HANDLE ep;

	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	local = pair_place(&pair, 0, 8);
	ep = pair.ep[0];
	INVALID(2, dat_ep_post_send(ep, -1, &local, no_cookie, none));
	INVALID(2, dat_ep_post_send(ep, 33, &local, no_cookie, none));
	INVALID(3, dat_ep_post_send(ep, 1, NULL, no_cookie, none));
	INVALID(5, dat_ep_post_send(ep, 1, &local, no_cookie, unknown));
	INVALID(2, dat_ep_post_recv(ep, -1, &local, no_cookie, none));
	INVALID(3, dat_ep_post_recv(ep, 1, NULL, no_cookie, none));
	INVALID(5, dat_ep_post_recv(ep, 1, &local, no_cookie, unknown));
	INVALID(2, dat_ep_post_rdma_write(ep, -1, &local, no_cookie, &remote, none));
	INVALID(3, dat_ep_post_rdma_write(ep, 1, NULL, no_cookie, &remote, none));
	INVALID(5, dat_ep_post_rdma_write(ep, 1, &local, no_cookie, NULL, none));
	INVALID(6, dat_ep_post_rdma_write(ep, 1, &local, no_cookie, &remote, unknown));
	INVALID(2, dat_ep_post_rdma_read(ep, -1, &local, no_cookie, &remote, none));
	INVALID(3, dat_ep_post_rdma_read(ep, 1, NULL, no_cookie, &remote, none));
	INVALID(5, dat_ep_post_rdma_read(ep, 1, &local, no_cookie, NULL, none));
	INVALID(6, dat_ep_post_rdma_read(ep, 1, &local, no_cookie, &remote, unknown));
	INVALID(2, dat_ib_post_rdma_write_immed(ep, -1, &local, no_cookie, &remote, 0, none));
	INVALID(3, dat_ib_post_rdma_write_immed(ep, 1, NULL, no_cookie, &remote, 0, none));
	/* extensions.c has the other arguments. */
	if (ia_attr.extension_supported == DAT_EXTENSION_NONE)
		return 0;
	INVALID(7, dat_ib_post_rdma_write_immed(ep, 1, &local, no_cookie, &remote, 0, unknown));
	INVALID(6, dat_ib_post_fetch_and_add(ep, 1, &local, no_cookie, &remote, unknown));
	INVALID(7, dat_ib_post_cmp_and_swap(ep, 1, 2, &local, no_cookie, &remote, unknown));
	return 0;
}

/* A request for the second Endpoint, which is reserved for it. */
static int make_request(const struct pair *pair, DAT_CONN_QUAL *conn_qual, DAT_CR_HANDLE *cr)
{
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_EVENT event;

	OK(dat_psp_create_any(ia, conn_qual, pair->connection[1], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_psp_free(psp));
	OK(dat_rsp_create(ia, *conn_qual, pair->ep[1], pair->connection[1], &rsp));
	OK(dat_ep_connect(pair->ep[0], ia_attr.ia_address_ptr, *conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(pair->connection[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	*cr = event.event_data.cr_arrival_event_data.cr_handle;
	return 0;
}

static int argument_numbers_of_service_point_calls(void)
{
	struct sockaddr *here = ia_attr.ia_address_ptr;
	DAT_EVD_HANDLE dto, connection;
	const DAT_COMM stream = {};
	DAT_CONN_QUAL conn_qual;
	struct pair pair = {};
	u8 data[300] = {};
	DAT_HANDLE point;
	DAT_COUNT size = 1;
	DAT_CR_HANDLE cr;

	TRY(pair_make(&pair));
	dto = pair.dto[1];
	connection = pair.connection[1];
	INVALID(2, dat_psp_create(ia, 0, connection, DAT_PSP_CONSUMER_FLAG, &point));
	INVALID(3, dat_psp_create(ia, 7000, dto, DAT_PSP_CONSUMER_FLAG, &point));
	INVALID(4, dat_psp_create(ia, 7000, connection, 2, &point));
	INVALID(5, dat_psp_create(ia, 7000, connection, DAT_PSP_CONSUMER_FLAG, NULL));
	INVALID(2, dat_psp_create_any(ia, NULL, connection, DAT_PSP_CONSUMER_FLAG, &point));
	INVALID(3, dat_psp_create_any(ia, &conn_qual, dto, DAT_PSP_CONSUMER_FLAG, &point));
	INVALID(4, dat_psp_create_any(ia, &conn_qual, connection, 2, &point));
	INVALID(5, dat_psp_create_any(ia, &conn_qual, connection, DAT_PSP_CONSUMER_FLAG, NULL));
	INVALID(3, dat_psp_query(pz, 0, NULL));
	INVALID(2, dat_rsp_create(ia, 0, pair.ep[1], connection, &point));
	INVALID(4, dat_rsp_create(ia, 7000, pair.ep[1], dto, &point));
	INVALID(5, dat_rsp_create(ia, 7000, pair.ep[1], connection, NULL));
	INVALID(3, dat_rsp_query(pz, 0, NULL));
	INVALID(2, dat_csp_create(ia, NULL, here, connection, &point));
	INVALID(4, dat_csp_create(ia, &stream, here, dto, &point));
	INVALID(5, dat_csp_create(ia, &stream, here, connection, NULL));
	INVALID(3, dat_csp_query(pz, 0, NULL));
	TRY(make_request(&pair, &conn_qual, &cr));
	INVALID(3, dat_cr_query(cr, 0, NULL));
	INVALID(2, kdapl_cr_private_data(cr, NULL, data));
	INVALID(3, kdapl_cr_private_data(cr, &size, NULL));
	INVALID(2, kdapl_ep_private_data(pair.ep[0], NULL, data));
	INVALID(3, kdapl_ep_private_data(pair.ep[0], &size, NULL));
	INVALID(2, dat_cr_accept(cr, pair.ep[0], 0, NULL));
	INVALID(3, dat_cr_accept(cr, pair.ep[1], -1, data));
	INVALID(3, dat_cr_accept(cr, pair.ep[1], sizeof(data), data));
	INVALID(4, dat_cr_accept(cr, pair.ep[1], 1, NULL));
	INVALID(2, kdapl_cr_accept(cr, pair.ep[0], 0, NULL, 0));
	INVALID(3, kdapl_cr_accept(cr, pair.ep[1], -1, data, 0));
	INVALID(4, kdapl_cr_accept(cr, pair.ep[1], 1, NULL, 0));
	INVALID(5, kdapl_cr_accept(cr, pair.ep[1], 0, NULL, 1));
	INVALID(2, dat_cr_reject(cr, -1, data));
	INVALID(2, dat_cr_reject(cr, sizeof(data), data));
	INVALID(3, dat_cr_reject(cr, 1, NULL));
	INVALID(2, dat_cr_handoff(cr, conn_qual + (1ULL << 40)));
	OK(dat_cr_reject(cr, 0, NULL));
	return 0;
}

/* Tests the names of a code. */
static int strerror_is(DAT_RETURN code, const char *type, const char *subtype)
{
	const char *major = NULL, *minor = NULL;

	OK(dat_strerror(code, &major, &minor));
	if (strcmp(major, type) || strcmp(minor, subtype))
		return FAIL("%08x is %s %s", code, major, minor);
	return 0;
}

static int names_of_codes(void)
{
	const char *major = "as before", *minor = major;

	TRY(strerror_is(DAT_SUCCESS, "DAT_SUCCESS", ""));
	TRY(strerror_is(dat_evd_dequeue(async_evd, &(DAT_EVENT){}), "DAT_QUEUE_EMPTY", ""));
	TRY(strerror_is(dat_pz_free(async_evd), "DAT_INVALID_HANDLE", "DAT_INVALID_HANDLE_PZ"));
	TRY(strerror_is(dat_pz_create(ia, NULL), "DAT_INVALID_PARAMETER", "DAT_INVALID_ARG2"));
	TRY(strerror_is(DAT_CLASS_ERROR | DAT_NOT_IMPLEMENTED | DAT_THREAD_SAFETY_NOT_FOUND,
			"DAT_NOT_IMPLEMENTED", "DAT_THREAD_SAFETY_NOT_FOUND"));
	/* DAT has neither this type nor this subtype. */
	REFUSED(dat_strerror(DAT_CLASS_ERROR | 0x00180000, &major, &minor), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG1);
	REFUSED(dat_strerror(DAT_CLASS_ERROR | DAT_ABORT | 104, &major, &minor),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	EXPECT(!strcmp(major, "as before") && minor == major);
	return 0;
}

const struct ktest argument_tests[] = {
	{ "names_of_codes", names_of_codes },
	{ "argument_numbers_of_ia_calls", argument_numbers_of_ia_calls },
	{ "argument_numbers_of_evd_and_cno_calls", argument_numbers_of_evd_and_cno_calls },
	{ "argument_numbers_of_registrations", argument_numbers_of_registrations },
	{ "argument_numbers_of_ep_calls", argument_numbers_of_ep_calls },
	{ "argument_numbers_of_posts", argument_numbers_of_posts },
	{ "argument_numbers_of_service_point_calls", argument_numbers_of_service_point_calls },
	{}
};

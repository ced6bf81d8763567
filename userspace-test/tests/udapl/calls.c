// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Makes calls that Debian's programs do not make. */
#include "consumer.h"

/* Debian's header of the extensions does not include it. */
#include <netinet/in.h>

#include <dat2/dat_ib_extensions.h>
#include <string.h>
#include <unistd.h>

static void queues(DAT_IA_HANDLE ia)
{
	DAT_CNO_HANDLE first, second;
	DAT_EVD_HANDLE evd, found;
	DAT_EVD_PARAM param;
	DAT_CNO_PARAM cno;
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_COUNT more;

	/* The flag of extension events is accepted, and requests nothing. */
	REFUSED(DAT_INVALID_PARAMETER, dat_evd_create(ia, 8, DAT_HANDLE_NULL,
						      (DAT_EVD_FLAGS)DAT_IB_EVD_EXTENSION_FLAG,
						      &evd));
	OK(dat_evd_create(ia, 8, DAT_HANDLE_NULL,
			  (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_IB_EVD_EXTENSION_FLAG), &evd));
	OK(dat_evd_free(evd));
	OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &first));
	OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &second));
	OK(dat_evd_create(ia, 8, first, DAT_EVD_SOFTWARE_FLAG, &evd));
	OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CHECK(param.ia_handle == ia && param.cno_handle == first && param.evd_qlen >= 8);
	CHECK(param.evd_flags == DAT_EVD_SOFTWARE_FLAG);
	CHECK((int)param.evd_state == (DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE |
				       DAT_EVD_STATE_CONFIG_THRESHOLD));
	OK(dat_cno_query(first, DAT_CNO_FIELD_ALL, &cno));
	CHECK(cno.ia_handle == ia && cno.proxy_type == DAT_PROXY_TYPE_NONE);

	/* An empty queue: the code of other providers, without a class. */
	CHECK(dat_cno_wait(first, 1000, &found) == DAT_QUEUE_EMPTY && found == DAT_HANDLE_NULL);
	CHECK(dat_evd_dequeue(evd, &event) == DAT_QUEUE_EMPTY);
	REFUSED(DAT_TIMEOUT_EXPIRED, dat_evd_wait(evd, 1000, 1, &event, &more));

	/*
	 * Posts more events than the queue had room for, and grows it meanwhile. Then shrinks it.
	 */
	event.event_number = DAT_SOFTWARE_EVENT;
	for (uintptr_t i = 0; i < 8; i++) {
		event.event_data.software_event_data.pointer = (void *)i;
		OK(dat_evd_post_se(evd, &event));
	}
	REFUSED(DAT_QUEUE_FULL, dat_evd_post_se(evd, &event));
	REFUSED(DAT_INVALID_STATE, dat_evd_resize(evd, 4));
	OK(dat_evd_resize(evd, 100));
	OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CHECK(param.evd_qlen >= 100);
	OK(dat_cno_wait(first, PATIENCE, &found));
	CHECK(found == evd);
	OK(dat_evd_wait(evd, PATIENCE, 8, &event, &more));
	CHECK(event.event_data.software_event_data.pointer == 0 && more == 7);

	/* The remaining event triggers the new CNO. */
	OK(dat_evd_modify_cno(evd, second));
	OK(dat_cno_wait(second, PATIENCE, &found));
	CHECK(found == evd);
	REFUSED(DAT_INVALID_STATE, dat_cno_free(second));
	for (uintptr_t i = 1; i < 8; i++) {
		OK(dat_evd_dequeue(evd, &event));
		CHECK(event.event_data.software_event_data.pointer == (void *)i);
	}
	OK(dat_evd_resize(evd, 4));

	OK(dat_evd_set_unwaitable(evd));
	REFUSED(DAT_INVALID_STATE, dat_evd_wait(evd, 1000, 1, &event, &more));
	OK(dat_evd_clear_unwaitable(evd));
	OK(dat_evd_disable(evd));
	event.event_number = DAT_SOFTWARE_EVENT;
	OK(dat_evd_post_se(evd, &event));
	CHECK(dat_cno_wait(second, 1000, &found) == DAT_QUEUE_EMPTY);
	OK(dat_evd_enable(evd));
	OK(dat_cno_wait(second, PATIENCE, &found));
	event.event_number = DAT_DTO_COMPLETION_EVENT;
	REFUSED(DAT_INVALID_PARAMETER, dat_evd_post_se(evd, &event));

	OK(dat_evd_free(evd));
	OK(dat_cno_free(first));
	OK(dat_cno_free(second));
}

static void endpoints(DAT_IA_HANDLE ia)
{
	DAT_EP_PARAM param;
	DAT_CONTEXT context = { .as_64 = 0x0123456789abcdef };
	DAT_HANDLE_TYPE type;
	DAT_EVD_HANDLE other;
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;
	struct side side;

	open_side(&side, ia);
	OK(dat_evd_create(ia, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &other));
	OK(dat_ep_query(side.ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.ia_handle == ia && param.ep_state == DAT_EP_STATE_UNCONNECTED &&
	      param.pz_handle == side.pz);
	CHECK(param.recv_evd_handle == side.evd && param.request_evd_handle == side.evd);
	CHECK(param.connect_evd_handle == side.evd && param.srq_handle == DAT_HANDLE_NULL);
	param.recv_evd_handle = other;
	param.ep_attr.max_recv_dtos = 77;
	OK(dat_ep_modify(side.ep, DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
			 &param));
	memset(&param, 0, sizeof(param));
	OK(dat_ep_query(side.ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.recv_evd_handle == other && param.request_evd_handle == side.evd);
	CHECK(param.ep_attr.max_recv_dtos == 77);
	REFUSED(DAT_INVALID_PARAMETER, dat_ep_modify(side.ep, DAT_EP_FIELD_EP_STATE, &param));

	OK(dat_ep_get_status(side.ep, &state, &recv_idle, &request_idle));
	CHECK(state == DAT_EP_STATE_UNCONNECTED && recv_idle && request_idle);
	post(&side, 1, 0, 64, 1);
	OK(dat_ep_get_status(side.ep, &state, &recv_idle, &request_idle));
	CHECK(!recv_idle && request_idle);

	OK(dat_set_consumer_context(side.ep, context));
	context.as_64 = 0;
	OK(dat_get_consumer_context(side.ep, &context));
	CHECK(context.as_64 == 0x0123456789abcdef);
	OK(dat_get_handle_type(side.ep, &type));
	CHECK(type == DAT_HANDLE_TYPE_EP);
	OK(dat_get_handle_type(ia, &type));
	CHECK(type == DAT_HANDLE_TYPE_IA);

	REFUSED(DAT_INVALID_STATE, dat_evd_free(other));
	REFUSED(DAT_INVALID_STATE, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	close_side(&side);
	OK(dat_evd_free(other));
}

/* Calls on an SRQ without a connection. */
static void shared(DAT_IA_HANDLE ia)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 10, .max_recv_iov = 1,
			      .low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_DTO_COOKIE cookie = { 0 };
	DAT_EP_ATTR ep_attr = { 0 };
	DAT_SRQ_PARAM param;
	DAT_EP_PARAM ep_param;
	DAT_HANDLE_TYPE type;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;
	struct side side;
	int i;

	open_side(&side, ia);
	REFUSED(DAT_INVALID_HANDLE, dat_srq_create(ia, ia, &attr, &srq));
	OK(dat_srq_create(ia, side.pz, &attr, &srq));
	OK(dat_get_handle_type(srq, &type));
	CHECK(type == DAT_HANDLE_TYPE_SRQ);
	for (i = 0; i < 3; i++)
		OK(dat_srq_post_recv(srq, 0, NULL, cookie));
	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	CHECK(param.ia_handle == ia && param.pz_handle == side.pz);
	CHECK(param.srq_state == DAT_SRQ_STATE_OPERATIONAL);
	CHECK(param.max_recv_dtos == 10 && param.max_recv_iov == 1 && param.low_watermark == 0);
	CHECK(param.available_dto_count == 3 && param.outstanding_dto_count == 3);
	REFUSED(DAT_INVALID_STATE, dat_srq_resize(srq, 2));
	REFUSED(DAT_INVALID_PARAMETER, dat_srq_resize(srq, -1));
	OK(dat_srq_resize(srq, 5));
	REFUSED(DAT_INVALID_PARAMETER, dat_srq_set_lw(srq, 6));
	OK(dat_srq_set_lw(srq, 2));
	ep_attr.max_request_dtos = 4;
	OK(dat_ep_create_with_srq(ia, side.pz, side.evd, side.evd, side.evd, srq, &ep_attr, &ep));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &ep_param));
	CHECK(ep_param.srq_handle == srq);
	REFUSED(DAT_INVALID_STATE, dat_ep_post_recv(ep, 0, NULL, cookie,
						    DAT_COMPLETION_DEFAULT_FLAG));
	REFUSED(DAT_INVALID_STATE, dat_srq_free(srq));
	OK(dat_ep_free(ep));
	OK(dat_srq_free(srq));
	REFUSED(DAT_INVALID_HANDLE, dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	close_side(&side);
}

/* Calls that are not implemented return an error. */
static void missing(DAT_IA_HANDLE ia)
{
	DAT_LMR_TRIPLET piece = { 0 };
	DAT_RMR_CONTEXT context;
	DAT_CONTEXT cookie = { 0 };
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;
	struct side side;
	DAT_COUNT count;

	open_side(&side, ia);
	OK(dat_rmr_create(side.pz, &rmr));
	OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	CHECK(param.ia_handle == ia && param.pz_handle == side.pz && param.rmr_context == 0);
	REFUSED(DAT_INVALID_STATE,
		dat_rmr_bind(rmr, side.lmr, &piece, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
			     side.ep, cookie, DAT_COMPLETION_DEFAULT_FLAG, &context));
	REFUSED(DAT_INVALID_STATE, dat_pz_free(side.pz));
	OK(dat_rmr_free(rmr));
	OK(dat_ep_recv_query(side.ep, &count, NULL));
	CHECK(count == 0);
	OK(dat_ep_set_watermark(side.ep, 1, 2));
	OK(dat_ep_set_watermark(side.ep, -1, -1));
	REFUSED(DAT_INVALID_PARAMETER, dat_ep_set_watermark(side.ep, -2, -1));
	close_side(&side);
}

typedef DAT_RETURN sync_call(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN count);

static void sync_memory(struct side *side, sync_call *call)
{
	const DAT_VADDR start = (uintptr_t)side->memory;
	const DAT_LMR_CONTEXT context = side->lmr_context;
	const DAT_RETURN wrong = DAT_CLASS_ERROR | DAT_INVALID_PARAMETER |
				 DAT_INVALID_ARG2;
	DAT_LMR_TRIPLET good[] = {
		{ start, MEMORY, context }, { start + MEMORY - 1, 1, context },
		{ start + MEMORY, 0, context }, { 0 }, { 0, 0, ~context },
	};
	DAT_LMR_TRIPLET bad[] = {
		{ start, 1, ~context }, { start - 1, 1, context }, { start + MEMORY, 1, context },
		{ start, MEMORY + 1, context }, { start + 1, MEMORY, context },
		{ ~0ULL, 2, context }, { 0, 1, context }, { start, ~0U, context },
	};

	OK(call(side->ia, NULL, 0));
	CHECK(call(side->ia, NULL, 1) == wrong);
	OK(call(side->ia, good, sizeof(good) / sizeof(*good)));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		DAT_LMR_TRIPLET two[] = { good[0], bad[i] };

		CHECK(call(side->ia, two, 2) == wrong);
		OK(call(side->ia, two, 1));
	}
	REFUSED(DAT_INVALID_PARAMETER, call(side->ia, good, 1ULL << 32));
	REFUSED(DAT_INVALID_HANDLE, call(side->ep, good, 1));
}

/* Segments of a sync are within LMRs of the adapter, whose addresses may be zero-based. */
static void sync_calls(DAT_IA_HANDLE ia, const char *name)
{
	static char pages[MEMORY] __attribute__((aligned(4096)));
	DAT_IA_HANDLE other = open_ia(name, DAT_FALSE);
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT remote;
	struct side side;
	DAT_LMR_HANDLE lmr;
	DAT_VADDR address;
	DAT_VLEN length;

	open_side(&side, ia);
	sync_memory(&side, dat_lmr_sync_rdma_read);
	sync_memory(&side, dat_lmr_sync_rdma_write);
	region.for_va = pages;
	OK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY, side.pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_ZB, &lmr, &context, &remote, &length, &address));

	DAT_LMR_TRIPLET piece = { 0, MEMORY, context };

	OK(dat_lmr_sync_rdma_read(ia, &piece, 1));
	REFUSED(DAT_INVALID_PARAMETER, dat_lmr_sync_rdma_read(other, &piece, 1));
	piece.segment_length++;
	REFUSED(DAT_INVALID_PARAMETER, dat_lmr_sync_rdma_read(ia, &piece, 1));
	piece = (DAT_LMR_TRIPLET){ (uintptr_t)pages, 1, context };
	REFUSED(DAT_INVALID_PARAMETER, dat_lmr_sync_rdma_write(ia, &piece, 1));
	piece.virtual_address = MEMORY - 1;
	OK(dat_lmr_sync_rdma_write(ia, &piece, 1));
	OK(dat_lmr_free(lmr));
	REFUSED(DAT_INVALID_PARAMETER, dat_lmr_sync_rdma_write(ia, &piece, 1));
	close_side(&side);
	OK(dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG));
	REFUSED(DAT_INVALID_HANDLE, dat_lmr_sync_rdma_read(other, &piece, 0));
}

/* The argument of an extension that is refused has its number in the macro. */
static void numbers(DAT_IA_HANDLE ia)
{
	DAT_LMR_TRIPLET local = { 0 };
	DAT_RMR_TRIPLET remote = { 0 };
	DAT_CONTEXT cookie = { 0 };
	struct side side;

	open_side(&side, ia);
#define IS_ARGUMENT(number, call) CHECK((call) ==						\
	(DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | (DAT_INVALID_ARG1 + (number) - 1)))
	IS_ARGUMENT(2, dat_ib_post_rdma_write_immed(side.ep, -1, &local, cookie, &remote, 7, 0));
	IS_ARGUMENT(3, dat_ib_post_rdma_write_immed(side.ep, 1, NULL, cookie, &remote, 7, 0));
	IS_ARGUMENT(5, dat_ib_post_rdma_write_immed(side.ep, 1, &local, cookie, NULL, 7, 0));
	IS_ARGUMENT(3, dat_ib_post_fetch_and_add(side.ep, 1, NULL, cookie, &remote, 0));
	IS_ARGUMENT(5, dat_ib_post_fetch_and_add(side.ep, 1, &local, cookie, NULL, 0));
	IS_ARGUMENT(4, dat_ib_post_cmp_and_swap(side.ep, 1, 2, NULL, cookie, &remote, 0));
	IS_ARGUMENT(6, dat_ib_post_cmp_and_swap(side.ep, 1, 2, &local, cookie, NULL, 0));
	close_side(&side);
}

/* An open that fails prints its cause, and lists the devices only if the name is unknown. */
static void cause(const char *name)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
	int output[2], errors = dup(2);
	char text[500] = { 0 };
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;

	CHECK(errors >= 0 && !pipe(output) && dup2(output[1], 2) == 2);
	ret = dat_ia_openv((char *)name, 0, &async_evd, &ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR,
			   DAT_FALSE);
	CHECK(dup2(errors, 2) == 2 && !close(output[1]));
	CHECK(read(output[0], text, sizeof(text) - 1) > 0);
	CHECK(!close(output[0]) && !close(errors));
	REFUSED(DAT_INVALID_PARAMETER, ret);
	CHECK(strstr(text, "INVALID_PARAMETER") && !strstr(text, "not found"));
}

void case_calls(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);

	queues(ia);
	endpoints(ia);
	shared(ia);
	missing(ia);
	sync_calls(ia, place->name);
	numbers(ia);
	cause(place->name);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests Shared Receive Queues. */
#include <linux/string.h>

#include "ktest.h"

#define DEFAULT		DAT_COMPLETION_DEFAULT_FLAG
#define RECEIVES	8
#define SIZE		256

/* Two connections, whose server sides share the receives of an SRQ and an EVD. */
struct shared {
	DAT_SRQ_HANDLE srq;
	struct pair pairs[2];
	DAT_EVD_HANDLE recv;
};

static const DAT_SRQ_ATTR attr = { .max_recv_dtos = RECEIVES, .max_recv_iov = 1 };

static int shared_make(struct shared *shared)
{
	unsigned int i;

	OK(dat_srq_create(ia, pz, &attr, &shared->srq));
	OK(dat_evd_kcreate(ia, 64, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, &shared->recv));
	for (i = 0; i < 2; i++) {
		struct pair *pair = &shared->pairs[i];

		TRY(pair_make(pair));
		OK(dat_ep_free(pair->ep[1]));
		OK(dat_ep_create_with_srq(ia, pz, shared->recv, pair->dto[1], pair->connection[1],
					  shared->srq, NULL, &pair->ep[1]));
		TRY(pair_connect(pair));
	}
	return 0;
}

static int post(struct shared *shared, u64 number)
{
	DAT_LMR_TRIPLET place = pair_place(&shared->pairs[0], number * SIZE, SIZE);

	OK(dat_srq_post_recv(shared->srq, 1, &place, cookie(number)));
	return 0;
}

static int has(struct shared *shared, DAT_COUNT available, DAT_COUNT outstanding)
{
	DAT_SRQ_PARAM param;

	OK(dat_srq_query(shared->srq, 0, &param));
	EXPECT(param.ia_handle == ia && param.pz_handle == pz);
	SAME(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
	SAME(param.max_recv_dtos, RECEIVES);
	SAME(param.available_dto_count, available);
	SAME(param.outstanding_dto_count, outstanding);
	return 0;
}

/* Sends a message over one of the connections. */
static int send(struct shared *shared, unsigned int i, u8 byte)
{
	struct pair *pair = &shared->pairs[i];
	DAT_LMR_TRIPLET place = pair_place(pair, PAIR_MEMORY / 2, SIZE);

	memset((void *)place.virtual_address, byte, SIZE);
	OK(dat_ep_post_send(pair->ep[0], 1, &place, cookie(byte), DEFAULT));
	return next_dto(pair->dto[0], DAT_DTO_SEND, byte, SIZE);
}

/* Takes the event of a receive, which names the Endpoint of that connection. */
static int take(struct shared *shared, unsigned int i, u64 number, u8 byte)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	TRY(next_event(shared->recv, DAT_DTO_COMPLETION_EVENT, &event));
	dto = &event.event_data.dto_completion_event_data;
	EXPECT(dto->ep_handle == shared->pairs[i].ep[1]);
	SAME(dto->status, DAT_DTO_SUCCESS);
	SAME(dto->operation, DAT_DTO_RECEIVE);
	SAME(dto->user_cookie.as_64, number);
	EXPECT(!memchr_inv(pair_memory + number * SIZE, byte, SIZE));
	return 0;
}

static int srq_traffic(void)
{
	struct shared shared = {};
	unsigned int round;

	TRY(shared_make(&shared));
	for (round = 0; round < 3; round++)
		TRY(post(&shared, round));
	TRY(has(&shared, 3, 3));
	TRY(send(&shared, 1, 1));
	TRY(has(&shared, 2, 3));
	TRY(take(&shared, 1, 0, 1));
	TRY(has(&shared, 2, 2));
	TRY(post(&shared, 0));
	for (round = 0; round < 50; round++) {
		/* The receives are taken in the order of their posts. */
		u64 number = (round + 1) % 3;

		TRY(send(&shared, round / 2 % 2, round));
		TRY(take(&shared, round / 2 % 2, number, round));
		TRY(post(&shared, number));
	}
	return has(&shared, 3, 3);
}

static int srq_limits(void)
{
	DAT_LMR_TRIPLET two[2];
	struct shared shared = {};
	DAT_EP_PARAM param;
	unsigned int i;

	TRY(shared_make(&shared));
	two[0] = two[1] = pair_place(&shared.pairs[0], 0, 8);
	for (i = 0; i < RECEIVES; i++)
		TRY(post(&shared, i));
	REFUSED(dat_srq_post_recv(shared.srq, 1, two, cookie(9)), DAT_INSUFFICIENT_RESOURCES,
		DAT_RESOURCE_SRQ);
	REFUSED(dat_ep_post_recv(shared.pairs[0].ep[1], 1, two, cookie(9), DEFAULT),
		DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_OPERATIONAL);
	REFUSED(dat_srq_resize(shared.srq, RECEIVES - 1), DAT_INVALID_STATE,
		DAT_INVALID_STATE_SRQ_IN_USE);
	OK(dat_srq_resize(shared.srq, RECEIVES));
	REFUSED(dat_srq_free(shared.srq), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	OK(dat_ep_query(shared.pairs[0].ep[1], DAT_EP_FIELD_ALL, &param));
	EXPECT(param.srq_handle == shared.srq);
	OK(dat_ep_query(shared.pairs[0].ep[0], DAT_EP_FIELD_ALL, &param));
	EXPECT(param.srq_handle == DAT_HANDLE_NULL);
	for (i = 0; i < 2; i++)
		OK(dat_ep_free(shared.pairs[i].ep[1]));
	OK(dat_srq_free(shared.srq));
	REFUSED(dat_srq_post_recv(shared.srq, 1, two, cookie(9)), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_SRQ);
	return 0;
}

/* The low watermark is reported once each time that it is set. */
static int srq_low_watermark(void)
{
	struct shared shared = {};
	unsigned int set, i;
	DAT_EVENT event;

	TRY(shared_make(&shared));
	for (i = 0; i < RECEIVES; i++)
		TRY(post(&shared, i));
	for (set = 0; set < 2; set++) {
		const DAT_ASYNCH_ERROR_EVENT_DATA *data = &event.event_data.asynch_error_event_data;

		OK(dat_srq_set_lw(shared.srq, 6 - 3 * set));
		for (i = 0; i < 3; i++) {
			TRY(send(&shared, 0, i));
			TRY(take(&shared, 0, 3 * set + i, i));
		}
		TRY(next_event(async_evd, DAT_ASYNC_ERROR_EP_BROKEN, &event));
		EXPECT(data->dat_handle == shared.srq);
		SAME(data->reason, DAT_SRQ_LOW_WATERMARK_EVENT);
		REFUSED(dat_evd_wait(async_evd, QUIET_MS * USEC_PER_MSEC, 1, &event, NULL),
			DAT_TIMEOUT_EXPIRED, 0);
	}
	return 0;
}

/* The soft watermark of an EP is reported, the hard one breaks its connection. */
static int srq_high_watermarks(void)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data;
	struct shared shared = {};
	DAT_COUNT buffers, span;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	unsigned int i;

	TRY(shared_make(&shared));
	ep = shared.pairs[0].ep[1];
	REFUSED(dat_ep_set_watermark(ep, -2, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	REFUSED(dat_ep_set_watermark(ep, 1, -2), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	OK(dat_ep_set_watermark(ep, 1, 2));
	for (i = 0; i < RECEIVES; i++)
		TRY(post(&shared, i));
	TRY(send(&shared, 0, 1));
	TRY(send(&shared, 0, 2));
	TRY(next_event(async_evd, DAT_ASYNC_ERROR_EP_BROKEN, &event));
	data = &event.event_data.asynch_error_event_data;
	EXPECT(data->dat_handle == ep);
	SAME(data->reason, DAT_EP_SOFT_HIGH_WATERMARK_EVENT);
	OK(dat_ep_recv_query(ep, &buffers, &span));
	SAME(buffers, 2);
	SAME(span, 2);
	TRY(take(&shared, 0, 0, 1));
	OK(dat_ep_recv_query(ep, &buffers, NULL));
	SAME(buffers, 1);
	OK(dat_ep_set_watermark(ep, DAT_WATERMARK_INFINITE, 0));
	return next_event(shared.pairs[0].connection[1], DAT_CONNECTION_EVENT_BROKEN, &event);
}

static int srq_refusals(void)
{
	DAT_SRQ_ATTR wrong[] = {
		{ .max_recv_dtos = 0, .max_recv_iov = 1 },
		{ .max_recv_dtos = -1, .max_recv_iov = 1 },
		{ .max_recv_dtos = ia_attr.max_recv_per_srq + 1, .max_recv_iov = 1 },
		{ .max_recv_dtos = 1, .max_recv_iov = 0 },
		{ .max_recv_dtos = 1, .max_recv_iov = ia_attr.max_iov_segments_per_srq + 1 },
		{ .max_recv_dtos = 8, .max_recv_iov = 1, .low_watermark = 1 },
	};
	DAT_LMR_TRIPLET places[2];
	struct pair pair = {};
	DAT_SRQ_PARAM param;
	DAT_SRQ_HANDLE srq;
	DAT_PZ_HANDLE other;
	DAT_EP_HANDLE ep;
	unsigned int i;

#define CREATE_EP(pz, srq, attr, ep)								\
	dat_ep_create_with_srq(ia, pz, pair.dto[0], pair.dto[0], pair.connection[0], srq, attr, ep)

	TRY(pair_make(&pair));
	places[0] = places[1] = pair_place(&pair, 0, 8);
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		REFUSED(dat_srq_create(ia, pz, &wrong[i], &srq), DAT_INVALID_PARAMETER,
			DAT_INVALID_ARG(3));
	REFUSED(dat_srq_create(ia, pz, NULL, &srq), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	REFUSED(dat_srq_create(ia, pz, &attr, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(4));
	REFUSED(dat_srq_create(pz, pz, &attr, &srq), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	REFUSED(dat_srq_create(ia, ia, &attr, &srq), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	OK(dat_srq_create(ia, pz, &attr, &srq));
	REFUSED(dat_srq_post_recv(srq, -1, places, cookie(1)), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(2));
	REFUSED(dat_srq_post_recv(srq, 2, places, cookie(1)), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(2));
	REFUSED(dat_srq_post_recv(srq, 1, NULL, cookie(1)), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(3));
	places[0].lmr_context++;
	REFUSED(dat_srq_post_recv(srq, 1, places, cookie(1)), DAT_PROTECTION_VIOLATION,
		DAT_PROTECTION_WRITE);
	REFUSED(dat_srq_query(srq, 0, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	REFUSED(dat_srq_query(pz, 0, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	REFUSED(dat_srq_resize(srq, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	REFUSED(dat_srq_resize(srq, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	REFUSED(dat_srq_set_lw(srq, RECEIVES + 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	REFUSED(dat_srq_set_lw(srq, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	REFUSED(CREATE_EP(pz, DAT_HANDLE_NULL, NULL, &ep), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_SRQ);
	REFUSED(CREATE_EP(pz, pz, NULL, &ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	OK(dat_pz_create(ia, &other));
	REFUSED(CREATE_EP(other, srq, NULL, &ep), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	REFUSED(CREATE_EP(pz, srq, NULL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(8));
#undef CREATE_EP
	return 0;
}

const struct ktest srq_tests[] = {
	{ "srq_traffic", srq_traffic },
	{ "srq_limits", srq_limits },
	{ "srq_low_watermark", srq_low_watermark },
	{ "srq_high_watermarks", srq_high_watermarks },
	{ "srq_refusals", srq_refusals },
	{}
};

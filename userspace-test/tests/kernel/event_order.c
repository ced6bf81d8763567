// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the order of events. One EVD with upcalls gets all events of an Endpoint. */
#include "ktest.h"

#define MESSAGES	8

static struct {
	/* 0 before ESTABLISHED, then 1 plus the number of DTO events, then -1. */
	int dtos;
	unsigned int wrong;
	struct completion over;
} told[2];

static void tell(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	typeof(&told[0]) it = instance;

	switch (event->event_number) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		it->wrong += it->dtos != 0;
		it->dtos = 1;
		break;
	case DAT_DTO_COMPLETION_EVENT:
		it->wrong += it->dtos < 1;
		it->dtos++;
		break;
	case DAT_CONNECTION_EVENT_BROKEN:
		/* Over iWARP the peer cannot distinguish a disconnect from a failure. */
		it->wrong += it == &told[0];
		fallthrough;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		/* All receives and sends have completed or were flushed. */
		it->wrong += it->dtos != 1 + 2 * MESSAGES;
		it->dtos = -1;
		complete(&it->over);
		break;
	case DAT_CONNECTION_REQUEST_EVENT:
		break;
	default:
		it->wrong++;
	}
}

/* DTOs that are posted after the end of a connection are flushed at once. */
static int order_after_end(DAT_EP_HANDLE ep, unsigned int side, DAT_LMR_TRIPLET place)
{
	told[side].dtos = 1;
	OK(dat_ep_post_send(ep, 1, &place, cookie(0), DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_post_recv(ep, 1, &place, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	UNTIL(READ_ONCE(told[side].dtos) == 3);
	SAME(told[side].wrong, 0);
	return 0;
}

static int order_once(DAT_EP_HANDLE ep[2], const struct pair *pair)
{
	DAT_LMR_TRIPLET place = pair_place(pair, 0, 64);
	unsigned int side, message;
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	for (side = 0; side < 2; side++)
		for (message = 0; message < MESSAGES; message++)
			OK(dat_ep_post_recv(ep[side], 1, &place, cookie(message),
					    DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_psp_create_any(ia, &conn_qual, pair->connection[0], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(pair->connection[0], DAT_CONNECTION_REQUEST_EVENT, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep[1], 0, NULL));
	/* The connecting side may post first. */
	UNTIL(READ_ONCE(told[0].dtos) > 0);
	for (message = 0; message < MESSAGES; message++)
		OK(dat_ep_post_send(ep[0], 1, &place, cookie(message),
				    DAT_COMPLETION_DEFAULT_FLAG));
	UNTIL(READ_ONCE(told[1].dtos) > 0);
	for (message = 0; message < MESSAGES; message++)
		OK(dat_ep_post_send(ep[1], 1, &place, cookie(message),
				    DAT_COMPLETION_DEFAULT_FLAG));
	/* Disconnects during the traffic. */
	OK(dat_ep_disconnect(ep[0], DAT_CLOSE_ABRUPT_FLAG));
	for (side = 0; side < 2; side++) {
		EXPECT(wait_for_completion_timeout(&told[side].over, patience * HZ));
		SAME(told[side].wrong, 0);
		TRY(order_after_end(ep[side], side, place));
	}
	OK(dat_psp_free(psp));
	return 0;
}

static int event_order(void)
{
	DAT_EVD_HANDLE evd[2];
	DAT_EP_HANDLE ep[2];
	struct pair pair = {};
	unsigned int round, side;

	TRY(pair_make(&pair));
	for (round = 0; round < 10; round++) {
		for (side = 0; side < 2; side++) {
			const DAT_UPCALL_OBJECT upcall = {
				.instance_data = &told[side],
				.upcall_func = tell,
			};

			told[side].dtos = 0;
			told[side].wrong = 0;
			init_completion(&told[side].over);
			OK(dat_evd_kcreate(ia, 64, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
					   DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG, &evd[side]));
			OK(dat_ep_create(ia, pz, evd[side], evd[side], evd[side], NULL, &ep[side]));
		}
		TRY(order_once(ep, &pair));
		for (side = 0; side < 2; side++) {
			OK(dat_ep_free(ep[side]));
			OK(dat_evd_free(evd[side]));
		}
	}
	return 0;
}

const struct ktest event_order_tests[] = {
	{ "event_order", event_order },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the ready gate: every call that closes it, upcalls, refusals, and the device's removal. */
#include <linux/string.h>

#include "gate.h"

static struct {
	/* Events in their order, a digit each: 1 ESTABLISHED, 2 a receive. */
	u32 order;
	atomic_t events;
} told;

static void tell(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const u32 digit = event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED ? 1 :
			  event->event_number == DAT_DTO_COMPLETION_EVENT ? 2 : 9;

	told.order = told.order * 10 + digit;
	atomic_inc(&told.events);
}

/* A closed gate makes no upcall, and an opened one makes those that it held back. */
static int gate_of_upcalls(void)
{
	const DAT_UPCALL_OBJECT upcall = { .upcall_func = tell };
	struct pair pair = {};

	memset(&told, 0, sizeof(told));
	TRY(gate_connect(&pair, SERVER));
	OK(dat_evd_modify_upcall(pair.dto[1], DAT_UPCALL_SINGLE_INSTANCE, &upcall,
				 DAT_UPCALL_INVOC_ANY));
	TRY(gate_send(&pair, 0, 0, 3));
	msleep(QUIET_MS);
	SAME(atomic_read(&told.events), 0);
	OK(kdapl_ep_ready(pair.ep[1]));
	UNTIL(atomic_read(&told.events) == 4);
	OK(dat_evd_modify_upcall(pair.dto[1], DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
				 DAT_UPCALL_INVOC_ANY));
	SAME(told.order, 1222);
	return 0;
}

/* Accepts the next request for side 1 with an open gate. */
static int accept_next(const struct pair *pair)
{
	DAT_EVENT event;

	TRY(next_event(pair->dto[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	OK(kdapl_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair->ep[1], 0, NULL,
			   0));
	return gate_established(pair, 1);
}

/* Side 0 has connected with a closed gate. */
static int gate_is_closed(const struct pair *pair)
{
	TRY(accept_next(pair));
	TRY(gate_quiet(pair, 0));
	OK(kdapl_ep_ready(pair->ep[0]));
	return gate_established(pair, 0);
}

static int gate_of_dup_connect(void)
{
	struct pair first = {}, second = {};
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;

	TRY(gate_make(&first));
	TRY(gate_make(&second));
	OK(dat_psp_create_any(ia, &conn_qual, first.dto[1], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(first.ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, KDAPL_READY_GATE_FLAG));
	TRY(gate_is_closed(&first));
	OK(dat_psp_free(psp));
	OK(dat_psp_create(ia, conn_qual, second.dto[1], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(kdapl_ep_dup_connect(second.ep[0], first.ep[0], PATIENCE_US, 0, NULL,
				DAT_QOS_BEST_EFFORT, KDAPL_READY_GATE_FLAG));
	return gate_is_closed(&second);
}

static int gate_of_common_connect(void)
{
	const DAT_COMM stream = {};
	struct pair pair = {};
	DAT_CSP_PARAM param;
	DAT_CSP_HANDLE csp;

	TRY(gate_make(&pair));
	OK(dat_csp_create(ia, &stream, ia_attr.ia_address_ptr, pair.dto[1], &csp));
	OK(dat_csp_query(csp, 0, &param));
	OK(kdapl_ep_common_connect(pair.ep[0], (struct sockaddr *)&param.address, PATIENCE_US, 0,
				   NULL, KDAPL_READY_GATE_FLAG));
	return gate_is_closed(&pair);
}

static int gate_refusals(void)
{
	DAT_CONN_QUAL conn_qual;
	struct pair pair = {};
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	TRY(gate_make(&pair));
	REFUSED(kdapl_ep_ready(pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	REFUSED(kdapl_ep_ready(pair.ep[0]), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
	OK(dat_psp_create_any(ia, &conn_qual, pair.dto[1], DAT_PSP_CONSUMER_FLAG, &psp));
	REFUSED(dat_ep_connect(pair.ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			       DAT_QOS_BEST_EFFORT, KDAPL_READY_GATE_FLAG << 1),
		DAT_MODEL_NOT_SUPPORTED, 0);
	OK(dat_ep_connect(pair.ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	TRY(accept_next(&pair));
	TRY(gate_established(&pair, 0));
	/* Without a gate the call has no effect. */
	OK(kdapl_ep_ready(pair.ep[0]));
	OK(kdapl_ep_ready(pair.ep[1]));
	TRY(gate_quiet(&pair, 0));
	TRY(gate_quiet(&pair, 1));
	OK(dat_ep_disconnect(pair.ep[0], DAT_CLOSE_ABRUPT_FLAG));
	TRY(gate_flushes(&pair, 0, 0));
	TRY(next_event(pair.dto[0], DAT_CONNECTION_EVENT_DISCONNECTED, &event));
	REFUSED(kdapl_ep_ready(pair.ep[0]), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED);
	return 0;
}

/* A program in user space deletes the device at stage 1. */
static int gate_removal(void)
{
	struct pair pair = {};
	DAT_EVENT event;

	TRY(gate_connect(&pair, SERVER));
	TRY(gate_send(&pair, 0, 0, 2));
	WRITE_ONCE(ktest_stage, 1);
	TRY(gate_established(&pair, 1));
	TRY(gate_receives(&pair, 1, 0, 2));
	TRY(gate_flushes(&pair, 1, 2));
	OK(dat_evd_wait(pair.dto[1], PATIENCE_US, 1, &event, NULL));
	/* The peer is on the same device, and may be removed a little earlier. */
	EXPECT(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
	       event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
	REFUSED(kdapl_ep_ready(pair.ep[1]), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED);
	REFUSED(dat_evd_dequeue(pair.dto[1], &event), DAT_QUEUE_EMPTY, 0);
	return 0;
}

const struct ktest gate_end_tests[] = {
	{ "gate_of_upcalls", gate_of_upcalls },
	{ "gate_of_dup_connect", gate_of_dup_connect },
	{ "gate_of_common_connect", gate_of_common_connect },
	{ "gate_refusals", gate_refusals },
	{ "gate_removal", gate_removal },
	{}
};

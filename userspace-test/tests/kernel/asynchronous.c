// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests asynchronous events: each is reported once, and names its object. */
#include "ktest.h"

static int quiet(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	REFUSED(dat_evd_wait(evd, QUIET_MS * USEC_PER_MSEC, 1, &event, NULL), DAT_TIMEOUT_EXPIRED,
		0);
	return 0;
}

/* Takes the only event of the asynchronous EVD. */
static int reported(DAT_EVENT_NUMBER number, DAT_HANDLE object)
{
	DAT_EVENT event;

	TRY(next_event(async_evd, number, &event));
	EXPECT(event.event_data.asynch_error_event_data.dat_handle == object);
	/* The number says all there is to say: the other reasons are watermarks. */
	SAME(event.event_data.asynch_error_event_data.reason, 0);
	return quiet(async_evd);
}

/* The shortest queue has room for eight events. */
#define ROOM 8

/* One Endpoint more is refused than their connect EVD has room for. */
static int async_overflow(void)
{
	DAT_EP_HANDLE eps[ROOM + 1];
	DAT_CONN_QUAL nobody;
	struct pair pair = {};
	DAT_EVD_HANDLE evd;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	unsigned int i;

	TRY(pair_make(&pair));
	OK(dat_psp_create_any(ia, &nobody, pair.connection[1], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_psp_free(psp));
	OK(dat_evd_kcreate(ia, 1, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CONNECTION_FLAG, &evd));
	for (i = 0; i < ARRAY_SIZE(eps); i++) {
		OK(dat_ep_create(ia, pz, pair.dto[0], pair.dto[0], evd, NULL, &eps[i]));
		OK(dat_ep_connect(eps[i], ia_attr.ia_address_ptr, nobody, PATIENCE_US, 0, NULL,
				  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	}
	TRY(reported(DAT_ASYNC_ERROR_EVD_OVERFLOW, evd));
	for (i = 0; i < ROOM; i++)
		TRY(next_event(evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, &event));
	REFUSED(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY, 0);
	return 0;
}

/* A program in user space reports failures of the latest queue pair at stage 1. */
static int async_failure(void)
{
	struct pair pair = {};
	DAT_EP_STATE state;

	TRY(pair_make(&pair));
	WRITE_ONCE(ktest_stage, 1);
	TRY(reported(DAT_ASYNC_ERROR_EP_BROKEN, pair.ep[1]));
	OK(dat_ep_get_status(pair.ep[1], &state, NULL, NULL));
	SAME(state, DAT_EP_STATE_DISCONNECTED);
	OK(dat_ep_get_status(pair.ep[0], &state, NULL, NULL));
	SAME(state, DAT_EP_STATE_UNCONNECTED);
	return quiet(pair.connection[1]);
}

const struct ktest asynchronous_tests[] = {
	{ "async_overflow", async_overflow },
	{ "async_failure", async_failure },
	{}
};

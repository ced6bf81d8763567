// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the private data of connections and requests, and threads that end these meanwhile. */
#include <linux/sched.h>
#include <linux/string.h>

#include "ktest.h"

#define ROUNDS	40

static const char question[] = "who is there?", answer[] = "somebody";

/* Has the first Endpoint of a pair ask at a PSP, and returns the request. */
static int ask(const struct pair *pair, DAT_PSP_HANDLE *psp, DAT_CR_HANDLE *cr)
{
	DAT_CONN_QUAL conn_qual;
	DAT_EVENT event;

	OK(dat_psp_create_any(ia, &conn_qual, pair->connection[1], DAT_PSP_CONSUMER_FLAG, psp));
	OK(dat_ep_connect(pair->ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US,
			  sizeof(question), question, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(pair->connection[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	*cr = event.event_data.cr_arrival_event_data.cr_handle;
	return 0;
}

static int private_data_copied(void)
{
	u8 data[256] = {}, few[8];
	DAT_COUNT size, all;
	struct pair pair = {};
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	TRY(pair_make(&pair));
	size = sizeof(data);
	OK(kdapl_ep_private_data(pair.ep[0], &size, data));
	SAME(size, 0);
	TRY(ask(&pair, &psp, &cr));
	size = sizeof(data);
	OK(kdapl_cr_private_data(cr, &size, data));
	EXPECT(size >= (DAT_COUNT)sizeof(question) && !strcmp(data, question));
	all = size;
	/* No more bytes are written than there is room for. */
	memset(few, 0x5a, sizeof(few));
	size = 4;
	OK(kdapl_cr_private_data(cr, &size, few));
	SAME(size, all);
	EXPECT(!memcmp(few, question, 4) && few[4] == 0x5a);
	size = 0;
	OK(kdapl_cr_private_data(cr, &size, NULL));
	SAME(size, all);
	REFUSED(kdapl_cr_private_data(cr, NULL, data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	size = -1;
	REFUSED(kdapl_cr_private_data(cr, &size, data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	size = 1;
	REFUSED(kdapl_cr_private_data(cr, &size, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	REFUSED(kdapl_cr_private_data(pz, &size, data), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	OK(dat_cr_reject(cr, sizeof(answer), answer));
	REFUSED(kdapl_cr_private_data(cr, &size, data), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	TRY(next_event(pair.connection[0], DAT_CONNECTION_EVENT_PEER_REJECTED, &event));
	size = sizeof(data);
	OK(kdapl_ep_private_data(pair.ep[0], &size, data));
	SAME(size, event.event_data.connect_event_data.private_data_size);
	EXPECT(!strcmp(data, answer));
	memset(few, 0x5a, sizeof(few));
	size = 4;
	OK(kdapl_ep_private_data(pair.ep[0], &size, few));
	SAME(size, event.event_data.connect_event_data.private_data_size);
	EXPECT(!memcmp(few, answer, 4) && few[4] == 0x5a);
	REFUSED(kdapl_ep_private_data(pair.ep[0], NULL, data), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(2));
	size = -1;
	REFUSED(kdapl_ep_private_data(pair.ep[0], &size, data), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(2));
	size = 1;
	REFUSED(kdapl_ep_private_data(pair.ep[0], &size, NULL), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(3));
	OK(dat_ep_free(pair.ep[0]));
	REFUSED(kdapl_ep_private_data(pair.ep[0], &size, data), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_EP);
	return 0;
}

static bool is_over(DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state;

	return !dat_ep_get_status(ep, &state, NULL, NULL) && state == DAT_EP_STATE_DISCONNECTED;
}

/* An event that is dequeued after its Endpoint was freed. */
static int private_data_of_freed_ep(void)
{
	const DAT_CONNECTION_EVENT_DATA *late;
	struct pair pair = {};
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	TRY(pair_make(&pair));
	TRY(ask(&pair, &psp, &cr));
	OK(dat_cr_reject(cr, sizeof(answer), answer));
	/* The event is queued with the change of the state. */
	UNTIL(is_over(pair.ep[0]));
	OK(dat_ep_free(pair.ep[0]));
	TRY(next_event(pair.connection[0], DAT_CONNECTION_EVENT_PEER_REJECTED, &event));
	late = &event.event_data.connect_event_data;
	EXPECT(late->ep_handle == pair.ep[0]);
	EXPECT(!late->private_data);
	SAME(late->private_data_size, 0);
	return 0;
}

/* What a thread copies until its object is gone. */
static struct {
	DAT_HANDLE handle;
	DAT_RETURN (*copy)(DAT_HANDLE handle, DAT_COUNT *size, void *data);
	const char *expected;
	DAT_RETURN gone;
	struct completion begun;
} copied;

static int copy_until_gone(unsigned int unused)
{
	unsigned int copies = 0;
	u8 data[256];
	DAT_COUNT size;
	DAT_RETURN ret;

	for (;; copies++) {
		memset(data, 0, sizeof(data));
		size = sizeof(data);
		ret = copied.copy(copied.handle, &size, data);
		if (ret)
			break;
		if (strcmp(data, copied.expected))
			return FAIL("wrong private data, %d bytes", size);
		complete(&copied.begun);
		cond_resched();
	}
	EXPECT(copies);
	SAME(ret, copied.gone);
	return 0;
}

/* Starts a thread that copies private data, and returns when it has begun. */
static int start_copies(struct ktest_thread *thread, unsigned int number)
{
	init_completion(&copied.begun);
	TRY(ktest_start(thread, copy_until_gone, number));
	/* The thread that could not copy is over. */
	UNTIL(completion_done(&copied.begun) || completion_done(&thread->over));
	udelay(number * 3);
	return 0;
}

/* Accepts a request, and frees the Endpoint that it came from, while a thread copies. */
static int copy_round(const struct pair *pair, unsigned int number)
{
	static struct ktest_thread thread;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	TRY(ask(pair, &psp, &cr));
	copied.handle = cr;
	copied.copy = kdapl_cr_private_data;
	copied.expected = question;
	copied.gone = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CR;
	TRY(start_copies(&thread, number));
	OK(dat_cr_accept(cr, pair->ep[1], sizeof(answer), answer));
	TRY(ktest_join(&thread));
	TRY(next_event(pair->connection[0], DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	copied.handle = pair->ep[0];
	copied.copy = kdapl_ep_private_data;
	copied.expected = answer;
	copied.gone = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP;
	TRY(start_copies(&thread, number));
	OK(dat_ep_free(pair->ep[0]));
	return ktest_join(&thread);
}

static int private_data_race(void)
{
	unsigned int number;

	for (number = 0; number < ROUNDS; number++) {
		struct pair pair = {};

		TRY(pair_make(&pair));
		TRY(copy_round(&pair, number));
		TRY(ktest_renew());
	}
	return 0;
}

const struct ktest private_data_tests[] = {
	{ "private_data_copied", private_data_copied },
	{ "private_data_of_freed_ep", private_data_of_freed_ep },
	{ "private_data_race", private_data_race },
	{}
};

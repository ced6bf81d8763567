// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests upcalls in soft interrupts that post DTOs: a ping-pong without a thread. */
#include <linux/preempt.h>
#include <linux/string.h>

#include "ktest.h"

#define ROUNDS	2000
#define LENGTH	64
/* Receives that each side has posted. */
#define POSTED	4

/* One side of the connection. Index 0 is the client. */
static struct side {
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;
	DAT_LMR_TRIPLET in, out;
	atomic_t established, received, sent, flushed, over;
	/* Events outside of a soft interrupt, in the wrong order, or unexpected. */
	atomic_t outside, disordered, strange;
} sides[2];

/* Number of messages that a side answers. */
static int rounds;

static void post(struct side *side)
{
	if (dat_ep_post_send(side->ep, 1, &side->out, cookie(1), DAT_COMPLETION_DEFAULT_FLAG))
		atomic_inc(&side->strange);
}

/* A message has arrived. Posts a receive in its place, and the answer. */
static void answer(struct side *side)
{
	if (dat_ep_post_recv(side->ep, 1, &side->in, cookie(2), DAT_COMPLETION_DEFAULT_FLAG))
		atomic_inc(&side->strange);
	if (atomic_inc_return(&side->received) < READ_ONCE(rounds) || side != &sides[0])
		post(side);
}

static void completed(struct side *side, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	/* An EP that is disconnected already takes DTOs, and flushes them after DISCONNECTED. */
	const bool is_late = atomic_read(&side->over) && dto->status != DAT_DTO_ERR_FLUSHED;

	if (!atomic_read(&side->established) || is_late)
		atomic_inc(&side->disordered);
	if (dto->status == DAT_DTO_ERR_FLUSHED)
		atomic_inc(&side->flushed);
	else if (dto->status)
		atomic_inc(&side->strange);
	else if (dto->user_cookie.as_64 == 1)
		atomic_inc(&side->sent);
	else
		answer(side);
}

static void happened(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct side *side = instance;

	if (in_task() || !in_serving_softirq())
		atomic_inc(&side->outside);
	switch (event->event_number) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		atomic_inc(&side->established);
		break;
	case DAT_DTO_COMPLETION_EVENT:
		completed(side, &event->event_data.dto_completion_event_data);
		break;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
	case DAT_CONNECTION_EVENT_BROKEN:
		atomic_inc(&side->over);
		break;
	default:
		atomic_inc(&side->strange);
	}
}

static int make_side(struct side *side, DAT_LMR_CONTEXT context)
{
	const DAT_UPCALL_OBJECT upcall = { .instance_data = side, .upcall_func = happened };
	const unsigned int number = side - sides;
	unsigned int i;

	side->out = (DAT_LMR_TRIPLET){ (DAT_VADDR)pair_memory + 2 * number * LENGTH, LENGTH,
				       context };
	side->in = (DAT_LMR_TRIPLET){ side->out.virtual_address + LENGTH, LENGTH, context };
	OK(kdapl_evd_create_bh(ia, 64, DAT_UPCALL_SINGLE_INSTANCE, &upcall, 4,
			       DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &side->evd));
	OK(dat_ep_create(ia, pz, side->evd, side->evd, side->evd, NULL, &side->ep));
	for (i = 0; i < POSTED; i++)
		OK(dat_ep_post_recv(side->ep, 1, &side->in, cookie(2),
				    DAT_COMPLETION_DEFAULT_FLAG));
	return 0;
}

static int connect(void)
{
	DAT_EVD_HANDLE requests;
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	/* A request is answered by a thread. */
	OK(dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG, &requests));
	OK(dat_psp_create_any(ia, &conn_qual, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(sides[0].ep, ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(requests, DAT_CONNECTION_REQUEST_EVENT, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, sides[1].ep, 0, NULL));
	UNTIL(atomic_read(&sides[0].established) == 1 && atomic_read(&sides[1].established) == 1);
	OK(dat_psp_free(psp));
	return 0;
}

/* Starts a ping-pong of this many rounds. */
static int start(int count)
{
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	memset(sides, 0, sizeof(sides));
	WRITE_ONCE(rounds, count);
	OK(register_memory(pair_memory, PAIR_MEMORY, LOCAL_FLAGS, &lmr, &context));
	TRY(make_side(&sides[0], context));
	TRY(make_side(&sides[1], context));
	TRY(connect());
	OK(dat_ep_post_send(sides[0].ep, 1, &sides[0].out, cookie(1),
			    DAT_COMPLETION_DEFAULT_FLAG));
	return 0;
}

/* What an upcall has seen is right, apart from the counts. */
static int nothing_strange(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		SAME(atomic_read(&sides[i].outside), 0);
		SAME(atomic_read(&sides[i].disordered), 0);
		SAME(atomic_read(&sides[i].established), 1);
	}
	return 0;
}

static int bh_ping_pong(void)
{
	unsigned int i;

	TRY(start(ROUNDS));
	for (i = 0; i < 2; i++) {
		UNTIL(atomic_read(&sides[i].received) == ROUNDS);
		UNTIL(atomic_read(&sides[i].sent) == ROUNDS);
	}
	OK(dat_ep_disconnect(sides[0].ep, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < 2; i++) {
		UNTIL(atomic_read(&sides[i].over) == 1);
		SAME(atomic_read(&sides[i].flushed), POSTED);
		SAME(atomic_read(&sides[i].strange), 0);
	}
	return nothing_strange();
}

/* Ends an EVD and its Endpoint, or the adapter, during a ping-pong without end. */
static int bh_ends_in_traffic(void)
{
	TRY(start(INT_MAX));
	UNTIL(atomic_read(&sides[1].received) > 100);
	OK(dat_evd_modify_upcall(sides[0].evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
				 DAT_UPCALL_INVOC_ANY));
	OK(dat_ep_free(sides[0].ep));
	OK(dat_evd_free(sides[0].evd));
	UNTIL(atomic_read(&sides[1].over) == 1);
	TRY(nothing_strange());
	TRY(ktest_renew());
	TRY(start(INT_MAX));
	UNTIL(atomic_read(&sides[1].received) > 100);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return nothing_strange();
}

/* A program in user space deletes the device at stage 1. */
static int bh_device_removal(void)
{
	unsigned int i;

	TRY(start(INT_MAX));
	UNTIL(atomic_read(&sides[1].received) > 100);
	WRITE_ONCE(ktest_stage, 1);
	for (i = 0; i < 2; i++)
		UNTIL(atomic_read(&sides[i].over) == 1);
	TRY(nothing_strange());
	for (i = 0; i < 2; i++) {
		OK(dat_ep_free(sides[i].ep));
		OK(dat_evd_free(sides[i].evd));
	}
	return 0;
}

const struct ktest bh_traffic_tests[] = {
	{ "bh_ping_pong", bh_ping_pong },
	{ "bh_ends_in_traffic", bh_ends_in_traffic },
	{ "bh_device_removal", bh_device_removal },
	{}
};

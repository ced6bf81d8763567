// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Exchanges messages, RDMA writes and reads with a process that is killed meanwhile. The process is
 * that of `userspace-test/tests/self/src/traffic.rs`; its memory has the same layout.
 */
#include <linux/string.h>

#include "gate.h"

#define PIECE		16384
#define RECEIVES	16
#define WINDOW		4
/* Completions before the process is killed. */
#define ENOUGH		100

static struct {
	struct pair pair;
	/* Memory of either side that the other one accesses. */
	DAT_RMR_TRIPLET mine, theirs;
	unsigned int posted, completed, succeeded;
} now;

static DAT_RETURN post(DAT_DTOS operation)
{
	const DAT_EP_HANDLE ep = now.pair.ep[0];
	DAT_LMR_TRIPLET place = pair_place(&now.pair, 0, PIECE);
	DAT_RETURN ret;

	switch (operation) {
	case DAT_DTO_RECEIVE:
		place.virtual_address += PIECE;
		ret = dat_ep_post_recv(ep, 1, &place, cookie(0), DAT_COMPLETION_DEFAULT_FLAG);
		break;
	case DAT_DTO_SEND:
		ret = dat_ep_post_send(ep, 1, &place, cookie(0), DAT_COMPLETION_DEFAULT_FLAG);
		break;
	case DAT_DTO_RDMA_WRITE:
		ret = dat_ep_post_rdma_write(ep, 1, &place, cookie(0), &now.theirs,
					     DAT_COMPLETION_DEFAULT_FLAG);
		break;
	default:
		place.virtual_address += 2 * PIECE;
		ret = dat_ep_post_rdma_read(ep, 1, &place, cookie(0), &now.theirs,
					    DAT_COMPLETION_DEFAULT_FLAG);
	}
	now.posted += !ret;
	return ret;
}

/* Makes this side, with memory for the process and with receives. */
static int make_side(void)
{
	const DAT_EP_ATTR attr = { .max_recv_dtos = RECEIVES, .max_request_dtos = 32,
		.max_recv_iov = 1, .max_request_iov = 1, .max_rdma_read_in = WINDOW,
		.max_rdma_read_out = WINDOW };
	struct pair *pair = &now.pair;
	struct lmr lmr;
	unsigned int i;

	memset(&now, 0, sizeof(now));
	TRY(gate_make(pair));
	OK(dat_ep_create(ia, pz, pair->dto[0], pair->dto[0], pair->dto[0], &attr, &pair->ep[0]));
	OK(lmr_make_virtual(pair_memory + 3 * PIECE, PIECE, LOCAL_FLAGS | REMOTE_FLAGS, &lmr));
	now.mine = (DAT_RMR_TRIPLET){ lmr.address, PIECE, lmr.remote };
	for (i = 0; i < RECEIVES; i++)
		OK(post(DAT_DTO_RECEIVE));
	return 0;
}

/* Replaces a DTO, and answers a message by another one. */
static int go_on(DAT_DTOS operation)
{
	if (operation == DAT_DTO_SEND)
		return 0;
	OK(post(operation));
	if (operation == DAT_DTO_RECEIVE)
		OK(post(DAT_DTO_SEND));
	return 0;
}

/* Takes events until the connection ends. Posts are never refused: at the end they are flushed. */
static int transfer(void)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	for (;;) {
		OK(dat_evd_wait(now.pair.dto[0], PATIENCE_US, 1, &event, NULL));
		if (event.event_number != DAT_DTO_COMPLETION_EVENT)
			break;
		dto = &event.event_data.dto_completion_event_data;
		now.completed++;
		if (dto->status != DAT_DTO_SUCCESS)
			continue;
		if (++now.succeeded == ENOUGH)
			WRITE_ONCE(ktest_stage, 1);
		TRY(go_on(dto->operation));
	}
	EXPECT(now.succeeded >= ENOUGH);
	/* A request of this side may have failed before the disconnect of the process arrived. */
	EXPECT(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
	       event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
	return 0;
}

/* Each DTO has one completion, also those that were posted after the end. */
static int account(void)
{
	DAT_EVENT event;

	while (now.completed < now.posted) {
		TRY(next_event(now.pair.dto[0], DAT_DTO_COMPLETION_EVENT, &event));
		SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
		now.completed++;
	}
	TRY(gate_quiet(&now.pair, 0));
	OK(dat_ep_reset(now.pair.ep[0]));
	return gate_state(&now.pair, 0, DAT_EP_STATE_UNCONNECTED);
}

static int flood(void)
{
	unsigned int i;

	for (i = 0; i < WINDOW; i++) {
		OK(post(DAT_DTO_RDMA_WRITE));
		OK(post(DAT_DTO_RDMA_READ));
	}
	TRY(transfer());
	return account();
}

static int killed_client(void)
{
	DAT_COUNT size = sizeof(now.theirs);
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	TRY(make_side());
	OK(dat_psp_create(ia, ktest_port, now.pair.dto[0], DAT_PSP_CONSUMER_FLAG, &psp));
	WRITE_ONCE(ktest_stage, 2);
	TRY(next_event(now.pair.dto[0], DAT_CONNECTION_REQUEST_EVENT, &event));
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(kdapl_cr_private_data(cr, &size, &now.theirs));
	OK(dat_cr_accept(cr, now.pair.ep[0], sizeof(now.mine), &now.mine));
	TRY(gate_established(&now.pair, 0));
	return flood();
}

static int killed_server(void)
{
	DAT_COUNT size = sizeof(now.theirs);

	TRY(make_side());
	OK(dat_ep_connect(now.pair.ep[0], ia_attr.ia_address_ptr, ktest_port, PATIENCE_US,
			  sizeof(now.mine), &now.mine, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	TRY(gate_established(&now.pair, 0));
	OK(kdapl_ep_private_data(now.pair.ep[0], &size, &now.theirs));
	return flood();
}

const struct ktest mixed_killed_tests[] = {
	{ "killed_client", killed_client },
	{ "killed_server", killed_server },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tests connections between this consumer, which is side 0 of a pair, and a program in user space.
 * `userspace-test/tests/self/src/tests/kernel/mixed.rs` is the program.
 */
#include <linux/string.h>

#include "gate.h"

/* Flags of a session. */
#define CONNECTS	1	/* this consumer connects to the program, at `port` */
#define GATED		2	/* this consumer closes its ready gate */
#define SENDS_FIRST	4	/* this consumer sends the first messages: the program has a gate */
#define ENDS		8	/* this consumer ends the connection */
#define UNBINDS		16	/* the program writes to memory that is not bound any more */

#define MESSAGES	3
/* Memory that the program accesses. */
#define OPEN		49152
#define OPEN_SIZE	4096

/*
 * Of this consumer's requests. A send may complete after the program's answer to it has come, so
 * the receives have another EVD.
 */
static DAT_EVD_HANDLE requests;

static int connect_pair(const struct pair *pair, unsigned int flags)
{
	const u32 gate = flags & GATED ? KDAPL_READY_GATE_FLAG : 0;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	if (flags & CONNECTS) {
		OK(dat_ep_connect(pair->ep[0], ia_attr.ia_address_ptr, ktest_port, PATIENCE_US, 0,
				  NULL, DAT_QOS_BEST_EFFORT, gate));
		WRITE_ONCE(ktest_stage, 1);
		return 0;
	}
	OK(dat_psp_create(ia, ktest_port, pair->dto[0], DAT_PSP_CONSUMER_FLAG, &psp));
	WRITE_ONCE(ktest_stage, 1);
	TRY(next_event(pair->dto[0], DAT_CONNECTION_REQUEST_EVENT, &event));
	OK(kdapl_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair->ep[0], 0, NULL,
			   gate));
	OK(dat_psp_free(psp));
	return 0;
}

/* With a closed gate the messages of the program arrive before ESTABLISHED is reported. */
static int hear(const struct pair *pair, unsigned int flags)
{
	if (flags & GATED) {
		TRY(gate_arrived(pair, 0, MESSAGES - 1));
		TRY(gate_quiet(pair, 0));
		TRY(gate_state(pair, 0, flags & CONNECTS ? DAT_EP_STATE_ACTIVE_CONNECTION_PENDING :
							   DAT_EP_STATE_COMPLETION_PENDING));
		OK(kdapl_ep_ready(pair->ep[0]));
		TRY(gate_established(pair, 0));
	}
	return gate_receives(pair, 0, 0, MESSAGES);
}

/* Sends a message whose bytes are all @byte, except those of @start. */
static int say(const struct pair *pair, u8 byte, const DAT_RMR_TRIPLET *start)
{
	const DAT_LMR_TRIPLET place = pair_place(pair, 0, GATE_MESSAGE);

	memset(pair->memory, byte, GATE_MESSAGE);
	if (start)
		memcpy(pair->memory, start, sizeof(*start));
	OK(dat_ep_post_send(pair->ep[0], 1, &place, cookie(byte), DAT_COMPLETION_DEFAULT_FLAG));
	return next_dto(requests, DAT_DTO_SEND, byte, GATE_MESSAGE);
}

static int say_all(const struct pair *pair)
{
	unsigned int number;

	for (number = 0; number < MESSAGES; number++)
		TRY(say(pair, 'A' + number, NULL));
	return 0;
}

static int bind(const struct pair *pair, DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr,
		DAT_LMR_TRIPLET part, DAT_RMR_CONTEXT *context)
{
	DAT_EVENT event;

	OK(dat_rmr_bind(rmr, lmr, &part, REMOTE_FLAGS, DAT_VA_TYPE_VA, pair->ep[0], cookie(1),
			DAT_COMPLETION_DEFAULT_FLAG, context));
	return next_event(requests, DAT_RMR_BIND_COMPLETION_EVENT, &event);
}

/* This consumer writes to memory of the program, and reads it back. */
static int use_theirs(const struct pair *pair)
{
	const DAT_LMR_TRIPLET from = pair_place(pair, 256, GATE_MESSAGE);
	const DAT_LMR_TRIPLET to = pair_place(pair, 512, GATE_MESSAGE);
	DAT_RMR_TRIPLET theirs;

	TRY(next_dto(pair->dto[0], DAT_DTO_RECEIVE, MESSAGES, GATE_MESSAGE));
	memcpy(&theirs, pair->memory + gate_place(0, MESSAGES), sizeof(theirs));
	memset(pair->memory + 256, 0x66, GATE_MESSAGE);
	OK(dat_ep_post_rdma_write(pair->ep[0], 1, &from, cookie(2), &theirs,
				  DAT_COMPLETION_DEFAULT_FLAG));
	TRY(next_dto(requests, DAT_DTO_RDMA_WRITE, 2, GATE_MESSAGE));
	/* Over iWARP no read into memory without a key is possible. */
	if (is_iwarp)
		return 0;
	OK(dat_ep_post_rdma_read(pair->ep[0], 1, &to, cookie(3), &theirs,
				 DAT_COMPLETION_DEFAULT_FLAG));
	TRY(next_dto(requests, DAT_DTO_RDMA_READ, 3, GATE_MESSAGE));
	EXPECT(!memcmp(pair->memory + 256, pair->memory + 512, GATE_MESSAGE));
	return 0;
}

/* Each side writes to memory of the other. This one's is open by an RMR. */
static int use_memory(const struct pair *pair, unsigned int flags)
{
	DAT_LMR_TRIPLET part = { (DAT_VADDR)pair->memory + OPEN, OPEN_SIZE, 0 };
	DAT_RMR_TRIPLET mine = { (DAT_VADDR)pair->memory + OPEN, OPEN_SIZE, 0 };
	DAT_RMR_HANDLE rmr;
	DAT_LMR_HANDLE lmr;

	OK(register_memory(pair_memory, PAIR_MEMORY, LOCAL_FLAGS, &lmr, &part.lmr_context));
	OK(dat_rmr_create(pz, &rmr));
	TRY(bind(pair, rmr, lmr, part, &mine.rmr_context));
	TRY(say(pair, 'R', &mine));
	TRY(use_theirs(pair));
	/* The program's message has followed its write. */
	EXPECT(!memchr_inv(pair->memory + OPEN, 0x77, GATE_MESSAGE));
	SAME(pair->memory[OPEN + GATE_MESSAGE], 0);
	if (flags & UNBINDS) {
		part.segment_length = 0;
		TRY(bind(pair, rmr, lmr, part, NULL));
	}
	return say(pair, 'D', NULL);
}

static int end(const struct pair *pair, unsigned int flags)
{
	DAT_EVENT event;

	if (flags & ENDS)
		OK(dat_ep_disconnect(pair->ep[0], DAT_CLOSE_GRACEFUL_FLAG));
	TRY(gate_flushes(pair, 0, MESSAGES + 1));
	OK(dat_evd_wait(pair->dto[0], PATIENCE_US, 1, &event, NULL));
	/* The side that refuses an access may learn of the peer's end first. */
	if (!(flags & UNBINDS) || event.event_number != DAT_CONNECTION_EVENT_BROKEN)
		SAME(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	if (flags & UNBINDS)
		EXPECT(!memchr_inv(pair->memory + OPEN, 0x77, GATE_MESSAGE));
	return gate_quiet(pair, 0);
}

static int session(unsigned int flags)
{
	struct pair pair = {};

	OK(dat_evd_kcreate(ia, 64, DAT_UPCALL_DISABLE, NULL,
			   DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &requests));
	TRY(gate_make_with(&pair, requests));
	TRY(connect_pair(&pair, flags));
	if (!(flags & GATED))
		TRY(gate_established(&pair, 0));
	if (flags & SENDS_FIRST)
		TRY(say_all(&pair));
	TRY(hear(&pair, flags));
	if (!(flags & SENDS_FIRST))
		TRY(say_all(&pair));
	TRY(use_memory(&pair, flags));
	return end(&pair, flags);
}

static int mixed_accepts(void)
{
	return session(0);
}

static int mixed_connects(void)
{
	return session(CONNECTS | ENDS);
}

static int mixed_accepts_gated(void)
{
	return session(GATED | ENDS);
}

static int mixed_connects_gated(void)
{
	return session(CONNECTS | GATED);
}

static int mixed_accepts_sends_first(void)
{
	return session(SENDS_FIRST);
}

static int mixed_connects_sends_first(void)
{
	return session(CONNECTS | SENDS_FIRST | ENDS);
}

static int mixed_unbinds(void)
{
	return session(UNBINDS);
}

const struct ktest mixed_tests[] = {
	{ "mixed_accepts", mixed_accepts },
	{ "mixed_connects", mixed_connects },
	{ "mixed_accepts_gated", mixed_accepts_gated },
	{ "mixed_connects_gated", mixed_connects_gated },
	{ "mixed_accepts_sends_first", mixed_accepts_sends_first },
	{ "mixed_connects_sends_first", mixed_connects_sends_first },
	{ "mixed_unbinds", mixed_unbinds },
	{}
};

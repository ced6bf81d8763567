// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests that an LMR is not freed while the device may access its memory for a DTO. */
#include <linux/string.h>

#include "ktest.h"

#define SIZE		256
#define RECEIVES	32
#define ROUNDS		20

static const DAT_COMPLETION_FLAGS plain = DAT_COMPLETION_DEFAULT_FLAG;

/* Memory of an LMR of its own. */
struct buffer {
	u8 *bytes;
	struct lmr lmr;
};

static int buffer_make(struct buffer *buffer)
{
	static u8 bytes[SIZE];

	memset(bytes, 0, SIZE);
	buffer->bytes = bytes;
	OK(lmr_make_virtual(bytes, SIZE, LOCAL_FLAGS, &buffer->lmr));
	return 0;
}

static DAT_LMR_TRIPLET part(const struct buffer *buffer, size_t offset, DAT_SEG_LENGTH length)
{
	return (DAT_LMR_TRIPLET){
		.virtual_address = (DAT_VADDR)buffer->bytes + offset,
		.segment_length = length,
		.lmr_context = buffer->lmr.local,
	};
}

static int refused(const struct buffer *buffer)
{
	REFUSED(dat_lmr_free(buffer->lmr.handle), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	return 0;
}

static int lmr_free_during_receive(void)
{
	struct pair pair = {};
	struct buffer buffer;
	DAT_LMR_TRIPLET segments[2], message;

	TRY(pair_make(&pair));
	TRY(buffer_make(&buffer));
	TRY(pair_connect(&pair));
	message = pair_place(&pair, 0, 64);
	segments[0] = part(&buffer, 0, 64);
	OK(dat_ep_post_recv(pair.ep[1], 1, segments, cookie(1), plain));
	TRY(refused(&buffer));
	/* The refused call has changed nothing. The second segment counts, too. */
	segments[0] = pair_place(&pair, 1024, 32);
	segments[1] = part(&buffer, 64, 32);
	OK(dat_ep_post_recv(pair.ep[1], 2, segments, cookie(2), plain));
	OK(dat_ep_post_send(pair.ep[0], 1, &message, cookie(3), plain));
	TRY(next_dto(pair.dto[1], DAT_DTO_RECEIVE, 1, 64));
	TRY(refused(&buffer));
	OK(dat_ep_post_send(pair.ep[0], 1, &message, cookie(4), plain));
	TRY(next_dto(pair.dto[1], DAT_DTO_RECEIVE, 2, 64));
	OK(dat_lmr_free(buffer.lmr.handle));
	REFUSED(dat_ep_post_recv(pair.ep[1], 2, segments, cookie(5), plain),
		DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
	REFUSED(dat_lmr_free(buffer.lmr.handle), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	return 0;
}

/* A slot that was used for the memory, and then for other requests, counts no more. */
static int lmr_free_after_slot_reuse(void)
{
	struct pair pair = {};
	struct buffer buffer;
	DAT_LMR_TRIPLET segment, other;

	TRY(pair_make(&pair));
	TRY(buffer_make(&buffer));
	TRY(pair_connect(&pair));
	segment = part(&buffer, 0, 64);
	other = pair_place(&pair, 0, 64);
	OK(dat_ep_post_recv(pair.ep[1], 1, &other, cookie(1), plain));
	OK(dat_ep_post_send(pair.ep[0], 1, &segment, cookie(2), plain));
	TRY(next_dto(pair.dto[0], DAT_DTO_SEND, 2, 64));
	/* Without receives at the peer these wait. */
	OK(dat_ep_post_send(pair.ep[0], 1, &other, cookie(3), plain));
	OK(dat_ep_post_send(pair.ep[0], 0, NULL, cookie(4), plain));
	OK(dat_lmr_free(buffer.lmr.handle));
	return 0;
}

static int lmr_free_during_request(void)
{
	DAT_LIST_DTO list[2] = {};
	struct pair pair = {};
	struct buffer buffer;
	DAT_LMR_TRIPLET segment, other;
	unsigned int i;

	if (is_iwarp)
		return 0;
	TRY(pair_make(&pair));
	TRY(buffer_make(&buffer));
	TRY(pair_connect(&pair));
	segment = part(&buffer, 0, 64);
	other = pair_place(&pair, 0, 64);
	/* Nothing tells the consumer when suppressed requests have completed. */
	for (i = 0; i < 8; i++)
		OK(dat_ep_post_recv(pair.ep[1], 1, &other, cookie(i), plain));
	for (i = 0; i < 5; i++)
		OK(dat_ep_post_send(pair.ep[0], 1, &segment, cookie(i),
				    DAT_COMPLETION_SUPPRESS_FLAG));
	OK(dat_lmr_free(buffer.lmr.handle));
	TRY(buffer_make(&buffer));
	segment = part(&buffer, 0, 64);
	/* The peer has three receives, and the last request waits for another one. */
	list[0] = list[1] = (DAT_LIST_DTO){ .operation = DAT_DTO_SEND, .segments = 1,
					    .local = &other };
	list[1].local = &segment;
	OK(kdapl_ep_post_list(pair.ep[0], 1, list, NULL));
	OK(kdapl_ep_post_list(pair.ep[0], 1, list, NULL));
	OK(kdapl_ep_post_list(pair.ep[0], 2, list, NULL));
	TRY(refused(&buffer));
	OK(dat_ep_free(pair.ep[0]));
	OK(dat_lmr_free(buffer.lmr.handle));
	return 0;
}

static int lmr_free_during_srq_receive(void)
{
	const DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 2 };
	DAT_LMR_TRIPLET segments[2];
	struct pair pair = {};
	struct buffer buffer;
	DAT_SRQ_HANDLE srq;

	if (!ia_attr.max_srqs)
		return 0;
	TRY(pair_make(&pair));
	TRY(buffer_make(&buffer));
	OK(dat_srq_create(ia, pz, &attr, &srq));
	segments[0] = pair_place(&pair, 0, 32);
	segments[1] = part(&buffer, 0, 32);
	OK(dat_srq_post_recv(srq, 2, segments, cookie(1)));
	TRY(refused(&buffer));
	/* siw cannot resize it. */
	SAME(dat_srq_resize(srq, 8),
	     is_iwarp ? DAT_CLASS_ERROR | DAT_MODEL_NOT_SUPPORTED : DAT_SUCCESS);
	TRY(refused(&buffer));
	OK(dat_srq_free(srq));
	OK(dat_lmr_free(buffer.lmr.handle));
	return 0;
}

static DAT_EP_HANDLE freed_ep;

static int free_receiver(unsigned int unused)
{
	OK(dat_ep_free(freed_ep));
	return 0;
}

/* Frees the memory as soon as the call allows it. No message is sent: soft-RoCE warns of those. */
static int race_round(const struct buffer *buffer, const struct pair *pair)
{
	static struct ktest_thread thread;
	DAT_LMR_TRIPLET segment = part(buffer, 0, SIZE);
	DAT_EP_STATE state;
	unsigned int i;

	for (i = 0; i < RECEIVES; i++)
		OK(dat_ep_post_recv(pair->ep[1], 1, &segment, cookie(i), plain));
	TRY(refused(buffer));
	freed_ep = pair->ep[1];
	TRY(ktest_start(&thread, free_receiver, 0));
	UNTIL(!dat_lmr_free(buffer->lmr.handle));
	/* The Endpoint is gone, so its receives are. */
	REFUSED(dat_ep_get_status(pair->ep[1], &state, NULL, NULL), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_EP);
	return ktest_join(&thread);
}

static int lmr_free_beside_ep_free(void)
{
	struct buffer buffer;
	unsigned int round;

	for (round = 0; round < ROUNDS; round++) {
		struct pair pair = {};

		TRY(pair_make(&pair));
		TRY(buffer_make(&buffer));
		TRY(pair_connect(&pair));
		TRY(race_round(&buffer, &pair));
		TRY(ktest_renew());
	}
	return 0;
}

/* Lists of DTOs that name one buffer, posted by a thread. */
#define LIST		24
#define LIST_ROUNDS	48

static struct {
	DAT_EP_HANDLE ep;
	DAT_DTOS operation;
	struct buffer buffer;
	atomic_t ready;
	bool stopped;
	DAT_COUNT posted;
} lists;

/* Returns when both threads are here. */
static void meet(void)
{
	atomic_inc(&lists.ready);
	while (atomic_read(&lists.ready) < 2)
		cond_resched();
}

static int post_list(unsigned int delay)
{
	static DAT_LIST_DTO list[LIST];
	DAT_LMR_TRIPLET segment = part(&lists.buffer, 0, 64);
	unsigned int i;

	for (i = 0; i < LIST; i++)
		list[i] = (DAT_LIST_DTO){ .operation = lists.operation, .segments = 1,
					  .local = &segment };
	meet();
	ndelay(delay);
	kdapl_ep_post_list(lists.ep, LIST, list, &lists.posted);
	return 0;
}

/* None of the DTOs completes. So the memory is freed if and only if none was posted. */
static int list_round(const struct pair *pair, unsigned int number)
{
	static struct ktest_thread thread;
	DAT_RETURN ret;

	TRY(buffer_make(&lists.buffer));
	lists.ep = pair->ep[lists.operation == DAT_DTO_RECEIVE];
	lists.posted = 0;
	atomic_set(&lists.ready, 0);
	/* Either thread begins first, by up to some microseconds. */
	TRY(ktest_start(&thread, post_list, number % 2 * number * 100));
	meet();
	ndelay((number + 1) % 2 * number * 100);
	ret = dat_lmr_free(lists.buffer.lmr.handle);
	TRY(ktest_join(&thread));
	if (!ret) {
		SAME(lists.posted, 0);
		return 0;
	}
	SAME(ret, DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_LMR_IN_USE);
	EXPECT(lists.posted > 0);
	return 0;
}

static int free_beside_lists(DAT_DTOS operation, bool connects)
{
	unsigned int number;

	lists.operation = operation;
	for (number = 0; number < LIST_ROUNDS; number++) {
		struct pair pair = {};

		TRY(pair_make(&pair));
		if (connects)
			TRY(pair_connect(&pair));
		TRY(list_round(&pair, number));
		TRY(ktest_renew());
	}
	return 0;
}

static int refuse_until_stopped(unsigned int unused)
{
	meet();
	while (!READ_ONCE(lists.stopped)) {
		TRY(refused(&lists.buffer));
		cond_resched();
	}
	return 0;
}

/* A receive of an Endpoint that connects meanwhile. The refused calls have changed nothing. */
static int connect_round(void)
{
	static struct ktest_thread thread;
	struct pair pair = {};
	DAT_LMR_TRIPLET segment, message;
	int error;

	TRY(pair_make(&pair));
	TRY(buffer_make(&lists.buffer));
	segment = part(&lists.buffer, 0, 64);
	message = pair_place(&pair, 0, 64);
	OK(dat_ep_post_recv(pair.ep[0], 1, &segment, cookie(1), plain));
	atomic_set(&lists.ready, 0);
	lists.stopped = false;
	TRY(ktest_start(&thread, refuse_until_stopped, 0));
	meet();
	error = pair_connect(&pair);
	WRITE_ONCE(lists.stopped, true);
	TRY(ktest_join(&thread) ?: error);
	OK(dat_ep_post_send(pair.ep[1], 1, &message, cookie(2), plain));
	TRY(next_dto(pair.dto[0], DAT_DTO_RECEIVE, 1, 64));
	OK(dat_lmr_free(lists.buffer.lmr.handle));
	return ktest_renew();
}

static int lmr_free_beside_connect(void)
{
	unsigned int number;

	for (number = 0; number < LIST_ROUNDS; number++)
		TRY(connect_round());
	return 0;
}

static int lmr_free_beside_list_post(void)
{
	TRY(free_beside_lists(DAT_DTO_RECEIVE, true));
	TRY(free_beside_lists(DAT_DTO_RECEIVE, false));
	/*
	 * Without a receive at the peer a send waits. Over iWARP it completes when TCP has taken
	 * it.
	 */
	return is_iwarp ? 0 : free_beside_lists(DAT_DTO_SEND, true);
}

/* The caller knows that no DTO uses the memory. All else is checked. */
static int lmr_free_unused(void)
{
	struct pair pair = {};
	DAT_LMR_HANDLE reserved;
	struct buffer buffer;
	DAT_LMR_TRIPLET segment, other;
	DAT_LMR_CONTEXT context;
	unsigned int post;

	TRY(pair_make(&pair));
	TRY(buffer_make(&buffer));
	TRY(pair_connect(&pair));
	segment = part(&buffer, 0, 64);
	other = pair_place(&pair, 0, 64);
	/* From the third post on the Endpoint uses its own copy of the region. */
	for (post = 0; post < 4; post++) {
		OK(dat_ep_post_recv(pair.ep[1], 1, &other, cookie(1), plain));
		OK(dat_ep_post_send(pair.ep[0], 1, &segment, cookie(2), plain));
		TRY(next_dto(pair.dto[0], DAT_DTO_SEND, 2, 64));
	}
	OK(kdapl_lmr_free_unused(buffer.lmr.handle));
	REFUSED(dat_ep_post_send(pair.ep[0], 1, &segment, cookie(3), plain),
		DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
	REFUSED(kdapl_lmr_free_unused(buffer.lmr.handle), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_LMR);
	OK(dat_ia_reserved_lmr(ia, &reserved, &context));
	REFUSED(kdapl_lmr_free_unused(reserved), DAT_RESERVED_LMR, 0);
	return 0;
}

const struct ktest lmr_use_tests[] = {
	{ "lmr_free_unused", lmr_free_unused },
	{ "lmr_free_during_receive", lmr_free_during_receive },
	{ "lmr_free_after_slot_reuse", lmr_free_after_slot_reuse },
	{ "lmr_free_during_request", lmr_free_during_request },
	{ "lmr_free_during_srq_receive", lmr_free_during_srq_receive },
	{ "lmr_free_beside_ep_free", lmr_free_beside_ep_free },
	{ "lmr_free_beside_list_post", lmr_free_beside_list_post },
	{ "lmr_free_beside_connect", lmr_free_beside_connect },
	{}
};

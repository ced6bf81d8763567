// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests connections and transfers. */
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ktest.h"

static void fill(u8 *memory, size_t length, u8 seed)
{
	while (length--)
		memory[length] = seed + length * 7;
}

/* Sends a message in both directions. */
static int messages(void)
{
	struct pair pair = {};
	DAT_LMR_TRIPLET place;
	unsigned int round;

	TRY(pair_make(&pair));
	place = pair_place(&pair, 0, 1000);
	OK(dat_ep_post_recv(pair.ep[1], 1, &place, cookie(0), DAT_COMPLETION_DEFAULT_FLAG));
	TRY(pair_connect(&pair));
	for (round = 0; round < 50; round++) {
		unsigned int from = round % 2, to = 1 - from;

		fill(pair.memory + 4096, 1000, round);
		place = pair_place(&pair, 4096, 1000);
		OK(dat_ep_post_send(pair.ep[from], 1, &place, cookie(round),
				    DAT_COMPLETION_DEFAULT_FLAG));
		TRY(next_dto(pair.dto[from], DAT_DTO_SEND, round, 1000));
		TRY(next_dto(pair.dto[to], DAT_DTO_RECEIVE, round, 1000));
		EXPECT(!memcmp(pair.memory, pair.memory + 4096, 1000));
		place = pair_place(&pair, 0, 1000);
		OK(dat_ep_post_recv(pair.ep[from], 1, &place, cookie(round + 1),
				    DAT_COMPLETION_DEFAULT_FLAG));
	}
	return 0;
}

#define LIST		20
#define PIECE		32

/* Posts receives, sends and RDMA writes in lists. A list ends at a DTO that is refused. */
static int lists(void)
{
	DAT_LIST_DTO list[LIST];
	DAT_LMR_TRIPLET place[LIST];
	struct pair pair = {};
	DAT_COUNT posted;
	unsigned int i;

	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	fill(pair.memory + 4096, LIST * PIECE, 1);
	for (i = 0; i < LIST; i++) {
		place[i] = pair_place(&pair, i * PIECE, PIECE);
		list[i] = (DAT_LIST_DTO){ .operation = DAT_DTO_RECEIVE, .segments = 1,
			.local = &place[i], .cookie = cookie(i) };
	}
	OK(kdapl_ep_post_list(pair.ep[1], LIST, list, &posted));
	SAME(posted, LIST);
	for (i = 0; i < LIST; i++) {
		place[i] = pair_place(&pair, 4096 + i * PIECE, PIECE);
		list[i].operation = DAT_DTO_SEND;
	}
	list[LIST - 3].operation = 99;
	REFUSED(kdapl_ep_post_list(pair.ep[0], LIST, list, &posted), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(3));
	SAME(posted, LIST - 3);
	list[LIST - 3].operation = DAT_DTO_SEND;
	OK(kdapl_ep_post_list(pair.ep[0], 3, list + LIST - 3, NULL));
	for (i = 0; i < LIST; i++) {
		TRY(next_dto(pair.dto[0], DAT_DTO_SEND, i, PIECE));
		TRY(next_dto(pair.dto[1], DAT_DTO_RECEIVE, i, PIECE));
	}
	EXPECT(!memcmp(pair.memory, pair.memory + 4096, LIST * PIECE));
	OK(kdapl_ep_post_list(pair.ep[0], 0, NULL, &posted));
	SAME(posted, 0);
	REFUSED(kdapl_ep_post_list(pair.ep[0], 1, NULL, &posted), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(3));
	REFUSED(kdapl_ep_post_list(pair.ep[0], -1, list, NULL), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(2));
	return 0;
}

/* Sends memory of vmalloc() that begins within a page, across pages. */
static int exchange_pages(struct pair *pair, u8 *pages)
{
	const DAT_SEG_LENGTH length = 3 * PAGE_SIZE - 200;
	DAT_LMR_CONTEXT context;
	DAT_LMR_TRIPLET place;
	DAT_LMR_HANDLE lmr;
	u8 *start = pages + 100;

	OK(register_memory(start, 4 * PAGE_SIZE - 100, DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr,
			   &context));
	fill(start, length + 50, 3);
	place = pair_place(pair, 0, length);
	OK(dat_ep_post_recv(pair->ep[1], 1, &place, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	place = (DAT_LMR_TRIPLET){ (DAT_VADDR)start + 50, length, context };
	OK(dat_ep_post_send(pair->ep[0], 1, &place, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
	TRY(next_dto(pair->dto[0], DAT_DTO_SEND, 2, length));
	TRY(next_dto(pair->dto[1], DAT_DTO_RECEIVE, 1, length));
	EXPECT(!memcmp(pair->memory, start + 50, length));
	/* A receive would write to the memory. */
	REFUSED(dat_ep_post_recv(pair->ep[1], 1, &place, cookie(3), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_PRIVILEGES_VIOLATION, 90);
	/* A segment beyond the end of the region. */
	place.segment_length = 4 * PAGE_SIZE - 149;
	REFUSED(dat_ep_post_send(pair->ep[0], 1, &place, cookie(4), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_PROTECTION_VIOLATION, 93);
	OK(dat_lmr_free(lmr));
	place.segment_length = 1;
	REFUSED(dat_ep_post_send(pair->ep[0], 1, &place, cookie(5), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_PROTECTION_VIOLATION, 93);
	return 0;
}

static int memory_types(void)
{
	const DAT_MEM_PRIV_FLAGS local =
		DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	struct pair pair = {};
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_PARAM param;
	u8 *pages;
	int error;

	REFUSED(register_memory(pair_memory, 0, local, &lmr, &context), DAT_LENGTH_ERROR, 0);
	REFUSED(register_memory((void *)8192, 4096, local, &lmr, &context), DAT_INVALID_ADDRESS,
		99);
	REFUSED(register_memory(NULL, 4096, local, &lmr, &context), DAT_INVALID_ADDRESS, 99);
	REFUSED(register_memory(pair_memory, 64, 0x100, &lmr, &context), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(6));
	OK(register_memory(pair_memory + 8, 64, local, &lmr, &context));
	OK(dat_lmr_query(lmr, 0, &param));
	EXPECT(param.ia_handle == ia && param.pz_handle == pz);
	EXPECT(param.region_desc.for_va == pair_memory + 8 && param.length == 64);
	SAME(param.lmr_context, context);
	SAME(param.mem_priv, local);
	REFUSED(dat_pz_free(pz), DAT_INVALID_STATE, 83);
	OK(dat_lmr_free(lmr));
	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	pages = vmalloc(4 * PAGE_SIZE);
	EXPECT(pages);
	error = exchange_pages(&pair, pages);
	vfree(pages);
	return error;
}

/* Tests that the last event of a threshold wakes the waiter, and that time-outs are obeyed. */
static int wait_threshold_and_timeout(void)
{
	struct pair pair = {};
	DAT_EVD_HANDLE evd;
	DAT_COUNT nmore;
	DAT_EVENT event;
	u64 start;

	TRY(make_evd(16, DAT_UPCALL_DISABLE, NULL, &evd));
	start = ktime_get_ns();
	REFUSED(dat_evd_wait(evd, 20 * USEC_PER_MSEC, 1, &event, &nmore), DAT_TIMEOUT_EXPIRED, 0);
	EXPECT(ktime_get_ns() - start >= 20 * NSEC_PER_MSEC);
	OK(post_number(evd, 1));
	OK(post_number(evd, 2));
	REFUSED(dat_evd_wait(evd, 1000, 3, &event, &nmore), DAT_TIMEOUT_EXPIRED, 0);
	OK(dat_evd_wait(evd, 0, 2, &event, &nmore));
	SAME(number_of(&event), 1);
	SAME(nmore, 1);
	OK(dat_evd_set_unwaitable(evd));
	REFUSED(dat_evd_wait(evd, 0, 1, &event, NULL), DAT_INVALID_STATE,
		DAT_INVALID_STATE_EVD_UNWAITABLE);
	OK(dat_evd_clear_unwaitable(evd));
	OK(dat_evd_wait(evd, 0, 1, &event, NULL));
	OK(dat_evd_resize(evd, 64));
	REFUSED(dat_evd_wait(evd, 0, 65, &event, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	REFUSED(dat_evd_wait(evd, 0, 1, NULL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(4));
	return pair_make(&pair);
}

const struct ktest traffic_tests[] = {
	{ "messages", messages },
	{ "lists", lists },
	{ "memory_types", memory_types },
	{ "wait_threshold_and_timeout", wait_threshold_and_timeout },
	{}
};

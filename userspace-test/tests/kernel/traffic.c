// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests connections, transfers, and the removal of the device. */
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
		OK(dat_ep_post_send(pair.ep[from], 1, &place, cookie(round), DAT_COMPLETION_DEFAULT_FLAG));
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

	OK(register_memory(start, 4 * PAGE_SIZE - 100, DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr, &context));
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
	const DAT_MEM_PRIV_FLAGS local = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	struct pair pair = {};
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_PARAM param;
	u8 *pages;
	int error;

	REFUSED(register_memory(pair_memory, 0, local, &lmr, &context), DAT_LENGTH_ERROR, 0);
	REFUSED(register_memory((void *)8192, 4096, local, &lmr, &context), DAT_INVALID_ADDRESS, 99);
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

/* Tests the order of events. One EVD with upcalls gets all events of an Endpoint. */
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
			OK(dat_ep_post_recv(ep[side], 1, &place, cookie(message), DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_psp_create_any(ia, &conn_qual, pair->connection[0], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(pair->connection[0], DAT_CONNECTION_REQUEST_EVENT, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep[1], 0, NULL));
	/* The connecting side may post first. */
	UNTIL(READ_ONCE(told[0].dtos) > 0);
	for (message = 0; message < MESSAGES; message++)
		OK(dat_ep_post_send(ep[0], 1, &place, cookie(message), DAT_COMPLETION_DEFAULT_FLAG));
	UNTIL(READ_ONCE(told[1].dtos) > 0);
	for (message = 0; message < MESSAGES; message++)
		OK(dat_ep_post_send(ep[1], 1, &place, cookie(message), DAT_COMPLETION_DEFAULT_FLAG));
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

/*
 * Tests the removal of the device under a connection with traffic. A program in user
 * space deletes it at stage 1.
 */
static struct {
	atomic_t over, catastrophic, flushed, others;
} gone;

static void watch(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	switch (event->event_number) {
	case DAT_CONNECTION_EVENT_BROKEN:
	/* The peer is on the same device, and may be removed a little earlier. */
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		atomic_inc(&gone.over);
		break;
	case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
		atomic_inc(&gone.catastrophic);
		break;
	case DAT_DTO_COMPLETION_EVENT:
		atomic_inc(&gone.flushed);
		break;
	default:
		atomic_inc(&gone.others);
	}
}

/* Makes an LMR that is registered, and one that is free. */
static int make_registrations(const struct pair *pair, DAT_LMR_HANDLE *lmr)
{
	DAT_REGION_DESCRIPTION region = { .for_va = PTR_ALIGN(pair_memory, PAGE_SIZE) };
	unsigned int i;

	for (i = 0; i < 2; i++)
		OK(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_PZ, &lmr[i]));
	OK(dat_lmr_fmr(lmr[0], DAT_MEM_TYPE_VIRTUAL, region, 1, DAT_MEM_PRIV_REMOTE_READ_FLAG,
		       DAT_VA_TYPE_VA, pair->ep[0], cookie(1), DAT_COMPLETION_DEFAULT_FLAG, NULL, NULL));
	return next_dto(pair->dto[0], DAT_DTO_LMR_FMR, 1, 0);
}

/* After the removal of the device, they can be freed only. */
static int free_registrations(const struct pair *pair, const DAT_LMR_HANDLE *lmr)
{
	DAT_REGION_DESCRIPTION region = { .for_va = PTR_ALIGN(pair_memory, PAGE_SIZE) };
	DAT_LMR_HANDLE late;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		REFUSED(dat_lmr_invalidate(lmr[i], pair->ep[0], cookie(1), DAT_COMPLETION_DEFAULT_FLAG),
			DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
		REFUSED(dat_lmr_fmr(lmr[i], DAT_MEM_TYPE_VIRTUAL, region, 1, 0, DAT_VA_TYPE_VA,
				    pair->ep[0], cookie(1), DAT_COMPLETION_DEFAULT_FLAG, NULL, NULL),
			DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
		OK(dat_lmr_free(lmr[i]));
	}
	REFUSED(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_PZ, &late),
		DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	return 0;
}

static int device_removal(void)
{
	const DAT_UPCALL_OBJECT watcher = { .upcall_func = watch };
	struct pair pair = {};
	DAT_LMR_TRIPLET place;
	DAT_EVD_HANDLE late;
	DAT_LMR_HANDLE lmr[2];
	unsigned int side;

	memset(&gone, 0, sizeof(gone));
	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	TRY(make_registrations(&pair, lmr));
	OK(dat_evd_modify_upcall(async_evd, DAT_UPCALL_SINGLE_INSTANCE, &watcher, DAT_UPCALL_INVOC_ANY));
	place = pair_place(&pair, 0, 64);
	for (side = 0; side < 2; side++) {
		OK(dat_evd_modify_upcall(pair.dto[side], DAT_UPCALL_MANY, &watcher, DAT_UPCALL_INVOC_ANY));
		OK(dat_evd_modify_upcall(pair.connection[side], DAT_UPCALL_SINGLE_INSTANCE, &watcher,
					 DAT_UPCALL_INVOC_ANY));
		OK(dat_ep_post_recv(pair.ep[side], 1, &place, cookie(0), DAT_COMPLETION_DEFAULT_FLAG));
	}
	WRITE_ONCE(ktest_stage, 1);
	UNTIL(atomic_read(&gone.catastrophic) == 1);
	UNTIL(atomic_read(&gone.over) == 2);
	UNTIL(atomic_read(&gone.flushed) == 2);
	SAME(atomic_read(&gone.others), 0);
	/* Handles stay valid, but their device is removed. */
	REFUSED(dat_ep_post_send(pair.ep[0], 1, &place, cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	REFUSED(dat_evd_kcreate(ia, 4, DAT_UPCALL_DISABLE, NULL, DAT_EVD_SOFTWARE_FLAG, &late),
		DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	TRY(free_registrations(&pair, lmr));
	OK(dat_evd_modify_upcall(pair.dto[0], DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME, DAT_UPCALL_INVOC_ANY));
	OK(dat_ep_free(pair.ep[0]));
	return 0;
}

const struct ktest traffic_tests[] = {
	{ "messages", messages },
	{ "lists", lists },
	{ "memory_types", memory_types },
	{ "wait_threshold_and_timeout", wait_threshold_and_timeout },
	{ "event_order", event_order },
	{ "device_removal", device_removal },
	{}
};

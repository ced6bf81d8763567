// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tests LMRs of kernel memory with remote privileges. Side 1 of a pair owns the memory, side 0 is
 * the peer.
 */
#include <linux/mm.h>
#include <linux/string.h>
#include <rdma/kdat_ib_extensions.h>

#include "ktest.h"
#include "remote.h"

static int make_pair(struct pair *pair)
{
	TRY(pair_make(pair));
	return pair_connect(pair);
}

/* The peer writes to all of the memory, and reads it back. */
static int use_all(const struct pair *pair, const DAT_RMR_TRIPLET *remote, u8 value)
{
	memset(pair->memory, value, LENGTH);
	TRY(pair_rdma(pair, DAT_DTO_RDMA_WRITE, remote, 0, LENGTH));
	EXPECT(!memchr_inv(remote_memory + BEFORE, value, LENGTH));
	EXPECT(!memchr_inv(remote_memory, UNTOUCHED, BEFORE));
	EXPECT(!memchr_inv(remote_memory + BEFORE + LENGTH, UNTOUCHED,
			   PAGES * PAGE_SIZE - BEFORE - LENGTH));
	remote_memory[BEFORE + 5000] = ~value;
	TRY(pair_rdma(pair, DAT_DTO_RDMA_READ, remote, LENGTH, LENGTH));
	EXPECT(!memcmp(pair->memory + LENGTH, remote_memory + BEFORE, LENGTH));
	return 0;
}

/* The context exists before any EP. It travels in the private data of the connect. */
static int do_remote_private_data(void)
{
	DAT_RMR_TRIPLET sent, told;
	struct pair pair = {};
	DAT_CONN_QUAL conn_qual;
	DAT_CR_PARAM param;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	struct lmr lmr;

	TRY(remote_show(ALL, &lmr, &sent));
	TRY(pair_make(&pair));
	OK(dat_psp_create_any(ia, &conn_qual, pair.connection[0], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(pair.ep[1], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, sizeof(sent),
			  &sent, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(pair.connection[0], DAT_CONNECTION_REQUEST_EVENT, &event));
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(dat_cr_query(cr, 0, &param));
	EXPECT(param.private_data_size >= sizeof(told));
	memcpy(&told, param.private_data, sizeof(told));
	OK(dat_cr_accept(cr, pair.ep[0], 0, NULL));
	TRY(next_event(pair.connection[0], DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	return use_all(&pair, &told, 0x5a);
}

/* The context is made while the EPs are connected, and travels in a message. */
static int do_remote_message(void)
{
	DAT_LMR_TRIPLET from, to;
	struct pair pair = {};
	DAT_RMR_TRIPLET told;
	struct lmr lmr;

	TRY(make_pair(&pair));
	to = pair_place(&pair, 0, sizeof(told));
	from = pair_place(&pair, 64, sizeof(told));
	OK(dat_ep_post_recv(pair.ep[0], 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	TRY(remote_show(ALL, &lmr, (DAT_RMR_TRIPLET *)(pair.memory + 64)));
	OK(dat_ep_post_send(pair.ep[1], 1, &from, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
	TRY(next_dto(pair.dto[0], DAT_DTO_RECEIVE, 1, sizeof(told)));
	memcpy(&told, pair.memory, sizeof(told));
	return use_all(&pair, &told, 0xa5);
}

/* An access to one byte outside either end moves no byte, and ends the connection. */
static int do_remote_bounds(void)
{
	const DAT_DTOS operations[] = { DAT_DTO_RDMA_WRITE, DAT_DTO_RDMA_READ };
	unsigned int round;

	for (round = 0; round < 4; round++) {
		struct pair pair = {};
		DAT_RMR_TRIPLET remote;
		struct lmr lmr;

		TRY(make_pair(&pair));
		memset(pair.memory, 0x22, PAIR_MEMORY);
		TRY(remote_show(ALL, &lmr, &remote));
		remote.virtual_address += round & 1 ? 1 : -1;
		TRY(pair_rdma_refused(&pair, operations[round / 2], &remote, LENGTH));
		EXPECT(!memchr_inv(remote_memory, UNTOUCHED, PAGES * PAGE_SIZE));
		EXPECT(!memchr_inv(pair.memory, 0x22, PAIR_MEMORY));
		TRY(ktest_renew());
	}
	return 0;
}

/* A peer may do what the privileges say, and no more. */
static int do_remote_privileges(void)
{
	struct pair pair = {};
	DAT_RMR_TRIPLET remote;
	struct lmr lmr;

	TRY(make_pair(&pair));
	TRY(remote_show(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG, &lmr,
			&remote));
	TRY(pair_rdma(&pair, DAT_DTO_RDMA_READ, &remote, 0, LENGTH));
	EXPECT(!memchr_inv(pair.memory, UNTOUCHED, LENGTH));
	TRY(pair_rdma_refused(&pair, DAT_DTO_RDMA_WRITE, &remote, 8));
	TRY(ktest_renew());
	memset(&pair, 0, sizeof(pair));
	TRY(make_pair(&pair));
	TRY(remote_show(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &lmr, &remote));
	TRY(pair_rdma(&pair, DAT_DTO_RDMA_WRITE, &remote, 0, 8));
	EXPECT(!memchr_inv(remote_memory + BEFORE, 0, 8));
	return pair_rdma_refused(&pair, DAT_DTO_RDMA_READ, &remote, 8);
}

static DAT_RETURN add_one(const struct pair *pair, DAT_RMR_TRIPLET remote)
{
	const DAT_LMR_TRIPLET old = pair_place(pair, 0, sizeof(u64));

	/* A word is aligned. */
	remote.virtual_address += 2;
	remote.segment_length = sizeof(u64);
	return dat_ib_post_fetch_and_add(pair->ep[0], 1, &old, cookie(1), &remote,
					 DAT_COMPLETION_DEFAULT_FLAG);
}

static int do_remote_atomics(void)
{
	u64 *word = (u64 *)(remote_memory + BEFORE + 2);
	struct pair pair = {};
	DAT_RMR_TRIPLET remote;
	DAT_EVENT event;
	struct lmr lmr;

	TRY(make_pair(&pair));
	TRY(remote_show(LOCAL_FLAGS | DAT_IB_MEM_PRIV_REMOTE_ATOMIC, &lmr, &remote));
	*word = 41;
	OK(add_one(&pair, remote));
	TRY(next_event(pair.dto[0], DAT_IB_DTO_EVENT, &event));
	SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	SAME(*word, 42);
	SAME(*(u64 *)pair.memory, 41);
	OK(dat_lmr_free(lmr.handle));
	TRY(remote_show(ALL, &lmr, &remote));
	OK(add_one(&pair, remote));
	TRY(next_event(pair.dto[0], DAT_IB_DTO_EVENT, &event));
	SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_REMOTE_ACCESS);
	SAME(*word, 42);
	return 0;
}

/* No later LMR has the context of a freed one, and its memory is not reached any more. */
static int do_remote_free(void)
{
	struct lmr lmr, others[16];
	struct pair pair = {};
	DAT_RMR_TRIPLET remote;
	unsigned int i, k;

	TRY(make_pair(&pair));
	TRY(remote_show(ALL, &lmr, &remote));
	TRY(pair_rdma(&pair, DAT_DTO_RDMA_WRITE, &remote, 0, 8));
	OK(dat_lmr_free(lmr.handle));
	memset(remote_memory, UNTOUCHED, PAGES * PAGE_SIZE);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		OK(lmr_make_virtual(remote_memory + BEFORE, LENGTH, ALL, &others[i]));
		EXPECT(others[i].remote != lmr.remote);
		for (k = 0; k < i; k++)
			EXPECT(others[i].remote != others[k].remote);
	}
	TRY(pair_rdma_refused(&pair, DAT_DTO_RDMA_WRITE, &remote, 8));
	EXPECT(!memchr_inv(remote_memory, UNTOUCHED, PAGES * PAGE_SIZE));
	return 0;
}

/* An EP of another PZ refuses the context. */
static int do_remote_other_zone(void)
{
	DAT_PZ_HANDLE first = pz;
	struct pair pair = {};
	DAT_RMR_TRIPLET remote;
	struct lmr lmr;

	TRY(remote_show(ALL, &lmr, &remote));
	OK(dat_pz_create(ia, &pz));
	TRY(make_pair(&pair));
	TRY(pair_rdma_refused(&pair, DAT_DTO_RDMA_WRITE, &remote, 8));
	EXPECT(!memchr_inv(remote_memory, UNTOUCHED, PAGES * PAGE_SIZE));
	/* Its queue pair for registrations does not keep a PZ in use. */
	OK(dat_lmr_free(lmr.handle));
	OK(dat_pz_free(first));
	return 0;
}

/* An RMR is bound over such an LMR as over any other. */
static int do_remote_rmr(void)
{
	DAT_RMR_TRIPLET remote, part;
	DAT_LMR_TRIPLET local;
	struct pair pair = {};
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;
	struct lmr lmr;

	TRY(make_pair(&pair));
	TRY(remote_show(LOCAL_FLAGS | DAT_MEM_PRIV_REMOTE_READ_FLAG, &lmr, &remote));
	OK(dat_rmr_create(pz, &rmr));
	local = (DAT_LMR_TRIPLET){ lmr.address + 64, 128, lmr.local };
	part = (DAT_RMR_TRIPLET){ lmr.address + 64, 128 };
	OK(dat_rmr_bind(rmr, lmr.handle, &local, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
			pair.ep[1], cookie(1), DAT_COMPLETION_DEFAULT_FLAG, &part.rmr_context));
	TRY(next_event(pair.dto[1], DAT_RMR_BIND_COMPLETION_EVENT, &event));
	EXPECT(part.rmr_context != remote.rmr_context);
	memset(pair.memory, 0x33, 128);
	TRY(pair_rdma(&pair, DAT_DTO_RDMA_WRITE, &part, 0, 128));
	EXPECT(!memchr_inv(remote_memory + BEFORE + 64, 0x33, 128));
	REFUSED(dat_lmr_free(lmr.handle), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	OK(dat_rmr_free(rmr));
	TRY(pair_rdma(&pair, DAT_DTO_RDMA_READ, &remote, 0, LENGTH));
	EXPECT(!memcmp(pair.memory, remote_memory + BEFORE, LENGTH));
	OK(dat_lmr_free(lmr.handle));
	return 0;
}

/* The peer may end the context. The memory stays usable by this side. */
static int do_remote_invalidate(void)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_LMR_TRIPLET from, to;
	struct pair pair = {};
	DAT_RMR_TRIPLET remote;
	DAT_EVENT event;
	struct lmr lmr;

	TRY(make_pair(&pair));
	TRY(remote_show(ALL, &lmr, &remote));
	to = (DAT_LMR_TRIPLET){ lmr.address, 64, lmr.local };
	from = pair_place(&pair, 0, 64);
	memset(pair.memory, 0x44, 64);
	OK(dat_ep_post_recv(pair.ep[1], 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_post_send_with_invalidate(pair.ep[0], 1, &from, cookie(2),
					    DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, lmr.remote));
	TRY(next_dto(pair.dto[0], DAT_DTO_SEND, 2, 64));
	TRY(next_event(pair.dto[1], DAT_DTO_COMPLETION_EVENT, &event));
	dto = &event.event_data.dto_completion_event_data;
	SAME(dto->status, DAT_DTO_SUCCESS);
	SAME(dto->operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	SAME(dto->rmr_context, lmr.remote);
	OK(dat_ep_post_recv(pair.ep[1], 1, &to, cookie(3), DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_post_send(pair.ep[0], 1, &from, cookie(4), DAT_COMPLETION_DEFAULT_FLAG));
	TRY(next_dto(pair.dto[0], DAT_DTO_SEND, 4, 64));
	TRY(next_dto(pair.dto[1], DAT_DTO_RECEIVE, 3, 64));
	EXPECT(!memchr_inv(remote_memory + BEFORE, 0x44, 64));
	TRY(pair_rdma_refused(&pair, DAT_DTO_RDMA_WRITE, &remote, 8));
	OK(dat_lmr_free(lmr.handle));
	return 0;
}

TEST(remote_private_data)
TEST(remote_message)
TEST(remote_bounds)
TEST(remote_privileges)
TEST(remote_atomics)
TEST(remote_free)
TEST(remote_other_zone)
TEST(remote_rmr)
TEST(remote_invalidate)

const struct ktest remote_tests[] = {
	{ "remote_private_data", remote_private_data },
	{ "remote_message", remote_message },
	{ "remote_bounds", remote_bounds },
	{ "remote_privileges", remote_privileges },
	{ "remote_atomics", remote_atomics },
	{ "remote_free", remote_free },
	{ "remote_other_zone", remote_other_zone },
	{ "remote_rmr", remote_rmr },
	{ "remote_invalidate", remote_invalidate },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the registration of kernel memory, and the secrecy of its keys. */
#include <linux/hex.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ktest.h"

static DAT_RETURN register_bytes(const void *start, DAT_VLEN length)
{
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	return register_memory(start, length, DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr, &context);
}

static DAT_RETURN register_writable(const void *start, DAT_VLEN length)
{
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	return register_memory(start, length, DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &lmr, &context);
}

/* Registers more than the machine has, of both kinds of memory. */
static int region_too_long(void)
{
	u8 *pages = vmalloc(PAGE_SIZE);
	unsigned int bit;

	EXPECT(pages);
	for (bit = 36; bit < 62; bit++) {
		REFUSED(register_bytes(pages, 1ULL << bit), DAT_LENGTH_ERROR, 0);
		REFUSED(register_bytes(pair_memory, 1ULL << bit), DAT_LENGTH_ERROR, 0);
	}
	REFUSED(register_bytes(pages, U64_MAX), DAT_LENGTH_ERROR, 0);
	REFUSED(register_bytes(pair_memory, U64_MAX - (unsigned long)pair_memory), DAT_LENGTH_ERROR,
		0);
	/* The pages after it are unmapped, or belong to another owner who may free them. */
	OK(register_bytes(pages, PAGE_SIZE));
	vfree(pages);
	return 0;
}

typedef DAT_RETURN sync_call(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *local, DAT_VLEN segments);

/* Segments of a sync are within LMRs of the adapter. */
static int sync_within(sync_call *call, DAT_VADDR start, u32 length, DAT_LMR_CONTEXT context)
{
	const DAT_LMR_TRIPLET good[] = {
		{ start, length, context }, { start + length - 1, 1, context },
		{ start + length, 0, context }, {}, { 0, 0, ~context },
	};
	const DAT_LMR_TRIPLET bad[] = {
		{ start, 1, context ^ 0x40000000 }, { start - 1, 1, context },
		{ start + length, 1, context }, { start, length + 1, context },
		{ start + 1, length, context }, { start, U32_MAX, context },
	};
	unsigned int i;

	OK(call(ia, NULL, 0));
	OK(call(ia, good, ARRAY_SIZE(good)));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		const DAT_LMR_TRIPLET two[] = { good[0], bad[i] };

		REFUSED(call(ia, two, 2), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
		OK(call(ia, two, 1));
	}
	REFUSED(call(pz, good, 1), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return 0;
}

static int lmr_sync_of(sync_call *call)
{
	DAT_REGION_DESCRIPTION region = { .for_va = pair_memory };
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_LMR_TRIPLET piece = {};
	DAT_IA_HANDLE other;
	struct lmr lmr;

	OK(lmr_make_virtual(pair_memory + 100, 10000, LOCAL_FLAGS, &lmr));
	TRY(sync_within(call, lmr.address, 10000, lmr.local));
	piece = (DAT_LMR_TRIPLET){ lmr.address, 10000, lmr.local };
	OK(dat_ia_open(ia_attr.adapter_name, 8, &evd, &other));
	REFUSED(call(other, &piece, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	OK(dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG));
	REFUSED(call(other, &piece, 1), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	OK(dat_lmr_free(lmr.handle));
	REFUSED(call(ia, &piece, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	OK(lmr_make(DAT_MEM_TYPE_VIRTUAL, region, 8192, LOCAL_FLAGS, DAT_VA_TYPE_ZB, &lmr));
	SAME(lmr.address, 0);
	TRY(sync_within(call, 0, 8192, lmr.local));
	OK(dat_lmr_free(lmr.handle));
	return 0;
}

/* A context may name LMRs in two PZs, at two addresses. */
static int sync_of_zones(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = pair_memory };
	DAT_LMR_TRIPLET pieces[2];
	DAT_PZ_HANDLE zones[2];
	DAT_LMR_HANDLE lmr;
	int i;

	for (i = 0; i < 2; i++) {
		region.for_va = pair_memory + 4096 * i;
		OK(dat_pz_create(ia, &zones[i]));
		OK(dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, 64, zones[i], LOCAL_FLAGS,
				   DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &lmr,
				   &pieces[i].lmr_context, NULL, NULL,
				   &pieces[i].virtual_address));
		pieces[i].segment_length = 64;
	}
	OK(dat_lmr_sync_rdma_read(ia, pieces, 2));
	OK(dat_lmr_sync_rdma_write(ia, pieces, 2));
	OK(dat_lmr_free(lmr));
	OK(dat_lmr_sync_rdma_read(ia, pieces, 1));
	REFUSED(dat_lmr_sync_rdma_read(ia, pieces, 2), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	return 0;
}

/* The reserved LMR has no bounds, and no context until it is asked for. */
static int sync_of_reserved(void)
{
	DAT_LMR_TRIPLET piece = { .virtual_address = 4096, .segment_length = 64 };
	DAT_LMR_HANDLE lmr;

	piece.lmr_context = 1;
	REFUSED(dat_lmr_sync_rdma_read(ia, &piece, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	OK(dat_ia_reserved_lmr(ia, &lmr, &piece.lmr_context));
	SAME(piece.lmr_context, 1);
	OK(dat_lmr_sync_rdma_read(ia, &piece, 1));
	return 0;
}

static int lmr_sync(void)
{
	TRY(lmr_sync_of(dat_lmr_sync_rdma_read));
	TRY(lmr_sync_of(dat_lmr_sync_rdma_write));
	TRY(sync_of_zones());
	return sync_of_reserved();
}

/* Receives a message into static data of this module. */
static int receive_to_static_data(void)
{
	static u8 data[3 * PAGE_SIZE];
	u8 *place = data + PAGE_SIZE - 32;
	DAT_LMR_TRIPLET segment = { .virtual_address = (unsigned long)place, .segment_length = 64 };
	struct pair pair = {};
	DAT_LMR_TRIPLET message;
	DAT_LMR_HANDLE lmr;
	DAT_EVENT event;

	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	OK(register_memory(data, sizeof(data), DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &lmr,
			   &segment.lmr_context));
	OK(dat_ep_post_recv(pair.ep[1], 1, &segment, (DAT_DTO_COOKIE){ .as_64 = 1 },
			    DAT_COMPLETION_DEFAULT_FLAG));
	message = pair_place(&pair, 0, 64);
	memset(pair.memory, 0x5a, 64);
	OK(dat_ep_post_send(pair.ep[0], 1, &message, (DAT_DTO_COOKIE){ .as_64 = 2 },
			    DAT_COMPLETION_DEFAULT_FLAG));
	TRY(next_event(pair.dto[1], DAT_DTO_COMPLETION_EVENT, &event));
	SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	EXPECT(!memcmp(place, pair.memory, 64));
	return 0;
}

/* Registers memory that may be read, but not written. */
static int read_only(const void *start)
{
	OK(register_bytes(start, 16));
	REFUSED(register_writable(start, 16), DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	return 0;
}

static int region_addresses(void)
{
	static const u8 constant[16] = { 1 };
	u8 *pages = vmalloc(2 * PAGE_SIZE);
	DAT_RETURN beyond;

	EXPECT(pages);
	beyond = register_bytes(pages + PAGE_SIZE, PAGE_SIZE + 1);
	vfree(pages);
	REFUSED(beyond, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	REFUSED(register_bytes(pages, PAGE_SIZE), DAT_INVALID_ADDRESS,
		DAT_INVALID_ADDRESS_MALFORMED);
	TRY(read_only(page_address(ZERO_PAGE(0))));
	/* Text and read-only data of the kernel. */
	TRY(read_only(memcpy));
	TRY(read_only(hex_asc));
	/* The same of this module. */
	if (IS_ENABLED(CONFIG_STRICT_MODULE_RWX)) {
		TRY(read_only(region_addresses));
		TRY(read_only(constant));
	}
	return receive_to_static_data();
}

/*
 * The answer of an RDMA read into kernel memory uses the key of all memory. Over iWARP the
 * request would reveal that key to the peer, so it is refused. Otherwise the peer refuses
 * the read.
 */
static int rdma_read_hides_rkey(void)
{
	const DAT_RMR_TRIPLET remote = { .segment_length = 64 };
	struct pair pair = {};
	DAT_LMR_TRIPLET place;
	DAT_RETURN ret;
	DAT_EVENT event;

	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	place = pair_place(&pair, 0, 64);
	ret = dat_ep_post_rdma_read(pair.ep[0], 1, &place, (DAT_DTO_COOKIE){ .as_64 = 1 }, &remote,
				    DAT_COMPLETION_DEFAULT_FLAG);
	if (is_iwarp) {
		REFUSED(ret, DAT_PRIVILEGES_VIOLATION, 92);
		/* No request was sent, and the connection still works. */
		OK(dat_ep_post_recv(pair.ep[1], 1, &place, (DAT_DTO_COOKIE){ .as_64 = 2 },
				    DAT_COMPLETION_DEFAULT_FLAG));
		place = pair_place(&pair, 64, 64);
		OK(dat_ep_post_send(pair.ep[0], 1, &place, (DAT_DTO_COOKIE){ .as_64 = 3 },
				    DAT_COMPLETION_DEFAULT_FLAG));
		TRY(next_event(pair.dto[1], DAT_DTO_COMPLETION_EVENT, &event));
		SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		return 0;
	}
	OK(ret);
	TRY(next_event(pair.dto[0], DAT_DTO_COMPLETION_EVENT, &event));
	SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_REMOTE_ACCESS);
	return 0;
}

const struct ktest memory_tests[] = {
	{ "lmr_sync", lmr_sync },
	{ "region_too_long", region_too_long },
	{ "region_addresses", region_addresses },
	{ "rdma_read_hides_rkey", rdma_read_hides_rkey },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the limits of kernel memory, its refusals, and the adapter's hint. */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ktest.h"

#define ALL	(LOCAL_FLAGS | REMOTE_FLAGS)
#define VA	DAT_VA_TYPE_VA
#define ZB	DAT_VA_TYPE_ZB

/* Memory of vmalloc(), for each test. */
static u8 *memory;

/* Runs a test over memory, which is freed after the adapter is closed. */
static int with_memory(size_t size, int (*run)(void))
{
	int error;

	memory = vmalloc(size);
	EXPECT(memory);
	error = run();
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	vfree(memory);
	return error;
}

/* Without remote privileges, each page counts as a segment. */
#define MANY	(40 * PAGE_SIZE)

static int one_segment(void)
{
	DAT_LMR_TRIPLET from, to;
	DAT_RMR_TRIPLET remote;
	struct pair pair = {};
	struct lmr lmr;

	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	OK(lmr_make_virtual(memory, 2 * MANY, LOCAL_FLAGS, &lmr));
	from = (DAT_LMR_TRIPLET){ lmr.address + 5, MANY, lmr.local };
	REFUSED(dat_ep_post_send(pair.ep[0], 1, &from, cookie(1), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	if (is_iwarp)
		return 0;
	OK(lmr_make_virtual(memory, 2 * MANY, ALL, &lmr));
	from.lmr_context = lmr.local;
	to = (DAT_LMR_TRIPLET){ lmr.address + MANY, MANY, lmr.local };
	memset(memory, 0x5a, 2 * MANY);
	memset(memory + MANY + 5, 0x3c, MANY - 5);
	memset(memory + 5, 0x77, MANY);
	from.segment_length = to.segment_length = MANY - 5;
	OK(dat_ep_post_recv(pair.ep[1], 1, &to, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_post_send(pair.ep[0], 1, &from, cookie(3), DAT_COMPLETION_DEFAULT_FLAG));
	TRY(next_dto(pair.dto[0], DAT_DTO_SEND, 3, MANY - 5));
	TRY(next_dto(pair.dto[1], DAT_DTO_RECEIVE, 2, MANY - 5));
	EXPECT(!memchr_inv(memory + 5, 0x77, 2 * MANY - 10));
	EXPECT(!memchr_inv(memory + 2 * MANY - 5, 0x3c, 5));
	EXPECT(!memchr_inv(memory, 0x5a, 5));
	/* An RDMA read, too. */
	remote = (DAT_RMR_TRIPLET){ lmr.address + 5, MANY - 5, lmr.remote };
	memset(memory + 5, 0x99, MANY - 5);
	OK(dat_ep_post_rdma_read(pair.ep[0], 1, &to, cookie(4), &remote,
				 DAT_COMPLETION_DEFAULT_FLAG));
	TRY(next_dto(pair.dto[0], DAT_DTO_RDMA_READ, 4, MANY - 5));
	EXPECT(!memchr_inv(memory + MANY, 0x99, MANY - 5));
	EXPECT(!memchr_inv(memory + 2 * MANY - 5, 0x3c, 5));
	return 0;
}

static int region_one_segment(void)
{
	return with_memory(2 * MANY, one_segment);
}

/* The longest region that a peer may use. */
static int limit(void)
{
	const DAT_VLEN longest = ia_attr.max_rmr_size;
	DAT_RMR_TRIPLET remote;
	struct pair pair = {};
	struct lmr lmr;

	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	memset(memory, 0x11, longest + PAGE_SIZE);
	OK(lmr_make_virtual(memory, longest + 1, LOCAL_FLAGS, &lmr));
	if (is_iwarp)
		return 0;
	REFUSED(lmr_make_virtual(memory, longest + 1, ALL, &lmr), DAT_LENGTH_ERROR, 0);
	REFUSED(lmr_make_virtual(memory + 1, longest, ALL, &lmr), DAT_LENGTH_ERROR, 0);
	OK(lmr_make_virtual(memory + 1, longest - 1, ALL, &lmr));
	OK(dat_lmr_free(lmr.handle));
	OK(lmr_make_virtual(memory, longest, ALL, &lmr));
	remote = (DAT_RMR_TRIPLET){ lmr.address + longest - 64, 64, lmr.remote };
	memset(pair.memory, 0x22, 64);
	TRY(pair_rdma(&pair, DAT_DTO_RDMA_WRITE, &remote, 0, 64));
	EXPECT(!memchr_inv(memory + longest - 64, 0x22, 64));
	remote.virtual_address++;
	TRY(pair_rdma_refused(&pair, DAT_DTO_RDMA_WRITE, &remote, 64));
	EXPECT(!memchr_inv(memory + longest, 0x11, PAGE_SIZE));
	return 0;
}

static int region_limit(void)
{
	return with_memory(ia_attr.max_rmr_size + PAGE_SIZE, limit);
}

/* Zero-based memory of peers begins at a page boundary; that of this side anywhere. */
static int zero_based(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory + 64 };
	DAT_RMR_TRIPLET remote;
	struct pair pair = {};
	DAT_RMR_HANDLE rmr;
	DAT_LMR_TRIPLET part;
	struct lmr lmr;

	if (!is_iwarp)
		REFUSED(lmr_make(DAT_MEM_TYPE_VIRTUAL, region, 64, ALL, ZB, &lmr),
			DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	REFUSED(lmr_make(DAT_MEM_TYPE_VIRTUAL, region, 64, LOCAL_FLAGS, 2, &lmr),
		DAT_MODEL_NOT_SUPPORTED, 0);
	SAME(ia_attr.zb_supported, DAT_TRUE);
	OK(lmr_make(DAT_MEM_TYPE_VIRTUAL, region, 64, LOCAL_FLAGS, ZB, &lmr));
	SAME(lmr.address, 0);
	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	/* Nor can an RMR have other offsets in a page than the memory. */
	OK(dat_rmr_create(pz, &rmr));
	part = (DAT_LMR_TRIPLET){ 0, 64, lmr.local };
	REFUSED(dat_rmr_bind(rmr, lmr.handle, &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, VA, pair.ep[1],
			     cookie(1), DAT_COMPLETION_DEFAULT_FLAG, NULL),
		DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	part.virtual_address = 1;
	REFUSED(dat_ep_post_send(pair.ep[1], 1, &part, cookie(1), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_PROTECTION_VIOLATION, 93);
	if (is_iwarp)
		return 0;
	region.for_va = memory;
	OK(lmr_make(DAT_MEM_TYPE_VIRTUAL, region, 2 * PAGE_SIZE, ALL, ZB, &lmr));
	SAME(lmr.address, 0);
	remote = (DAT_RMR_TRIPLET){ PAGE_SIZE - 3, 10, lmr.remote };
	memset(memory, 0x11, 2 * PAGE_SIZE);
	memset(pair.memory, 0x22, 10);
	TRY(pair_rdma(&pair, DAT_DTO_RDMA_WRITE, &remote, 0, 10));
	EXPECT(!memchr_inv(memory + PAGE_SIZE - 3, 0x22, 10));
	EXPECT(!memchr_inv(memory, 0x11, PAGE_SIZE - 3));
	/* The kernel's address of the memory means nothing. */
	remote.virtual_address = (u64)memory;
	return pair_rdma_refused(&pair, DAT_DTO_RDMA_WRITE, &remote, 10);
}

static int region_zero_based(void)
{
	return with_memory(2 * PAGE_SIZE, zero_based);
}

#define MAKE(type, length)	lmr_make(type, region, length, LOCAL_FLAGS, VA, &lmr)

/* Lists that do not name as much memory as they should, or none. */
static int bad_lists(void)
{
	DAT_PADDR addresses[2] = { virt_to_phys(pair_memory),
				   virt_to_phys(pair_memory) + PAGE_SIZE };
	DAT_REGION_DESCRIPTION region = { .for_physical = addresses };
	struct bio_vec empty[2] = {};
	struct scatterlist list[2];
	struct lmr lmr;

	OK(MAKE(DAT_MEM_TYPE_PHYSICAL, 2 * PAGE_SIZE));
	addresses[1] += 64;
	REFUSED(MAKE(DAT_MEM_TYPE_PHYSICAL, 2 * PAGE_SIZE), DAT_INVALID_ADDRESS,
		DAT_INVALID_ADDRESS_MALFORMED);
	/* Only the pages that are needed are looked at. */
	OK(MAKE(DAT_MEM_TYPE_PHYSICAL, PAGE_SIZE));
	/* More than the machine has. */
	addresses[1] = ALIGN_DOWN((1ULL << 51) - 1, PAGE_SIZE);
	REFUSED(MAKE(DAT_MEM_TYPE_PHYSICAL, 2 * PAGE_SIZE), DAT_INVALID_ADDRESS,
		DAT_INVALID_ADDRESS_MALFORMED);
	addresses[0] = virt_to_phys(page_address(ZERO_PAGE(0)));
	REFUSED(MAKE(DAT_MEM_TYPE_PHYSICAL, PAGE_SIZE), DAT_INVALID_ADDRESS,
		DAT_INVALID_ADDRESS_MALFORMED);
	sg_init_table(list, 2);
	sg_set_buf(&list[0], pair_memory, 100);
	sg_set_buf(&list[1], pair_memory + 100, 200);
	region.for_platform = list;
	OK(MAKE(DAT_MEM_TYPE_PLATFORM, 300));
	REFUSED(MAKE(DAT_MEM_TYPE_PLATFORM, 301), DAT_LENGTH_ERROR, 0);
	bvec_set_virt(&empty[0], pair_memory, 100);
	region.for_platform = empty;
	OK(MAKE(KDAPL_MEM_TYPE_BVEC, 100));
	REFUSED(MAKE(KDAPL_MEM_TYPE_BVEC, 101), DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	return 0;
}

static int region_refusals(void)
{
	const DAT_MEM_TYPE lists[] = { DAT_MEM_TYPE_PHYSICAL, DAT_MEM_TYPE_PLATFORM,
		KDAPL_MEM_TYPE_BVEC };
	const DAT_MEM_TYPE unsupported[] = { 2, DAT_MEM_TYPE_IA, DAT_MEM_TYPE_BYPASS, 3,
		DAT_MEM_TYPE_PHYSICAL | DAT_MEM_TYPE_PLATFORM, 0x200, KDAPL_MEM_TYPE_BVEC << 1 };
	DAT_REGION_DESCRIPTION region = { .for_va = pair_memory };
	DAT_PROVIDER_ATTR provider;
	struct lmr lmr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(unsupported); i++)
		REFUSED(MAKE(unsupported[i], 64), DAT_MODEL_NOT_SUPPORTED, 0);
	OK(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider));
	SAME(provider.lmr_mem_types_supported, DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_PHYSICAL |
	     DAT_MEM_TYPE_PLATFORM | DAT_MEM_TYPE_PHYSICAL_VAR_PAGES | KDAPL_MEM_TYPE_BVEC);
	/* The read of a peer's memory into that of the kernel, which the target of NVMe needs. */
	SAME(provider.rdma_write_for_rdma_read_req, is_iwarp ? DAT_TRUE : DAT_FALSE);
	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		region.for_va = pair_memory;
		REFUSED(MAKE(lists[i], 0), DAT_LENGTH_ERROR, 0);
		REFUSED(MAKE(lists[i], 1ULL << 60), DAT_LENGTH_ERROR, 0);
		region.for_va = NULL;
		REFUSED(MAKE(lists[i], 64), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	}
	region.for_array = (DAT_PHYSICAL_VAR_PAGES){ PAGE_SIZE, NULL };
	REFUSED(MAKE(DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, 64), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(3));
	for (i = 0; i < 3; i++) {
		region.for_array = (DAT_PHYSICAL_VAR_PAGES){ (size_t []){ 0, 512,
									  3 * PAGE_SIZE }[i],
			pair_memory };
		REFUSED(MAKE(DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, 64), DAT_INVALID_PARAMETER,
			DAT_INVALID_ARG(3));
	}
	region.for_lmr_handle = pz;
	REFUSED(MAKE(DAT_MEM_TYPE_LMR, 64), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	return bad_lists();
}

static DAT_RETURN hint(DAT_MEM_TYPE type, DAT_VLEN length, DAT_VLEN *preferred,
		       DAT_VADDR *alignment)
{
	return dat_ia_memtype_hint(ia, type, length, DAT_MEM_OPTIMIZE_DONT_CARE, preferred,
				   alignment);
}

static int region_hint(void)
{
	const DAT_VLEN longest = ia_attr.max_rmr_size;
	DAT_VADDR alignment;
	DAT_VLEN length;

	OK(hint(DAT_MEM_TYPE_VIRTUAL, 1, &length, &alignment));
	SAME(length, PAGE_SIZE);
	SAME(alignment, PAGE_SIZE);
	OK(hint(DAT_MEM_TYPE_PLATFORM, PAGE_SIZE + 1, &length, NULL));
	SAME(length, 2 * PAGE_SIZE);
	OK(hint(DAT_MEM_TYPE_LMR, longest, &length, NULL));
	SAME(length, longest);
	OK(hint(KDAPL_MEM_TYPE_BVEC, longest + 1, &length, NULL));
	SAME(length, longest);
	OK(hint(DAT_MEM_TYPE_PHYSICAL, 1ULL << 40, NULL, &alignment));
	SAME(alignment, PAGE_SIZE);
	REFUSED(hint(DAT_MEM_TYPE_VIRTUAL, 0, &length, &alignment), DAT_LENGTH_ERROR, 0);
	REFUSED(hint(DAT_MEM_TYPE_VIRTUAL, U64_MAX, &length, &alignment), DAT_LENGTH_ERROR, 0);
	REFUSED(hint(DAT_MEM_TYPE_IA, 1, &length, &alignment), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(hint(DAT_MEM_TYPE_BYPASS, 1, &length, &alignment), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(hint(3, 1, &length, &alignment), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(dat_ia_memtype_hint(pz, DAT_MEM_TYPE_VIRTUAL, 1, 0, &length, &alignment),
		DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return 0;
}

const struct ktest region_limit_tests[] = {
	{ "region_one_segment", region_one_segment },
	{ "region_limit", region_limit },
	{ "region_zero_based", region_zero_based },
	{ "region_refusals", region_refusals },
	{ "region_hint", region_hint },
	{}
};

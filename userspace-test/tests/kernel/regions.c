// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the types of kernel memory: their data, their limits and their refusals. */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ktest.h"

#define ALL	(LOCAL_FLAGS | REMOTE_FLAGS)
#define DEFAULT	DAT_COMPLETION_DEFAULT_FLAG
#define VA	DAT_VA_TYPE_VA
#define ZB	DAT_VA_TYPE_ZB

/* Pages that lie anywhere: more than a work request has segments. */
#define PAGES	40
static u8 *page[PAGES];

/* Parts of which the memory under test consists. */
struct part {
	u8 *start;
	size_t size;
};
static struct part parts[PAGES];
static unsigned int count;

static void add_part(u8 *start, size_t size)
{
	parts[count++] = (struct part){ start, size };
}

static size_t whole(void)
{
	size_t size = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		size += parts[i].size;
	return size;
}

/* The byte at an offset of the memory, in one of several rounds. */
static u8 byte_at(size_t offset, u8 round)
{
	return offset * 31 + (offset >> 8) * 7 + round;
}

static void fill_parts(u8 round)
{
	size_t offset = 0, k;
	unsigned int i;

	for (i = 0; i < count; i++)
		for (k = 0; k < parts[i].size; k++)
			parts[i].start[k] = byte_at(offset++, round);
}

static int check_parts(size_t length, u8 round)
{
	size_t offset = 0, k;
	unsigned int i;

	for (i = 0; i < count; i++)
		for (k = 0; k < parts[i].size && offset < length; k++, offset++)
			SAME(parts[i].start[k], byte_at(offset, round));
	return 0;
}

static void fill(u8 *bytes, size_t offset, size_t length, u8 round)
{
	size_t k;

	for (k = 0; k < length; k++)
		bytes[k] = byte_at(offset + k, round);
}

static int check(const u8 *bytes, size_t offset, size_t length, u8 round)
{
	size_t k;

	for (k = 0; k < length; k++)
		SAME(bytes[k], byte_at(offset + k, round));
	return 0;
}

/* Sends a message from side 0 to side 1, or the other way. */
static int message(const struct pair *pair, unsigned int from_side, DAT_LMR_TRIPLET from,
		   DAT_LMR_TRIPLET to)
{
	OK(dat_ep_post_recv(pair->ep[!from_side], 1, &to, cookie(1), DEFAULT));
	OK(dat_ep_post_send(pair->ep[from_side], 1, &from, cookie(2), DEFAULT));
	TRY(next_dto(pair->dto[from_side], DAT_DTO_SEND, 2, from.segment_length));
	return next_dto(pair->dto[!from_side], DAT_DTO_RECEIVE, 1, from.segment_length);
}

/* Messages of up to this length have no more parts than an EP allows. */
#define PIECE	2000

/* Receives to all of the memory, and sends all of it. */
static int use_locally(const struct pair *pair, const struct lmr *lmr)
{
	size_t offset, length;

	for (offset = 0; offset < lmr->size; offset += length) {
		DAT_LMR_TRIPLET there;

		length = min_t(size_t, PIECE, lmr->size - offset);
		there = (DAT_LMR_TRIPLET){ lmr->address + offset, length, lmr->local };
		fill(pair->memory, offset, length, 1);
		TRY(message(pair, 0, pair_place(pair, 0, length), there));
	}
	TRY(check_parts(lmr->size, 1));
	fill_parts(2);
	for (offset = 0; offset < lmr->size; offset += length) {
		DAT_LMR_TRIPLET there;

		length = min_t(size_t, PIECE, lmr->size - offset);
		there = (DAT_LMR_TRIPLET){ lmr->address + offset, length, lmr->local };
		TRY(message(pair, 1, there, pair_place(pair, 0, length)));
		TRY(check(pair->memory, offset, length, 2));
	}
	return 0;
}

/* The peer writes to all of the memory, and reads all of it. */
static int use_remotely(const struct pair *pair, const struct lmr *lmr)
{
	size_t offset, length;

	for (offset = 0; offset < lmr->size; offset += length) {
		DAT_RMR_TRIPLET remote;

		length = min_t(size_t, PAIR_MEMORY / 2 - 10, lmr->size - offset);
		remote = (DAT_RMR_TRIPLET){ lmr->address + offset, length, lmr->remote };
		fill(pair->memory, offset, length, 3);
		TRY(pair_rdma(pair, DAT_DTO_RDMA_WRITE, &remote, 0, length));
		TRY(pair_rdma(pair, DAT_DTO_RDMA_READ, &remote, PAIR_MEMORY / 2, length));
		TRY(check(pair->memory + PAIR_MEMORY / 2, offset, length, 3));
	}
	return check_parts(lmr->size, 3);
}

/* Uses memory of one description through LMRs of each kind. */
static int use(const struct pair *pair, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
	       size_t length, u64 address)
{
	DAT_LMR_PARAM param;
	DAT_VA_TYPE va_type;
	struct lmr lmr;

	for (va_type = VA; va_type <= ZB; va_type++) {
		OK(lmr_make(type, region, length, LOCAL_FLAGS, va_type, &lmr));
		SAME(lmr.remote, 0);
		SAME(lmr.size, length);
		SAME(lmr.address, va_type == ZB ? 0 : address);
		TRY(use_locally(pair, &lmr));
		OK(dat_lmr_query(lmr.handle, 0, &param));
		SAME(param.mem_type, type);
		SAME(param.va_type, va_type);
		SAME(param.region_desc.for_ia, region.for_ia);
		OK(dat_lmr_free(lmr.handle));
		if (is_iwarp || (va_type == ZB && offset_in_page(address)))
			continue;
		OK(lmr_make(type, region, length, ALL, va_type, &lmr));
		SAME(lmr.address, va_type == ZB ? 0 : address);
		TRY(use_locally(pair, &lmr));
		TRY(use_remotely(pair, &lmr));
		OK(dat_lmr_free(lmr.handle));
	}
	return 0;
}

/* Runs a test over PAGES loose pages and a connected pair. */
static int with_pages(int (*run)(const struct pair *pair))
{
	struct pair pair = {};
	int error = 0;
	unsigned int i;

	count = 0;
	for (i = 0; i < PAGES; i++) {
		page[i] = (u8 *)get_zeroed_page(GFP_KERNEL);
		if (!page[i])
			error = FAIL("no memory");
	}
	error = error ?: pair_make(&pair) ?: pair_connect(&pair) ?: run(&pair);
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	for (i = 0; i < PAGES; i++)
		free_page((unsigned long)page[i]);
	return error;
}

static int physical(const struct pair *pair)
{
	DAT_PADDR list[PAGES];
	unsigned int i;

	for (i = 0; i < PAGES; i++) {
		list[i] = virt_to_phys(page[i]);
		add_part(page[i], PAGE_SIZE);
	}
	/* The last page is not used up. */
	return use(pair, DAT_MEM_TYPE_PHYSICAL, (DAT_REGION_DESCRIPTION){ .for_physical = list },
		   whole() - 100, (u64)page[0]);
}

static int region_physical(void)
{
	return with_pages(physical);
}

/* Pages of four pages each. */
static int large_pages(const struct pair *pair)
{
	const size_t size = 4 * PAGE_SIZE;
	u8 *large = alloc_pages_exact(2 * size, GFP_KERNEL);
	DAT_PADDR list[2];
	DAT_REGION_DESCRIPTION region = { .for_array = { size, list } };
	int error;

	EXPECT(large);
	EXPECT(IS_ALIGNED(virt_to_phys(large), size));
	list[0] = virt_to_phys(large + size);
	list[1] = virt_to_phys(large);
	add_part(large + size, size);
	add_part(large, size);
	error = use(pair, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, whole(), (u64)large + size);
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	free_pages_exact(large, 2 * size);
	return error;
}

static int region_physical_var_pages(void)
{
	return with_pages(large_pages);
}

/* A chain of two scatterlists. The first entry begins within a page, the last one ends in one. */
static int scatterlist(const struct pair *pair)
{
	struct scatterlist first[20], second[PAGES - 19];
	unsigned int i;

	sg_init_table(first, ARRAY_SIZE(first));
	sg_init_table(second, ARRAY_SIZE(second));
	for (i = 0; i < PAGES; i++) {
		size_t from = i ? 0 : 300, to = i == PAGES - 1 ? 1000 : PAGE_SIZE;

		/* The last entry of the first list is the link. */
		sg_set_buf(i < 19 ? &first[i] : &second[i - 19], page[i] + from, to - from);
		add_part(page[i] + from, to - from);
	}
	sg_chain(first, ARRAY_SIZE(first), second);
	return use(pair, DAT_MEM_TYPE_PLATFORM, (DAT_REGION_DESCRIPTION){ .for_platform = first },
		   whole() - 10, (u64)page[0] + 300);
}

static int region_scatterlist(void)
{
	return with_pages(scatterlist);
}

static int bvecs(const struct pair *pair)
{
	struct bio_vec list[PAGES];
	unsigned int i;

	for (i = 0; i < PAGES; i++) {
		u8 *start = page[PAGES - 1 - i] + (i ? 0 : 1096);

		bvec_set_virt(&list[i], start, PAGE_SIZE - offset_in_page(start));
		add_part(start, PAGE_SIZE - offset_in_page(start));
	}
	return use(pair, KDAPL_MEM_TYPE_BVEC, (DAT_REGION_DESCRIPTION){ .for_platform = list },
		   whole(), (u64)page[PAGES - 1] + 1096);
}

static int region_bvecs(void)
{
	return with_pages(bvecs);
}

/* Parts that do not meet at page boundaries cannot be registered. */
static int gaps(const struct pair *pair)
{
	DAT_REGION_DESCRIPTION region;
	struct bio_vec list[8];
	struct lmr lmr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(list); i++) {
		bvec_set_virt(&list[i], page[i] + 100 * i, 700 + i);
		add_part(page[i] + 100 * i, 700 + i);
	}
	region = (DAT_REGION_DESCRIPTION){ .for_platform = list };
	OK(lmr_make(KDAPL_MEM_TYPE_BVEC, region, whole() - 5, LOCAL_FLAGS, VA, &lmr));
	TRY(use_locally(pair, &lmr));
	OK(dat_lmr_free(lmr.handle));
	if (!is_iwarp)
		REFUSED(lmr_make(KDAPL_MEM_TYPE_BVEC, region, whole(), ALL, VA, &lmr),
			DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	return 0;
}

static int region_gaps(void)
{
	return with_pages(gaps);
}

/* LMRs of an LMR, with fewer and more privileges, in another PZ, and after the first was freed. */
static int of_lmr(const struct pair *pair)
{
	const DAT_REGION_DESCRIPTION memory = { .for_va = page[0] };
	DAT_REGION_DESCRIPTION region;
	struct lmr first, second, third;
	DAT_PZ_HANDLE own = pz, other;

	add_part(page[0], PAGE_SIZE);
	OK(dat_pz_create(ia, &other));
	pz = other;
	OK(lmr_make(DAT_MEM_TYPE_VIRTUAL, memory, PAGE_SIZE, DAT_MEM_PRIV_LOCAL_READ_FLAG, VA,
		    &first));
	pz = own;
	region.for_lmr_handle = first.handle;
	REFUSED(lmr_make(DAT_MEM_TYPE_LMR, region, PAGE_SIZE + 1, ALL, VA, &second),
		DAT_LENGTH_ERROR, 0);
	TRY(use(pair, DAT_MEM_TYPE_LMR, region, PAGE_SIZE - 8, (u64)page[0]));
	OK(lmr_make(DAT_MEM_TYPE_LMR, region, PAGE_SIZE, LOCAL_FLAGS, ZB, &second));
	OK(dat_lmr_free(first.handle));
	REFUSED(lmr_make(DAT_MEM_TYPE_LMR, region, 8, LOCAL_FLAGS, VA, &third),
		DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	OK(dat_pz_free(other));
	region.for_lmr_handle = second.handle;
	OK(lmr_make(DAT_MEM_TYPE_LMR, region, 64, LOCAL_FLAGS, VA, &third));
	OK(dat_lmr_free(second.handle));
	TRY(use_locally(pair, &third));
	/* Memory that must not be written is not writable through an LMR of it either. */
	OK(lmr_make_virtual(page_address(ZERO_PAGE(0)), 64, DAT_MEM_PRIV_LOCAL_READ_FLAG, &first));
	region.for_lmr_handle = first.handle;
	REFUSED(lmr_make(DAT_MEM_TYPE_LMR, region, 64, LOCAL_FLAGS, VA, &second),
		DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	return 0;
}

static int region_of_lmr(void)
{
	return with_pages(of_lmr);
}

const struct ktest region_tests[] = {
	{ "region_physical", region_physical },
	{ "region_physical_var_pages", region_physical_var_pages },
	{ "region_scatterlist", region_scatterlist },
	{ "region_bvecs", region_bvecs },
	{ "region_gaps", region_gaps },
	{ "region_of_lmr", region_of_lmr },
	{}
};

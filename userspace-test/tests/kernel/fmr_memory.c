// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests registrations of each type of memory. */
#include <linux/bvec.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "fmr.h"

static int access_vmalloc(struct scene *scene)
{
	u8 *own = scene->pages, *pages = vmalloc(SIZE);
	int error;

	EXPECT(pages);
	memset(pages, 0, SIZE);
	scene->pages = pages;
	error = fmr_registered(scene) ?:
		fmr_peer_access(scene, (u64)pages, pages) ?:
		fmr_invalidated(scene);
	scene->pages = own;
	vfree(pages);
	return error;
}

static int fmr_of_vmalloc(void)
{
	return fmr_with_pages(access_vmalloc);
}

/* Registers memory of another type, and takes the completion. */
static int register_as(struct scene *scene, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
		       u32 count, DAT_VA_TYPE va_type)
{
	OK(dat_lmr_fmr(scene->lmr, type, region, count, ALL, va_type, scene->pair.ep[1], cookie(1),
		       DEFAULT, &scene->local, &scene->remote));
	return next_dto(scene->pair.dto[1], DAT_DTO_LMR_FMR, 1, 0);
}

/* Side 0 writes 64 bytes. */
static int peer_write(struct scene *scene, u64 address)
{
	memset(scene->pages, 0, SIZE);
	memset(scene->pair.memory, 0x5a, 64);
	OK(fmr_write_to(scene, address, scene->remote));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_RDMA_WRITE, 3, 64));
	return fmr_send_message(scene);
}

/* Bytes that were written, and no others, from an offset in the pages on. */
static int written(const struct scene *scene, size_t offset, size_t length)
{
	const u8 *start = scene->pages + offset;

	EXPECT(!memchr_inv(start, 0x5a, length));
	SAME(start[-1], 0);
	SAME(start[length], 0);
	return 0;
}

/* Registers the pages in another order. */
static int access_physical(struct scene *scene)
{
	static const unsigned int order[PAGES] = { 2, 0, 3, 1 };
	DAT_REGION_DESCRIPTION region;
	DAT_PADDR addresses[PAGES];
	DAT_LMR_TRIPLET from;
	unsigned int i;
	u64 start;

	for (i = 0; i < PAGES; i++)
		addresses[i] = virt_to_phys(scene->pages + order[i] * PAGE_SIZE);
	start = (u64)scene->pages + order[0] * PAGE_SIZE;
	region.for_physical = addresses;
	TRY(register_as(scene, DAT_MEM_TYPE_PHYSICAL, region, PAGES, DAT_VA_TYPE_VA));
	/* Across the end of the second page of the region, which is the first in memory. */
	TRY(peer_write(scene, start + 2 * PAGE_SIZE - 32));
	TRY(written(scene, PAGE_SIZE - 32, 32));
	TRY(written(scene, 3 * PAGE_SIZE, 32));
	from = (DAT_LMR_TRIPLET){ start, SIZE, scene->local };
	TRY(fmr_invalidated(scene));
	REFUSED(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), DEFAULT),
		DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
	/* Zero-based. */
	TRY(register_as(scene, DAT_MEM_TYPE_PHYSICAL, region, PAGES, DAT_VA_TYPE_ZB));
	TRY(peer_write(scene, PAGE_SIZE + 8));
	TRY(written(scene, 8, 64));
	return fmr_write_refused(scene, start, scene->remote);
}

static int fmr_of_physical_pages(void)
{
	return fmr_with_pages(access_physical);
}

/* Registers 100 bytes at the end of the third page, the first page, and 50 bytes of the second. */
static int access_list(struct scene *scene, DAT_MEM_TYPE type, void *list, u32 entries)
{
	const DAT_REGION_DESCRIPTION region = { .for_platform = list };
	const u64 start = (u64)scene->pages + 3 * PAGE_SIZE - 100;
	DAT_LMR_PARAM param;

	TRY(register_as(scene, type, region, entries, DAT_VA_TYPE_VA));
	OK(dat_lmr_query(scene->lmr, 0, &param));
	SAME(param.length, 150 + PAGE_SIZE);
	/* Across the end of the first entry, and up to the last byte. */
	TRY(peer_write(scene, start + 80));
	TRY(written(scene, 3 * PAGE_SIZE - 20, 20));
	EXPECT(!memchr_inv(scene->pages, 0x5a, 44));
	SAME(scene->pages[44], 0);
	TRY(peer_write(scene, start + 150 + PAGE_SIZE - 64));
	TRY(written(scene, PAGE_SIZE - 14, 64));
	TRY(fmr_invalidated(scene));
	/* Memory that does not begin at a page boundary is not zero-based. */
	REFUSED(dat_lmr_fmr(scene->lmr, type, region, entries, ALL, DAT_VA_TYPE_ZB,
			    scene->pair.ep[1], cookie(1), DEFAULT, NULL, NULL),
		DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	/* Without the first page there is a gap. */
	REFUSED(dat_lmr_fmr(scene->lmr, type, region, entries - 1, ALL, DAT_VA_TYPE_ZB,
			    scene->pair.ep[1], cookie(1), DEFAULT, NULL, NULL),
		DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	TRY(register_as(scene, type, region, entries, DAT_VA_TYPE_VA));
	/* One byte beyond the last. */
	return fmr_write_refused(scene, start + 150 + PAGE_SIZE - 63, scene->remote);
}

static int access_scatterlist(struct scene *scene)
{
	struct scatterlist list[3];

	sg_init_table(list, ARRAY_SIZE(list));
	sg_set_buf(&list[0], scene->pages + 3 * PAGE_SIZE - 100, 100);
	sg_set_buf(&list[1], scene->pages, PAGE_SIZE);
	sg_set_buf(&list[2], scene->pages + PAGE_SIZE, 50);
	return access_list(scene, DAT_MEM_TYPE_PLATFORM, list, ARRAY_SIZE(list));
}

static int fmr_of_scatterlist(void)
{
	return fmr_with_pages(access_scatterlist);
}

static int access_bvecs(struct scene *scene)
{
	/* An offset may exceed its page, and one element has what two of the scatterlist have. */
	struct bio_vec list[2];

	bvec_set_page(&list[0], virt_to_page(scene->pages), 100, 3 * PAGE_SIZE - 100);
	bvec_set_page(&list[1], virt_to_page(scene->pages), PAGE_SIZE + 50, 0);
	return access_list(scene, KDAPL_MEM_TYPE_BVEC, list, ARRAY_SIZE(list));
}

static int fmr_of_bvecs(void)
{
	return fmr_with_pages(access_bvecs);
}

/* Lists that are refused. */
static int refuse_lists(struct scene *scene)
{
	DAT_REGION_DESCRIPTION region;
	struct scatterlist list[2];

#define REFUSED_LIST(count, type, subtype)						\
	REFUSED(dat_lmr_fmr(scene->lmr, DAT_MEM_TYPE_PLATFORM, region, count, ALL, DAT_VA_TYPE_VA, \
			    scene->pair.ep[1], cookie(1), DEFAULT, NULL, NULL), type, subtype)
	region.for_platform = list;
	sg_init_table(list, ARRAY_SIZE(list));
	sg_set_buf(&list[0], scene->pages, 100);
	sg_set_buf(&list[1], scene->pages + PAGE_SIZE, PAGE_SIZE);
	REFUSED_LIST(2, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	sg_set_buf(&list[0], scene->pages, PAGE_SIZE);
	sg_set_buf(&list[1], scene->pages + PAGE_SIZE + 1, 10);
	REFUSED_LIST(2, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	sg_set_buf(&list[1], scene->pages + PAGE_SIZE, 0);
	REFUSED_LIST(2, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	/* The list ends before. */
	sg_set_buf(&list[1], scene->pages + PAGE_SIZE, PAGE_SIZE);
	REFUSED_LIST(3, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	REFUSED_LIST(PAGES + 1, DAT_LENGTH_ERROR, 0);
	/* Five pages in two entries. */
	sg_set_buf(&list[1], scene->pages, SIZE);
	REFUSED_LIST(2, DAT_LENGTH_ERROR, 0);
	sg_set_page(&list[1], ZERO_PAGE(0), PAGE_SIZE, 0);
	REFUSED_LIST(2, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	region.for_platform = NULL;
	REFUSED_LIST(2, DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
#undef REFUSED_LIST
	return fmr_registered(scene);
}

static int fmr_lists(void)
{
	return fmr_with_pages(refuse_lists);
}

const struct ktest fmr_memory_tests[] = {
	{ "fmr_of_vmalloc", fmr_of_vmalloc },
	{ "fmr_of_physical_pages", fmr_of_physical_pages },
	{ "fmr_of_scatterlist", fmr_of_scatterlist },
	{ "fmr_of_bvecs", fmr_of_bvecs },
	{ "fmr_lists", fmr_lists },
	{}
};

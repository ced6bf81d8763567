// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Memory of the protection matrix: each description of kernel memory, in an area of 8 pages. */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "protection.h"

/* No list has its parts in the order in which they lie, and there are other bytes at each end. */
const struct source protection_sources[] = {
	{ "virtual", DAT_MEM_TYPE_VIRTUAL, { { PAGE_SIZE + 150, 2 * PAGE_SIZE - 250 } } },
	{ "pages", DAT_MEM_TYPE_PHYSICAL,
	  { { 2 * PAGE_SIZE, PAGE_SIZE }, { PAGE_SIZE, PAGE_SIZE - 100 } } },
	{ "scatterlist", DAT_MEM_TYPE_PLATFORM,
	  { { 3 * PAGE_SIZE - 200, 200 }, { PAGE_SIZE, 1000 } } },
	{ "bio_vecs", KDAPL_MEM_TYPE_BVEC,
	  { { 3 * PAGE_SIZE - 200, 200 }, { PAGE_SIZE, 1000 } } },
	/* dat_lmr_fmr() has no such type, so it is the last one. */
	{ "large pages", DAT_MEM_TYPE_PHYSICAL_VAR_PAGES,
	  { { 4 * PAGE_SIZE, 2 * PAGE_SIZE }, { 2 * PAGE_SIZE, 2 * PAGE_SIZE - 100 } } },
	{}
};

static void describe_list(struct stage *stage)
{
	unsigned int i;

	sg_init_table(stage->list, 2);
	for (i = 0; i < 2; i++)
		sg_set_buf(&stage->list[i], stage->area + stage->part[i].from, stage->part[i].size);
	stage->region.for_platform = stage->list;
}

static void describe_bvecs(struct stage *stage)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		bvec_set_virt(&stage->bvecs[i], stage->area + stage->part[i].from,
			      stage->part[i].size);
	stage->region.for_platform = stage->bvecs;
}

static void describe_pages(struct stage *stage)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		stage->addresses[i] = virt_to_phys(stage->area + stage->part[i].from);
	if (stage->source->type == DAT_MEM_TYPE_PHYSICAL)
		stage->region.for_physical = stage->addresses;
	else
		stage->region.for_array = (DAT_PHYSICAL_VAR_PAGES){ 2 * PAGE_SIZE,
								    stage->addresses };
}

void protection_describe(struct stage *stage, const struct source *source, bool aligned,
			 bool whole)
{
	struct part *first = &stage->part[0];
	struct part *last = &stage->part[source->part[1].size ? 1 : 0];

	stage->source = source;
	memcpy(stage->part, source->part, sizeof(stage->part));
	if (aligned) {
		first->size += offset_in_page(first->from);
		first->from = PAGE_ALIGN_DOWN(first->from);
	}
	if (whole)
		last->size = PAGE_ALIGN(last->size);
	stage->length = stage->part[0].size + stage->part[1].size;
	stage->count = 2;
	if (source->type == DAT_MEM_TYPE_VIRTUAL)
		stage->region.for_va = stage->area + first->from;
	else if (source->type == DAT_MEM_TYPE_PLATFORM)
		describe_list(stage);
	else if (source->type == KDAPL_MEM_TYPE_BVEC)
		describe_bvecs(stage);
	else
		describe_pages(stage);
}

void protection_copy(const struct stage *stage, u8 *base, size_t offset, u8 *bytes, size_t length,
		     bool to_memory)
{
	size_t k;

	for (k = 0; k < length; k++, offset++) {
		const struct part *part = &stage->part[offset >= stage->part[0].size];
		size_t into = offset - (part == stage->part ? 0 : stage->part[0].size);
		u8 *byte = base + part->from + into;

		if (to_memory)
			*byte = bytes[k];
		else
			bytes[k] = *byte;
	}
}

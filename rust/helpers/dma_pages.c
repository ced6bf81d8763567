// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Lists of pages of the kernel, and their DMA mappings. */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"

/* Returns the page at an address of the kernel that the kernel itself may access, or NULL. */
static struct page *usable_page(const void *start, bool write)
{
	u32 needed = write ? KDAPL_ACCESS_WRITE : KDAPL_ACCESS_READ;
	struct page *page = kdapl_helper_page_at(start);

	return page && access_to(page, start) >= needed ? page : NULL;
}

/* Returns the page that begins at a physical address, or NULL. */
static struct page *physical_page(u64 address, bool write)
{
	if (offset_in_page(address) || !pfn_valid(PHYS_PFN(address)))
		return NULL;
	return usable_page(phys_to_virt(address), write);
}

/* Returns whether the kernel may access a part of @page, and of the pages that follow it. */
static bool is_usable(struct page *page, u64 offset, u64 length, bool write)
{
	u64 pfn = page_to_pfn(page), end = pfn + DIV_ROUND_UP(offset + length, PAGE_SIZE);

	for (; pfn < end; pfn++)
		if (!pfn_valid(pfn) || !usable_page(page_address(pfn_to_page(pfn)), write))
			return false;
	return true;
}

/* A list that is being filled. */
struct filling {
	struct scatterlist *list;
	u32 index, count;
	/* Pages that are left for the list. */
	u64 room;
	bool write;
};

/* Adds a part of @page, and of the pages that follow it, as the next entry. */
static int add_part(struct filling *filling, struct page *page, u64 offset, u32 length)
{
	u64 pages = DIV_ROUND_UP(offset_in_page(offset) + (u64)length, PAGE_SIZE);
	bool is_first = filling->index == 0, is_last = filling->index + 1 == filling->count;

	if (!length)
		return -EFAULT;
	page = pfn_to_page(page_to_pfn(page) + (offset >> PAGE_SHIFT));
	offset = offset_in_page(offset);
	if ((offset && !is_first) || (offset_in_page(offset + length) && !is_last))
		return -ERANGE;
	if (pages > filling->room)
		return -E2BIG;
	if (!is_usable(page, offset, length, filling->write))
		return -EFAULT;
	filling->room -= pages;
	sg_set_page(&filling->list[filling->index++], page, length, offset);
	return 0;
}

static int add_virtual(struct filling *filling, u64 start)
{
	u32 i;

	if (offset_in_page(start) || start + (u64)filling->count * PAGE_SIZE - 1 < start)
		return -EFAULT;
	for (i = 0; i < filling->count; i++) {
		const void *address = (const void *)(uintptr_t)(start + (u64)i * PAGE_SIZE);
		struct page *page = usable_page(address, filling->write);

		if (!page)
			return -EFAULT;
		sg_set_page(&filling->list[i], page, PAGE_SIZE, 0);
	}
	return 0;
}

static int add_physical(struct filling *filling, const u64 *addresses)
{
	u32 i;

	for (i = 0; i < filling->count; i++) {
		struct page *page = physical_page(addresses[i], filling->write);

		if (!page)
			return -EFAULT;
		sg_set_page(&filling->list[i], page, PAGE_SIZE, 0);
	}
	return 0;
}

static int add_scatterlist(struct filling *filling, struct scatterlist *sg)
{
	int ret;

	while (filling->index < filling->count) {
		/* The list is shorter than the consumer says. */
		if (!sg)
			return -EFAULT;
		ret = add_part(filling, sg_page(sg), sg->offset, sg->length);
		if (ret)
			return ret;
		sg = sg_next(sg);
	}
	return 0;
}

static int add_bvecs(struct filling *filling, const struct bio_vec *bvec)
{
	int ret = 0;

	for (; !ret && filling->index < filling->count; bvec++)
		ret = add_part(filling, bvec->bv_page, bvec->bv_offset, bvec->bv_len);
	return ret;
}

/*
 * Fills a list that has room for @capacity pages with @count entries of @source, which is of the
 * kind KDAPL_PAGES_*. Returns the address of the first byte in @first, for KDAPL_PAGES_VIRTUAL that
 * of the consumer, and the number of bytes in @bytes. Does not sleep.
 *
 * Errors: -EFAULT for an entry that is no memory of the kernel, not writable if @write is set, or
 * empty; -ERANGE if two entries do not meet at a page boundary; -E2BIG for too many pages.
 */
int kdapl_helper_sg_fill(struct scatterlist *list, u32 capacity, u32 kind, u64 source, u32 count,
			 bool write, u64 *first, u64 *bytes)
{
	struct filling filling = { .list = list, .count = count, .room = capacity, .write = write };
	const void *pointer = (const void *)(uintptr_t)source;
	struct scatterlist *sg;
	int i, ret;

	if (!count || count > capacity)
		return -E2BIG;
	sg_init_table(list, count);
	switch (kind) {
	case KDAPL_PAGES_VIRTUAL:
		ret = add_virtual(&filling, source);
		break;
	case KDAPL_PAGES_PHYSICAL:
		ret = add_physical(&filling, pointer);
		break;
	case KDAPL_PAGES_SCATTERLIST:
		ret = add_scatterlist(&filling, (struct scatterlist *)pointer);
		break;
	case KDAPL_PAGES_BVECS:
		ret = add_bvecs(&filling, pointer);
		break;
	default:
		ret = -EINVAL;
	}
	if (ret)
		return ret;
	*first = kind == KDAPL_PAGES_VIRTUAL ? source : (uintptr_t)sg_virt(list);
	*bytes = 0;
	for_each_sg(list, sg, count, i)
		*bytes += sg->length;
	return 0;
}

/*
 * Maps the list for the device, until it is unmapped with the same @write. Returns the number of
 * its DMA segments, or 0. Does not sleep.
 */
u32 kdapl_helper_sg_map(struct ib_device *dev, struct scatterlist *list, u32 count, bool write)
{
	int mapped = ib_dma_map_sg(dev, list, count, write ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE);

	return max(mapped, 0);
}

/*
 * Returns whether the kernel and the device access the memory of @segments DMA segments in turn
 * without further calls. Does not sleep.
 */
bool kdapl_helper_sg_is_shared(struct ib_device *dev, struct scatterlist *list, u32 segments)
{
	struct scatterlist *sg;
	int i;

	if (ib_uses_virt_dma(dev))
		return true;
	for_each_sg(list, sg, segments, i)
		if (!is_shared(dev->dma_device, sg_dma_address(sg)))
			return false;
	return true;
}

void kdapl_helper_sg_unmap(struct ib_device *dev, struct scatterlist *list, u32 count, bool write)
{
	ib_dma_unmap_sg(dev, list, count, write ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE);
}

void kdapl_helper_update_fast_reg_key(struct ib_mr *mr, u32 key)
{
	ib_update_fast_reg_key(mr, key);
}

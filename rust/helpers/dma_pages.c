// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Lists of pages of the kernel, and their DMA mappings. */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"

struct scatterlist *kdapl_helper_sg_alloc(u32 count)
{
	return kvmalloc_array(count, sizeof(struct scatterlist), GFP_KERNEL_ACCOUNT);
}

void kdapl_helper_sg_free(struct scatterlist *list)
{
	kvfree(list);
}

/* Returns the page at an address of the kernel that the kernel itself may access, or NULL. */
static struct page *usable_page(const void *start, bool write)
{
	u32 kind = kind_of_ends(start, start);
	struct page *page;

	if (kind == KDAPL_MEMORY_NONE || offset_in_page(start))
		return NULL;
	page = page_at(start, kind);
	if (!page || !may_access(start, write) || (write && is_zero_pfn(page_to_pfn(page))))
		return NULL;
	return page;
}

/*
 * Fills the list with @count pages from @start on, which is a page boundary. Does not sleep.
 *
 * Errors: -EFAULT for an address that is neither in the linear mapping nor in the vmalloc area, or
 * not mapped, or not writable if @write is set.
 */
int kdapl_helper_sg_of_virtual(struct scatterlist *list, u64 start, u32 count, bool write)
{
	u32 i;

	if (start + (u64)count * PAGE_SIZE - 1 < start)
		return -EFAULT;
	sg_init_table(list, count);
	for (i = 0; i < count; i++) {
		const void *address = (const void *)(uintptr_t)(start + (u64)i * PAGE_SIZE);
		struct page *page = usable_page(address, write);

		if (!page)
			return -EFAULT;
		sg_set_page(&list[i], page, PAGE_SIZE, 0);
	}
	return 0;
}

/* As above, for pages at physical addresses. They are memory of the machine. */
int kdapl_helper_sg_of_physical(struct scatterlist *list, const u64 *addresses, u32 count, bool write)
{
	u32 i;

	sg_init_table(list, count);
	for (i = 0; i < count; i++) {
		struct page *page;

		if (!pfn_valid(PHYS_PFN(addresses[i])))
			return -EFAULT;
		page = usable_page(phys_to_virt(addresses[i]), write);
		if (!page)
			return -EFAULT;
		sg_set_page(&list[i], page, PAGE_SIZE, 0);
	}
	return 0;
}

/* Maps the list for the device. Returns the number of its DMA segments, or 0. Does not sleep. */
u32 kdapl_helper_sg_map(struct ib_device *dev, struct scatterlist *list, u32 count)
{
	int mapped = ib_dma_map_sg(dev, list, count, DMA_BIDIRECTIONAL);

	return max(mapped, 0);
}

void kdapl_helper_sg_unmap(struct ib_device *dev, struct scatterlist *list, u32 count)
{
	ib_dma_unmap_sg(dev, list, count, DMA_BIDIRECTIONAL);
}

/* Maps the DMA segments of a list into a region: see map_list(). */
int kdapl_helper_map_sg(struct ib_mr *mr, struct scatterlist *list, u32 segments, u64 length, u64 iova)
{
	return map_list(mr, list, segments, length, iova);
}

void kdapl_helper_update_fast_reg_key(struct ib_mr *mr, u32 key)
{
	ib_update_fast_reg_key(mr, key);
}

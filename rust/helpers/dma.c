// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* DMA mappings of kernel memory. */
#include <linux/mm.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"

/*
 * Returns the kind of memory (KDAPL_MEMORY_*) from @start up to, but not including, @end. Both ends
 * must be of the same kind.
 */
u32 kdapl_helper_memory_kind(const void *start, const void *end)
{
	const void *last = end - 1;

	if (is_vmalloc_addr(start) && is_vmalloc_addr(last))
		return KDAPL_MEMORY_PAGES;
	if (virt_addr_valid(start) && virt_addr_valid(last))
		return KDAPL_MEMORY_LINEAR;
	return KDAPL_MEMORY_NONE;
}

/*
 * Maps memory for DMA in both directions. Returns false if the device cannot reach it. A mapping of
 * kind KDAPL_MEMORY_PAGES must not cross a page boundary.
 */
bool kdapl_helper_dma_map(struct ib_device *dev, u32 kind, void *start, size_t length, u64 *address)
{
	if (kind == KDAPL_MEMORY_LINEAR) {
		*address = ib_dma_map_single(dev, start, length, DMA_BIDIRECTIONAL);
	} else {
		struct page *page = vmalloc_to_page(start);

		if (!page)
			return false;
		*address = ib_dma_map_page(dev, page, offset_in_page(start), length, DMA_BIDIRECTIONAL);
	}
	return !ib_dma_mapping_error(dev, *address);
}

void kdapl_helper_dma_unmap(struct ib_device *dev, u32 kind, u64 address, size_t length)
{
	if (kind == KDAPL_MEMORY_LINEAR)
		ib_dma_unmap_single(dev, address, length, DMA_BIDIRECTIONAL);
	else
		ib_dma_unmap_page(dev, address, length, DMA_BIDIRECTIONAL);
}

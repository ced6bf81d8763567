// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* DMA mappings of kernel memory. */
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"

#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
/* Returns whether the kernel may access a page that it has mapped. */
static bool may_access(const void *start, bool write)
{
	unsigned int level;
	pte_t *pte = lookup_address((unsigned long)start, &level);

	return pte && pte_present(*pte) && (!write || pte_write(*pte));
}
#else
/*
 * As above. No exported function tells which pages are read-only, and the reserved pages of the
 * linear mapping include those of the kernel's text.
 */
static bool may_access(const void *start, bool write)
{
	return !write || is_vmalloc_or_module_addr(start) || !PageReserved(virt_to_page(start));
}
#endif

/* Returns the page at an address of the kernel, or NULL. */
static struct page *page_at(const void *start, u32 kind)
{
	struct page *page = kind == KDAPL_MEMORY_LINEAR ? virt_to_page(start) : vmalloc_to_page(start);

	return page && pfn_valid(page_to_pfn(page)) ? page : NULL;
}

/* Returns whether each page of a range may be accessed. Sleeps. */
static bool all_accessible(const void *start, const void *end, bool write, u32 kind)
{
	for (start = PTR_ALIGN_DOWN(start, PAGE_SIZE); start < end; start += PAGE_SIZE) {
		struct page *page = page_at(start, kind);

		if (!page || !may_access(start, write))
			return false;
		if (write && is_zero_pfn(page_to_pfn(page)))
			return false;
		cond_resched();
	}
	return true;
}

/* Returns the kind of memory (KDAPL_MEMORY_*) of both ends of a range. */
static u32 kind_of_ends(const void *start, const void *last)
{
	if (is_vmalloc_or_module_addr(start) && is_vmalloc_or_module_addr(last))
		return KDAPL_MEMORY_PAGES;
	if (virt_addr_valid(start) && virt_addr_valid(last))
		return KDAPL_MEMORY_LINEAR;
	return KDAPL_MEMORY_NONE;
}

/*
 * Returns the kind of memory (KDAPL_MEMORY_*) from @start up to, but not including, @end. The whole
 * range must be mapped and of the same kind. With @write, read-only pages and the zero page are
 * KDAPL_MEMORY_NONE. Sleeps.
 */
u32 kdapl_helper_memory_kind(const void *start, const void *end, bool write)
{
	u32 kind = kind_of_ends(start, end - 1);

	if (kind == KDAPL_MEMORY_NONE || !all_accessible(start, end, write, kind))
		return KDAPL_MEMORY_NONE;
	return kind;
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

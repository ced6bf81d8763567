// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Kernel memory, and its DMA mappings. */
#include <linux/dma-map-ops.h>
#include <linux/iommu-dma.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/pgtable.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"

#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
/* Returns whether the kernel may read and write a page (KDAPL_ACCESS_*) at this address. */
static u32 access_at(const void *start)
{
	unsigned int level;
	pte_t *pte = lookup_address((unsigned long)start, &level);

	if (!pte || !pte_present(*pte))
		return KDAPL_ACCESS_NONE;
	return pte_write(*pte) ? KDAPL_ACCESS_WRITE : KDAPL_ACCESS_READ;
}
#else
/*
 * As above. No exported function shows which pages are read-only, and the reserved pages of the
 * linear mapping include those of the kernel's text.
 */
static u32 access_at(const void *start)
{
	if (is_vmalloc_or_module_addr(start) || !PageReserved(virt_to_page(start)))
		return KDAPL_ACCESS_WRITE;
	return KDAPL_ACCESS_READ;
}
#endif

struct page *kdapl_helper_page_at(const void *start)
{
	struct page *page = NULL;

	if (is_vmalloc_or_module_addr(start))
		page = vmalloc_to_page(start);
	else if (virt_addr_valid(start))
		page = virt_to_page(start);
	return page && pfn_valid(page_to_pfn(page)) ? page : NULL;
}

/* Returns the access (KDAPL_ACCESS_*) to a page that is mapped at @start. */
static u32 access_to(const struct page *page, const void *start)
{
	u32 access = access_at(start);

	return is_zero_pfn(page_to_pfn(page)) ? min(access, KDAPL_ACCESS_READ) : access;
}

/*
 * Returns the access (KDAPL_ACCESS_*) that the kernel has to all pages from @start up to, but not
 * including, @end. The zero page is KDAPL_ACCESS_READ. Both ends must be in the linear mapping, or
 * both in the vmalloc area or static data of a module, else it is KDAPL_ACCESS_NONE. Sleeps.
 */
u32 kdapl_helper_access_to_range(const void *start, const void *end)
{
	bool scattered = is_vmalloc_or_module_addr(start);
	u32 access = KDAPL_ACCESS_WRITE;

	if (is_vmalloc_or_module_addr(end - 1) != scattered)
		return KDAPL_ACCESS_NONE;
	for (start = PTR_ALIGN_DOWN(start, PAGE_SIZE); start < end && access; start += PAGE_SIZE) {
		const struct page *page = kdapl_helper_page_at(start);

		access = page ? min(access, access_to(page, start)) : KDAPL_ACCESS_NONE;
		cond_resched();
	}
	return access;
}

bool kdapl_helper_is_scattered(const void *start)
{
	return is_vmalloc_or_module_addr(start);
}

/*
 * As kdapl_helper_access_to_range(), for @length bytes from @offset of @page on, which may be in
 * the pages that follow it.
 */
u32 kdapl_helper_access_to_pages(struct page *page, u64 offset, u64 length)
{
	u64 pfn = page_to_pfn(page), end = pfn + DIV_ROUND_UP(offset + length, PAGE_SIZE);
	u32 access = KDAPL_ACCESS_WRITE;

	for (; pfn < end && access; pfn++) {
		if (!pfn_valid(pfn))
			return KDAPL_ACCESS_NONE;
		page = pfn_to_page(pfn);
		access = min(access, access_to(page, page_address(page)));
		cond_resched();
	}
	return access;
}

/* Returns the page at a physical address, or NULL if it is no memory of the machine. */
struct page *kdapl_helper_page_of(u64 address)
{
	u64 pfn = PHYS_PFN(address);

	return pfn_valid(pfn) ? pfn_to_page(pfn) : NULL;
}

/* Returns the kernel's address of a page. */
const void *kdapl_helper_page_address(const struct page *page)
{
	return page_address(page);
}

/*
 * Stores what an entry of a scatterlist refers to. Returns the next entry, or NULL.
 */
const struct scatterlist *kdapl_helper_sg_entry(const struct scatterlist *sg, struct page **page,
						u32 *offset, u32 *length)
{
	*page = sg_page((struct scatterlist *)sg);
	*offset = sg->offset;
	*length = sg->length;
	return sg_next((struct scatterlist *)sg);
}

/* Returns the direction of DMA to memory that the device writes to, or only reads. */
static enum dma_data_direction direction_of(bool write)
{
	return write ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

/*
 * Returns whether the kernel and the device access the same memory without further calls. An IOMMU
 * gives the device the memory itself. Only for a device that is not trusted it may give a copy, of
 * parts of pages.
 */
static bool is_shared(struct device *dma, u64 address)
{
	if (use_dma_iommu(dma))
		return dev_is_dma_coherent(dma) &&
		       !(dev_is_pci(dma) && to_pci_dev(dma)->untrusted);
	return !dma_need_sync(dma, address);
}

/*
 * Maps memory for DMA, until it is unmapped with the same @write. The kernel and the device access
 * it in turn without further calls.
 *
 * Errors: -EIO if the device cannot reach the memory, -ENOTSUPP if it gets a copy (swiotlb) or
 * does not see the caches of the processors.
 */
int kdapl_helper_dma_map(struct ib_device *dev, struct page *page, u64 offset, size_t length,
			 bool write, u64 *address)
{
	*address = ib_dma_map_page(dev, page, offset, length, direction_of(write));
	if (ib_dma_mapping_error(dev, *address))
		return -EIO;
	if (ib_uses_virt_dma(dev) || is_shared(dev->dma_device, *address))
		return 0;
	kdapl_helper_dma_unmap(dev, *address, length, write);
	return -ENOTSUPP;
}

void kdapl_helper_dma_unmap(struct ib_device *dev, u64 address, size_t length, bool write)
{
	ib_dma_unmap_page(dev, address, length, direction_of(write));
}

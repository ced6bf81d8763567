// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Pinned memory of processes, and memory regions over parts of it. */
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"

struct ib_umem *kdapl_helper_umem_get(struct ib_device *dev, u64 start, u64 length, int access)
{
	return ib_umem_get_va(dev, start, length, access);
}

/*
 * Returns the number of DMA segments that @length bytes from @offset of @table touch. Stores them,
 * cut to the range, in @list unless it is NULL.
 */
static int segments_of(const struct sg_table *table, u64 offset, u64 length,
		       struct scatterlist *list)
{
	struct scatterlist *sg;
	int count = 0;
	u32 i;

	for_each_sgtable_dma_sg(table, sg, i) {
		u64 size = sg_dma_len(sg);

		if (!length)
			break;
		if (offset >= size) {
			offset -= size;
			continue;
		}
		size = min(size - offset, length);
		if (list) {
			sg_dma_address(&list[count]) = sg_dma_address(sg) + offset;
			sg_dma_len(&list[count]) = size;
		}
		count++;
		length -= size;
		offset = 0;
	}
	return length ? -EFAULT : count;
}

/*
 * Maps @length bytes from @offset of @umem into @mr, for fast registration at the address @iova.
 *
 * Errors: -EFAULT for a range beyond @umem, -E2BIG if @mr has too few entries, -ENOMEM.
 */
int kdapl_helper_map_umem(struct ib_mr *mr, struct ib_umem *umem, u64 offset, u64 length, u64 iova)
{
	const struct sg_table *table = &umem->sgt_append.sgt;
	struct scatterlist *list;
	int count, mapped;

	offset += ib_umem_offset(umem);
	count = segments_of(table, offset, length, NULL);
	if (count <= 0)
		return count ?: -EFAULT;
	list = kvmalloc_array(count, sizeof(*list), GFP_KERNEL_ACCOUNT);
	if (!list)
		return -ENOMEM;
	sg_init_table(list, count);
	segments_of(table, offset, length, list);
	mapped = ib_map_mr_sg(mr, list, count, NULL, PAGE_SIZE);
	kvfree(list);
	if (mapped < 0)
		return mapped;
	if (mapped < count || mr->length != length)
		return -E2BIG;
	mr->iova = iova;
	return 0;
}

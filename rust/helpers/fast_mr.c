// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Memory regions for fast registration, over parts of mapped memory. */
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"

/* Number of DMA segments of a list on the stack. */
#define SHORT_LIST	8

/*
 * Returns the number of DMA segments that @length bytes from @offset of @table touch. Stores the
 * first @room of them, cut to the range, in @list, and ends the list if it has all.
 */
static int segments_of(const struct sg_table *table, u64 offset, u64 length,
		       struct scatterlist *list, int room)
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
		if (count < room) {
			list[count] = (struct scatterlist){};
			sg_dma_address(&list[count]) = sg_dma_address(sg) + offset;
			sg_dma_len(&list[count]) = size;
		}
		count++;
		length -= size;
		offset = 0;
	}
	if (length)
		return -EFAULT;
	if (count && count <= room)
		sg_mark_end(&list[count - 1]);
	return count;
}

/* Returns a list of @count DMA segments, for kvfree(), or NULL. */
struct scatterlist *kdapl_helper_new_dma_list(int count)
{
	struct scatterlist *list = kvmalloc_array(count, sizeof(*list), GFP_KERNEL_ACCOUNT);

	if (list)
		sg_init_table(list, count);
	return list;
}

/* Sets one of the segments. */
void kdapl_helper_set_dma_segment(struct scatterlist *list, int index, u64 address, u32 length)
{
	sg_dma_address(&list[index]) = address;
	sg_dma_len(&list[index]) = length;
}

/*
 * Maps the DMA segments of @list, @length bytes together, into @mr for users that address them from
 * @iova on.
 *
 * Errors: -EADDRNOTAVAIL if two segments do not meet at a page boundary, or the device has the
 * memory at another offset in its page than @iova; errors of the driver.
 */
int kdapl_helper_map_dma_list(struct ib_mr *mr, struct scatterlist *list, int count, u64 length,
			      u64 iova)
{
	int mapped = ib_map_mr_sg(mr, list, count, NULL, PAGE_SIZE);

	if (mapped < 0)
		return mapped;
	if (mapped < count || mr->length != length)
		return -EADDRNOTAVAIL;
	/* The device adds the offset in the page of an address to that of the page. */
	if (offset_in_page(mr->iova) != offset_in_page(iova))
		return -EADDRNOTAVAIL;
	mr->iova = iova;
	return 0;
}

/*
 * Maps @length bytes from @offset of @umem into @mr, for fast registration at the address @iova.
 *
 * Errors: -EFAULT for a range beyond @umem, -ENOMEM, errors of kdapl_helper_map_dma_list().
 */
int kdapl_helper_map_umem(struct ib_mr *mr, struct ib_umem *umem, u64 offset, u64 length, u64 iova)
{
	const struct sg_table *table = &umem->sgt_append.sgt;
	struct scatterlist short_list[SHORT_LIST], *list;
	int count, ret;

	offset += ib_umem_offset(umem);
	count = segments_of(table, offset, length, short_list, SHORT_LIST);
	if (count <= 0)
		return count ?: -EFAULT;
	if (count <= SHORT_LIST)
		return kdapl_helper_map_dma_list(mr, short_list, count, length, iova);
	list = kdapl_helper_new_dma_list(count);
	if (!list)
		return -ENOMEM;
	segments_of(table, offset, length, list, count);
	ret = kdapl_helper_map_dma_list(mr, list, count, length, iova);
	kvfree(list);
	return ret;
}

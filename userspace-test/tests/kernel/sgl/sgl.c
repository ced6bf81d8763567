// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * sgl_alloc() and sgl_free() as a module. The kernel has them if a driver selects
 * CONFIG_SGL_ALLOC, and the NVMe target is the only one that the debug kernel would need them for.
 * It is built beside that kernel (vm/steps/nvme-drivers), which is older than it.
 */
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

void sgl_free(struct scatterlist *sgl)
{
	struct scatterlist *sg;

	for (sg = sgl; sg; sg = sg_next(sg))
		if (sg_page(sg))
			__free_page(sg_page(sg));
	kfree(sgl);
}
EXPORT_SYMBOL(sgl_free);

struct scatterlist *sgl_alloc(unsigned long long length, gfp_t gfp, unsigned int *nent_p)
{
	unsigned long long pages = DIV_ROUND_UP_ULL(length, PAGE_SIZE);
	struct scatterlist *sgl, *sg;
	unsigned int i;

	if (!pages || pages > UINT_MAX)
		return NULL;
	sgl = kmalloc_array(pages, sizeof(*sgl), gfp & ~GFP_DMA);
	if (!sgl)
		return NULL;
	sg_init_table(sgl, pages);
	for_each_sg(sgl, sg, pages, i) {
		unsigned int part = min_t(unsigned long long, length, PAGE_SIZE);
		struct page *page = alloc_page(gfp);

		if (!page) {
			sgl_free(sgl);
			return NULL;
		}
		sg_set_page(sg, page, part, 0);
		length -= part;
	}
	if (nent_p)
		*nent_p = pages;
	return sgl;
}
EXPORT_SYMBOL(sgl_alloc);

MODULE_DESCRIPTION("Scatterlists with pages, for kernels without them");
MODULE_LICENSE("Dual BSD/GPL");

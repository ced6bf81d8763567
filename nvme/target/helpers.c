// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Inline functions and macros of the kernel, as functions for Rust. */
#include <linux/mm.h>
#include <linux/scatterlist.h>

#include "helpers.h"

void kdapl_nvmet_init_sgl(struct scatterlist *sgl, unsigned int entries)
{
	sg_init_table(sgl, entries);
}

/* Describes memory of kvmalloc() within one page. */
void kdapl_nvmet_set_sg(struct scatterlist *sg, void *address, unsigned int length)
{
	struct page *page = is_vmalloc_addr(address) ? vmalloc_to_page(address) :
						       virt_to_page(address);

	sg_set_page(sg, page, length, offset_in_page(address));
	sg_unmark_end(sg);
}

void kdapl_nvmet_end_sgl(struct scatterlist *last)
{
	sg_mark_end(last);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Inline functions and macros of the kernel that kdapl_nvmet.ko needs. */
#ifndef KDAPL_NVMET_HELPERS_H
#define KDAPL_NVMET_HELPERS_H

#include <linux/types.h>

struct scatterlist;

void kdapl_nvmet_init_sgl(struct scatterlist *sgl, unsigned int entries);
void kdapl_nvmet_set_sg(struct scatterlist *sg, void *address, unsigned int length);
void kdapl_nvmet_end_sgl(struct scatterlist *last);

#endif

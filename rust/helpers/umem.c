// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Pinned memory of processes. */
#include <rdma/ib_umem.h>

#include "helpers.h"

struct ib_umem *kdapl_helper_umem_get(struct ib_device *dev, u64 start, u64 length, int access)
{
	return ib_umem_get_va(dev, start, length, access);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/workqueue.h>

#include "helpers.h"

/* Unbound: work here may sleep for long and must not delay the worker pool of a CPU. */
struct workqueue_struct *kdapl_helper_alloc_workqueue(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND, 0, name);
}

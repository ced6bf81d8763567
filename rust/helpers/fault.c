// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/debugfs.h>
#include <linux/fault-inject.h>

#include "helpers.h"

#ifdef CONFIG_FAULT_INJECTION

/* With its probability of 0 it fails by /proc/PID/fail-nth only. */
static DECLARE_FAULT_ATTR(fail_kvmalloc);

void kdapl_helper_create_fault_knobs(struct dentry *folder)
{
	fault_create_debugfs_attr("fail_kvmalloc", folder, &fail_kvmalloc);
}

bool kdapl_helper_fails_kvmalloc(size_t size)
{
	return should_fail(&fail_kvmalloc, size);
}

#else

void kdapl_helper_create_fault_knobs(struct dentry *folder) {}

bool kdapl_helper_fails_kvmalloc(size_t size)
{
	return false;
}

#endif

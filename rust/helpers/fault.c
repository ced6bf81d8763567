// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/debugfs.h>
#include <linux/fault-inject.h>
#include <linux/version.h>

#include "helpers.h"

#ifdef CONFIG_FAULT_INJECTION

/* Until debugfs sets a probability, it fails by /proc/PID/fail-nth only. */
static DECLARE_FAULT_ATTR(fail_kvmalloc);

void kdapl_helper_create_fault_knobs(struct dentry *folder)
{
	fault_create_debugfs_attr("fail_kvmalloc", folder, &fail_kvmalloc);
}

void kdapl_helper_forget_fault_knobs(void)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 3, 0)
	/* The kernel has taken a reference, for the name. */
	dput(fail_kvmalloc.dname);
	fail_kvmalloc.dname = NULL;
#endif
}

bool kdapl_helper_fails_kvmalloc(size_t size)
{
	return should_fail(&fail_kvmalloc, size);
}

#else

void kdapl_helper_create_fault_knobs(struct dentry *folder) {}

void kdapl_helper_forget_fault_knobs(void) {}

bool kdapl_helper_fails_kvmalloc(size_t size)
{
	return false;
}

#endif

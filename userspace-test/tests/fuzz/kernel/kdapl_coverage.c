// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Lets root read and clear the counters of kdapl.ko's branches, in
 * /sys/kernel/debug/kdapl_coverage. They count in all contexts: tasks, work items, rdma_cm's
 * handlers, soft interrupts. KCOV records single tasks only, and half of kdapl.ko runs elsewhere.
 */
#include <linux/debugfs.h>
#include <linux/module.h>

static unsigned long start;
module_param(start, ulong, 0400);
MODULE_PARM_DESC(start, "address of section __sancov_cntrs of kdapl.ko");

static unsigned long size;
module_param(size, ulong, 0400);
MODULE_PARM_DESC(size, "its size in bytes");

static struct debugfs_blob_wrapper counters;
static struct dentry *file;

static int __init coverage_init(void)
{
	if (!start || !size)
		return -EINVAL;
	counters.data = (void *)start;
	counters.size = size;
	file = debugfs_create_blob("kdapl_coverage", 0600, NULL, &counters);
	return PTR_ERR_OR_ZERO(file);
}

static void __exit coverage_exit(void)
{
	debugfs_remove(file);
}

module_init(coverage_init);
module_exit(coverage_exit);
MODULE_DESCRIPTION("Counters of kdapl.ko's branches");
MODULE_LICENSE("Dual BSD/GPL");

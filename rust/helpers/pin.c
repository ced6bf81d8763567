// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What the calling process may pin. */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "helpers.h"

/* How many pages @length bytes from @start on touch; the range does not wrap. */
static u64 pages_of(u64 start, u64 length)
{
	return ((start + length - 1) >> PAGE_SHIFT) - (start >> PAGE_SHIFT) + 1;
}

/*
 * Whether the calling process may pin the range, as far as numbers tell:
 * __ib_umem_get_va() asks the same, but some drivers allocate by the length
 * before they call it, and others behind it. -EINVAL for a range that is none,
 * -EPERM where the process may pin nothing, -EFAULT for a range outside of a
 * process's address space, -ENOMEM above RLIMIT_MEMLOCK or the machine's memory;
 * else the number of pages.
 */
s64 kdapl_helper_may_pin(u64 start, u64 length)
{
	u64 pages, limit;

	if (!length || start + length - 1 < start)
		return -EINVAL;
	if (!can_do_mlock())
		return -EPERM;
	if (!current->mm || start != (unsigned long)start ||
	    !access_ok((void __user *)(unsigned long)start, length))
		return -EFAULT;
	pages = pages_of(start, length);
	if (pages > totalram_pages())
		return -ENOMEM;
	limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	if (atomic64_read(&current->mm->pinned_vm) + pages > limit && !capable(CAP_IPC_LOCK))
		return -ENOMEM;
	return pages;
}

/* Pages of the machine. */
u64 kdapl_helper_machine_pages(void)
{
	return totalram_pages();
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Limits on the memory that the calling process may pin. */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "helpers.h"

/* Returns the number of pages that @length bytes from @start touch. The range must not wrap. */
static u64 pages_of(u64 start, u64 length)
{
	return ((start + length - 1) >> PAGE_SHIFT) - (start >> PAGE_SHIFT) + 1;
}

/*
 * Checks whether the calling process may pin a range, as far as its numbers show, and returns its
 * number of pages. __ib_umem_get_va() does the same checks, but some drivers allocate memory by the
 * length of the range before they call it, and others after it.
 *
 * Errors: -EINVAL for an empty range or one that wraps, -EPERM if the process may not pin any
 * memory, -EFAULT for a range outside the address space of a process, -ENOMEM above RLIMIT_MEMLOCK
 * or above the machine's memory.
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

/* Returns the number of pages in the machine. */
u64 kdapl_helper_machine_pages(void)
{
	return totalram_pages();
}

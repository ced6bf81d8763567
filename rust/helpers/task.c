// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "helpers.h"

/* Returns whether the caller may access all memory of the machine by other means. */
bool kdapl_helper_may_raw_io(void)
{
	return capable(CAP_SYS_RAWIO);
}

bool kdapl_helper_is_killed(void)
{
	return fatal_signal_pending(current);
}

/* A thread of the kernel has no process, and does not return to user space. */
bool kdapl_helper_is_kernel_thread(void)
{
	return current->flags & PF_KTHREAD;
}

/*
 * As kdapl_helper_is_killed(), and after the process has begun to exit, which takes the signal from
 * the queue.
 */
bool kdapl_helper_is_ending(void)
{
	return fatal_signal_pending(current) ||
	       READ_ONCE(current->signal->flags) & SIGNAL_GROUP_EXIT;
}

void kdapl_helper_cond_resched(void)
{
	cond_resched();
}

/* Lets allocations of the task start no I/O. Returns flags for kdapl_helper_end_noio(). */
unsigned int kdapl_helper_begin_noio(void)
{
	return memalloc_noio_save();
}

void kdapl_helper_end_noio(unsigned int flags)
{
	memalloc_noio_restore(flags);
}

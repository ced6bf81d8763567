// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/jiffies.h>
#include <linux/rcuwait.h>
#include <linux/sched/signal.h>
#include <linux/time_namespace.h>
#include <linux/timer.h>
#include <linux/wait.h>

#include "helpers.h"

/* Contains the full barrier that pairs with the one in the waiter's prepare_to_wait_event(). */
bool kdapl_helper_wq_has_sleeper(struct wait_queue_head *wq)
{
	return wq_has_sleeper(wq);
}

/* As above, for callers that have executed a full barrier already. */
bool kdapl_helper_waitqueue_active(struct wait_queue_head *wq)
{
	return waitqueue_active(wq);
}

void kdapl_helper_init_wait_entry_func(struct wait_queue_entry *entry,
				       int (*function)(struct wait_queue_entry *entry,
						       unsigned int mode, int flags, void *key))
{
	init_waitqueue_func_entry(entry, function);
}

void kdapl_helper_init_waitqueue_head(struct wait_queue_head *wq, const char *name,
				      struct lock_class_key *key)
{
	__init_waitqueue_head(wq, name, key);
}

void kdapl_helper_prepare_to_rcuwait(struct rcuwait *wait)
{
	prepare_to_rcuwait(wait);
}

/*
 * Sets the task state and returns whether a signal is pending. Contains the full barrier that pairs
 * with the one in rcuwait_wake_up().
 */
bool kdapl_helper_set_interruptible(void)
{
	set_current_state(TASK_INTERRUPTIBLE);
	return signal_pending(current);
}

void kdapl_helper_timer_setup(struct timer_list *timer, void (*function)(struct timer_list *))
{
	timer_setup(timer, function, 0);
}

unsigned long kdapl_helper_jiffies(void)
{
	return jiffies;
}

/*
 * Returns the offset of CLOCK_MONOTONIC in the caller's time namespace, in nanoseconds: how far it
 * is ahead of the kernel's.
 */
s64 kdapl_helper_monotonic_offset(void)
{
	struct timespec64 offset = {};

	timens_add_monotonic(&offset);
	return timespec64_to_ns(&offset);
}

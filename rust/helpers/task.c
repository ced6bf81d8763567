// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/capability.h>
#include <linux/sched.h>
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

void kdapl_helper_cond_resched(void)
{
	cond_resched();
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* RCU and xarray operations, which are macros or inline. */
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "helpers.h"

void *kdapl_helper_xa_next(struct xarray *xa, unsigned long *index)
{
	return xa_find(xa, index, ULONG_MAX, XA_PRESENT);
}

void kdapl_helper_queue_rcu_work(struct workqueue_struct *queue, struct rcu_work *work,
				 work_func_t function)
{
	INIT_RCU_WORK(work, function);
	queue_rcu_work(queue, work);
}

/* As printk() decides whether it may sleep. False on a kernel without CONFIG_PREEMPT_COUNT. */
bool kdapl_helper_may_sleep(void)
{
	return preemptible() && !rcu_preempt_depth();
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/cpu.h>
#include <linux/workqueue.h>

#include "helpers.h"

/* Unbound: work here may sleep for long and must not delay the worker pool of a CPU. */
struct workqueue_struct *kdapl_helper_alloc_workqueue(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND, 0, name);
}

static void do_nothing(struct work_struct *work)
{
}

void kdapl_helper_wait_for_percpu_workers(void)
{
	int cpu;

	cpus_read_lock();
	for_each_online_cpu(cpu) {
		struct work_struct work;

		INIT_WORK_ONSTACK(&work, do_nothing);
		queue_work_on(cpu, system_percpu_wq, &work);
		flush_work(&work);
		destroy_work_on_stack(&work);
	}
	cpus_read_unlock();
}

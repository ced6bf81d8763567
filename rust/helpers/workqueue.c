// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/workqueue.h>

#include "helpers.h"

/*
 * Unbound: work here may sleep for long and must not delay the worker pool of a CPU. If @reclaim,
 * the queue has a thread of its own for when there is no memory for further workers.
 */
struct workqueue_struct *kdapl_helper_alloc_workqueue(const char *name, bool reclaim)
{
	return alloc_workqueue("%s", WQ_UNBOUND | (reclaim ? WQ_MEM_RECLAIM : 0), 0, name);
}

/* A work item that a thread waits for. */
struct awaited_work {
	struct work_struct work;
	struct completion done;
};

static void complete_awaited(struct work_struct *work)
{
	complete(&container_of(work, struct awaited_work, work)->done);
}

void kdapl_helper_wait_for_percpu_workers(void)
{
	int cpu;

	cpus_read_lock();
	for_each_online_cpu(cpu) {
		struct awaited_work item;

		INIT_WORK_ONSTACK(&item.work, complete_awaited);
		init_completion(&item.done);
		queue_work_on(cpu, system_percpu_wq, &item.work);
		/* Not flush_work(): workers of a queue for reclaim must not flush another queue. */
		wait_for_completion(&item.done);
		destroy_work_on_stack(&item.work);
	}
	cpus_read_unlock();
}

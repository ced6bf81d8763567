// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/workqueue.h>

#include "helpers.h"

/*
 * Unbound: work here may sleep for long and must not delay the worker pool of a CPU. If @reclaim,
 * the queue has a thread of its own for when there is no memory for further workers. @most items
 * run at once, or as many as the kernel allows if it is 0.
 */
struct workqueue_struct *kdapl_helper_alloc_workqueue(const char *name, bool reclaim, int most)
{
	return alloc_workqueue("%s", WQ_UNBOUND | (reclaim ? WQ_MEM_RECLAIM : 0), most, name);
}

/* Its items run in soft interrupts, on the CPU that has queued them. */
struct workqueue_struct *kdapl_helper_alloc_bh_workqueue(const char *name)
{
	return alloc_workqueue("%s", WQ_BH | WQ_PERCPU, 0, name);
}

/* Its items run in the pools of the CPUs, as those of the kernel's own per-CPU queues. */
struct workqueue_struct *kdapl_helper_alloc_percpu_workqueue(const char *name)
{
	return alloc_workqueue("%s", WQ_PERCPU, 0, name);
}

struct worker_call {
	struct work_struct work;
	struct completion made;
	void (*call)(void *data);
	void *data;
};

static void run_call(struct work_struct *work)
{
	struct worker_call *it = container_of(work, struct worker_call, work);

	it->call(it->data);
	complete(&it->made);
}

/*
 * Calls @call in a worker of @queue, and waits for its end. No signal ends the wait.
 *
 * Not flush_work(): lockdep would take all calls for one, and combine the locks around one with the
 * locks within another.
 */
void kdapl_helper_call_in_worker(struct workqueue_struct *queue, void (*call)(void *data),
				 void *data)
{
	struct worker_call it = { .call = call, .data = data };

	init_completion(&it.made);
	INIT_WORK_ONSTACK(&it.work, run_call);
	queue_work(queue, &it.work);
	wait_for_completion(&it.made);
	destroy_work_on_stack(&it.work);
}

/*
 * Periods in which each CPU's pool of workers has begun an item of ours, one at a time. Threads
 * that wait for one at the same time share it.
 */
static DEFINE_MUTEX(period_lock);
static DEFINE_PER_CPU(struct work_struct, period_work);
static DECLARE_COMPLETION(period_over);
static atomic_t period_left;
static unsigned long periods_begun;

static void pass_period(struct work_struct *work)
{
	if (atomic_dec_and_test(&period_left))
		complete(&period_over);
}

static void run_period(struct workqueue_struct *queue)
{
	int cpu;

	cpus_read_lock();
	reinit_completion(&period_over);
	atomic_set(&period_left, num_online_cpus());
	for_each_online_cpu(cpu) {
		INIT_WORK(per_cpu_ptr(&period_work, cpu), pass_period);
		queue_work_on(cpu, queue, per_cpu_ptr(&period_work, cpu));
	}
	/* Not flush_work(): workers of a queue for reclaim must not flush another queue. */
	wait_for_completion(&period_over);
	cpus_read_unlock();
}

unsigned long kdapl_helper_percpu_period(void)
{
	/* The caller's writes come before the period that it will wait for. */
	smp_mb();
	return READ_ONCE(periods_begun);
}

void kdapl_helper_await_percpu_period(struct workqueue_struct *queue, unsigned long begun)
{
	mutex_lock(&period_lock);
	/* A period ends before its thread releases the lock. */
	if (periods_begun == begun) {
		WRITE_ONCE(periods_begun, periods_begun + 1);
		smp_mb();
		run_period(queue);
	}
	mutex_unlock(&period_lock);
}

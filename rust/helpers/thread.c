// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Kernel threads with the network namespace and the credentials of another task. */
#include <linux/cred.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "helpers.h"

struct start {
	void (*run)(void *data);
	void *data;
};

static int begin(void *data)
{
	struct start start = *(struct start *)data;

	kfree(data);
	/* A kernel thread ignores every signal that it has not allowed. */
	allow_signal(SIGINT);
	start.run(start.data);
	/* Does not return: the module may be unloaded once its reference is dropped. */
	module_put_and_kthread_exit(0);
	return 0;
}

/* Runs @run in a new thread. The thread holds a reference to the module until it has ended. */
int kdapl_helper_thread_run(const char *name, void (*run)(void *data), void *data)
{
	struct task_struct *task;
	struct start *start;

	start = kmalloc(sizeof(*start), GFP_KERNEL_ACCOUNT);
	if (!start)
		return -ENOMEM;
	*start = (struct start) { .run = run, .data = data };
	if (!try_module_get(THIS_MODULE)) {
		kfree(start);
		return -ENODEV;
	}
	task = kthread_run(begin, start, "%s", name);
	if (IS_ERR(task)) {
		module_put(THIS_MODULE);
		kfree(start);
		return PTR_ERR(task);
	}
	return 0;
}

/*
 * Wakes such a thread from interruptible sleep. The signal stays pending and also ends later ones.
 */
void kdapl_helper_thread_interrupt(struct task_struct *task)
{
	send_sig(SIGINT, task, 1);
}

/*
 * Calls @run with a network namespace and credentials other than those of the calling kernel
 * thread.
 *
 * A task may replace its own nsproxy under its task_lock() (linux/nsproxy.h). The replacement is on
 * the stack and holds no references: its namespaces are those of the old nsproxy, except for @net,
 * which the caller keeps alive. setns() with a pidfd of this thread may take a reference to the
 * replacement for a moment, so the function waits until that is dropped.
 */
void kdapl_helper_run_as(struct net *net, const struct cred *cred, void (*run)(void *data),
			 void *data)
{
	struct nsproxy *before = current->nsproxy;
	struct nsproxy proxy = *before;
	const struct cred *own;

	refcount_set(&proxy.count, 1);
	proxy.net_ns = net;
	own = override_creds(cred);
	task_lock(current);
	current->nsproxy = &proxy;
	task_unlock(current);

	run(data);

	task_lock(current);
	current->nsproxy = before;
	task_unlock(current);
	revert_creds(own);
	while (refcount_read(&proxy.count) != 1)
		schedule_timeout_uninterruptible(1);
}

const struct cred *kdapl_helper_current_cred(void)
{
	return current_cred();
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Kernel threads, and in whose name they call. */
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
	/* A kernel thread ignores all signals that it does not ask for. */
	allow_signal(SIGINT);
	start.run(start.data);
	/* Does not return: by then there may be no code here any more. */
	module_put_and_kthread_exit(0);
	return 0;
}

/* Runs @run in a thread of its own, until whose end the module stays. */
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

/* Ends a sleep of such a thread that a signal may end, now or when it comes. */
void kdapl_helper_thread_interrupt(struct task_struct *task)
{
	send_sig(SIGINT, task, 1);
}

/*
 * Calls @run in a network namespace and with credentials that are not the calling kernel thread's own.
 *
 * A task may exchange its own nsproxy under its task_lock() (linux/nsproxy.h). This one lies on the
 * stack, and holds no references: the namespaces are those of before, but for @net, which the caller
 * keeps alive. setns() by a pidfd of this thread may take a reference for a moment.
 */
void kdapl_helper_run_as(struct net *net, const struct cred *cred, void (*run)(void *data), void *data)
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

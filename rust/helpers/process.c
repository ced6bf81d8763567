// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The process that has opened an adapter. */
#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uidgid.h>

#include "helpers.h"

/* Returns the calling process, with a reference. */
struct pid *kdapl_helper_current_process(void)
{
	return get_pid(task_tgid(current));
}

void kdapl_helper_put_pid(struct pid *pid)
{
	put_pid(pid);
}

/*
 * Returns the number of a process in the caller's PID namespace, or 0 if it has none there or has
 * ended. The number of a process that has ended may be that of another one by now.
 */
u32 kdapl_helper_pid_number(struct pid *pid)
{
	return pid_has_task(pid, PIDTYPE_TGID) ? pid_vnr(pid) : 0;
}

/* Copies the name of the calling thread's process, which ends with a zero byte. */
void kdapl_helper_current_comm(u8 comm[KDAPL_COMM_LEN])
{
	static_assert(KDAPL_COMM_LEN == TASK_COMM_LEN);

	strscpy_pad((char *)comm, current->group_leader->comm, KDAPL_COMM_LEN);
}

/* Returns a user's number in the caller's user namespace, or the overflow number. */
u32 kdapl_helper_uid_number(const struct cred *cred)
{
	return from_kuid_munged(current_user_ns(), cred->euid);
}

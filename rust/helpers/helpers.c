// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * One object of all helpers, as in the kernel's own rust/helpers/.
 */
#include "cgroup.c"
#include "dma.c"
#include "eventfd.c"
#include "lock.c"
#include "memcg.c"
#include "module.c"
#include "net.c"
#include "pin.c"
#include "poll.c"
#include "task.c"
#include "thread.c"
#include "uaccess.c"
#include "user.c"
#include "verbs.c"
#include "wait.c"
#include "workqueue.c"

/* Last: it defines what makes other trace headers define their tracepoints again. */
#include "trace.c"

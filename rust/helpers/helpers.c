// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Builds all helpers into one object, as the kernel's own rust/helpers/ does. */
#include "address.c"
#include "cgroup.c"
#include "dma.c"
#include "eventfd.c"
#include "fast_mr.c"
/* Uses the checks of dma.c. */
#include "dma_pages.c"
#include "lock.c"
#include "memcg.c"
#include "module.c"
#include "net.c"
#include "pin.c"
#include "poll.c"
#include "rcu.c"
#include "self_path.c"
#include "task.c"
#include "thread.c"
#include "uaccess.c"
#include "umem.c"
#include "uring.c"
#include "user.c"
#include "verbs.c"
#include "wait.c"
#include "workqueue.c"

/* Keep last: it defines macros that make every later trace header define its tracepoints again. */
#include "trace.c"

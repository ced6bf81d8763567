/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Input of bindgen for kdapl_bindings. Each header that is needed is listed, even if another one
 * includes it.
 */

/*
 * Keep this include first, as in the kernel's own helper: bindgen fails on enums that are declared
 * before they are defined.
 */
#include <linux/hrtimer_types.h>

#include <linux/anon_inodes.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/generic-radix-tree.h>
#include <linux/hrtimer.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/miscdevice.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/rcuwait.h>
#include <linux/sched.h>
#include <linux/socket.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/kdat.h>
#include <rdma/kdat_ib_extensions.h>
#include <rdma/rdma_cm.h>

#include "helpers.h"
#include "kdapl_trace.h"

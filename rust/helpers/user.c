// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The user to which a process is accounted, and the limits of one user. */
#include <linux/cred.h>
#include <linux/init_task.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/user_namespace.h>

#include "helpers.h"

static unsigned int user_adapters = 1024;
module_param(user_adapters, uint, 0644);
MODULE_PARM_DESC(user_adapters, "Adapters that one user may have open (default: 1024)");

static unsigned int user_objects = 262144;
module_param(user_objects, uint, 0644);
MODULE_PARM_DESC(user_objects, "Objects, pending connection requests and waiting io_uring commands of one user (default: 262144)");

static unsigned int user_service_points = 4096;
module_param(user_service_points, uint, 0644);
MODULE_PARM_DESC(user_service_points, "Service points of one user (default: 4096)");

static unsigned int user_queue_pairs = 32768;
module_param(user_queue_pairs, uint, 0644);
MODULE_PARM_DESC(user_queue_pairs, "Queue pairs of one user: endpoints with a protection zone (default: 32768)");

static unsigned int user_device_share = 50;
module_param(user_device_share, uint, 0644);
MODULE_PARM_DESC(user_device_share, "Percentage of a device's queues, protection domains and memory regions for one user (default: 50)");

static unsigned int user_driver_memory_mb;
module_param(user_driver_memory_mb, uint, 0644);
MODULE_PARM_DESC(user_driver_memory_mb, "Megabytes that drivers may allocate for one user (default: 0, an eighth of the machine's memory)");

static unsigned int user_module_memory_mb;
module_param(user_module_memory_mb, uint, 0644);
MODULE_PARM_DESC(user_module_memory_mb, "Megabytes that kdapl itself may allocate for one user (default: 0, an eighth of the machine's memory)");

static unsigned int user_pinned_memory_mb;
module_param(user_pinned_memory_mb, uint, 0644);
MODULE_PARM_DESC(user_pinned_memory_mb, "Megabytes of processes' memory that one user may register (default: 0, half of the machine's memory)");

static unsigned int user_port_share = 50;
module_param(user_port_share, uint, 0644);
MODULE_PARM_DESC(user_port_share, "Percentage of the local ports (net.ipv4.ip_local_port_range) for one user (default: 50)");

/* Converts a limit in megabytes to kilobytes. 0 is the machine's memory divided by @divisor. */
static u32 memory_kb(u64 mb, unsigned int divisor)
{
	u64 kb = mb ? mb << 10 : ((u64)totalram_pages() << (PAGE_SHIFT - 10)) / divisor;

	return min_t(u64, kb, U32_MAX);
}

u32 kdapl_helper_user_limit(enum kdapl_limit limit)
{
	switch (limit) {
	case KDAPL_LIMIT_ADAPTERS:
		return READ_ONCE(user_adapters);
	case KDAPL_LIMIT_OBJECTS:
		return READ_ONCE(user_objects);
	case KDAPL_LIMIT_SERVICE_POINTS:
		return READ_ONCE(user_service_points);
	case KDAPL_LIMIT_QUEUE_PAIRS:
		return READ_ONCE(user_queue_pairs);
	case KDAPL_LIMIT_DEVICE_SHARE:
		return READ_ONCE(user_device_share);
	case KDAPL_LIMIT_DRIVER_MEMORY_KB:
		return memory_kb(READ_ONCE(user_driver_memory_mb), 8);
	case KDAPL_LIMIT_MODULE_MEMORY_KB:
		return memory_kb(READ_ONCE(user_module_memory_mb), 8);
	case KDAPL_LIMIT_PINNED_MEMORY_KB:
		return memory_kb(READ_ONCE(user_pinned_memory_mb), 2);
	case KDAPL_LIMIT_PORT_SHARE:
		return READ_ONCE(user_port_share);
	}
	return 0;
}

/*
 * Returns the number of the user to which the calling process is accounted. In the initial user
 * namespace it is the real user ID. In a namespace that an ordinary user created it is the creator,
 * whichever IDs the process has inside. Of nested namespaces the outermost one below the initial
 * namespace decides. A namespace that root created is a user in its own right. It is returned with
 * a reference in @held, because its number is reused once the namespace is freed.
 */
u64 kdapl_helper_current_user(struct user_namespace **held)
{
	struct user_namespace *ns = current_user_ns();

	*held = NULL;
	if (ns == &init_user_ns)
		return __kuid_val(current_uid());
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
		return __kuid_val(ns->owner);
	*held = get_user_ns(ns);
	return BIT_ULL(32) | ns->ns.inum;
}

void kdapl_helper_put_user_ns(struct user_namespace *ns)
{
	put_user_ns(ns);
}

bool kdapl_helper_is_unlimited(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
}

const struct cred *kdapl_helper_become_kernel(void)
{
	return override_creds(kernel_cred());
}

void kdapl_helper_become_self(const struct cred *own)
{
	revert_creds(own);
}

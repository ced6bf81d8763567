// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* References to memory cgroups. In a kernel without them these functions do nothing. */
#include <linux/memcontrol.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>

#include "helpers.h"

struct mem_cgroup *kdapl_helper_get_current_memcg(void)
{
	return get_mem_cgroup_from_mm(current->mm);
}

void kdapl_helper_put_memcg(struct mem_cgroup *memcg)
{
	mem_cgroup_put(memcg);
}

struct mem_cgroup *kdapl_helper_set_active_memcg(struct mem_cgroup *memcg)
{
	return set_active_memcg(memcg);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Delays rdma_cm between its search for the listener of a request and its use of the listener. The
 * tracepoint cm_req_handler is in between. A probe of it can be preempted, as rdma_cm can. It does
 * not sleep, as rdma_cm does not.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

struct rdma_id_private;

static uint delay_ms = 100;
module_param(delay_ms, uint, 0444);
MODULE_PARM_DESC(delay_ms, "delay of each request, in milliseconds");

static uint searches;
module_param(searches, uint, 0444);
MODULE_PARM_DESC(searches, "number of requests whose listener was found");

/* Of rdma_cm, built in or loaded. */
static struct tracepoint *point;

static void probe(void *data, const struct rdma_id_private *listener, int event)
{
	WRITE_ONCE(searches, searches + 1);
	mdelay(delay_ms);
}

static void find(struct tracepoint *candidate, void *data)
{
	if (strcmp(candidate->name, "cm_req_handler") == 0)
		point = candidate;
}

static int find_in_module(struct notifier_block *self, unsigned long state, void *module)
{
	struct module *mod = ((struct tp_module *)module)->mod;

	if (state == MODULE_STATE_COMING)
		for (unsigned int i = 0; i < mod->num_tracepoints; i++)
			find(tracepoint_ptr_deref(&mod->tracepoints_ptrs[i]), NULL);
	return NOTIFY_OK;
}

static struct notifier_block modules = { .notifier_call = find_in_module };

static int __init slow_search_init(void)
{
	/* The notifier is called for the modules that are loaded. kdapl.ko keeps rdma_cm loaded. */
	int error = register_tracepoint_module_notifier(&modules);

	if (error)
		return error;
	unregister_tracepoint_module_notifier(&modules);
	for_each_kernel_tracepoint(find, NULL);
	return point ? tracepoint_probe_register(point, probe, NULL) : -EOPNOTSUPP;
}

static void __exit slow_search_exit(void)
{
	tracepoint_probe_unregister(point, probe, NULL);
	tracepoint_synchronize_unregister();
}

module_init(slow_search_init);
module_exit(slow_search_exit);
MODULE_DESCRIPTION("Delays requests of rdma_cm after the search for their listener");
MODULE_LICENSE("Dual BSD/GPL");

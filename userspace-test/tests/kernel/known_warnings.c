// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Marks known warnings of other drivers as printed, so that a guest with panic_on_warn survives
 * them. Load it before the drivers. The kernel must have a table of its warnings
 * (CONFIG_GENERIC_BUG), which user-mode Linux has not.
 */
#include <linux/bug.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/string.h>

/* userspace-test/vm/lib/verdict.sh explains them. */
static const struct {
	const char *module, *function;
	/* BUGFLAG_ONCE for a WARN_ON_ONCE(). */
	unsigned short flags;
} known[] = {
	/* A task is started whose queue pair has lost its last reference. */
	{ "rdma_rxe", "rxe_sched_task", 0 },
	/* A repeated acknowledgement has ended an RDMA read. */
	{ "rdma_rxe", "rxe_completer", BUGFLAG_ONCE },
	/* A socket is read without its lock. */
	{ "siw", "siw_cm_work_handler", 0 },
};

static unsigned int marked;
module_param(marked, uint, 0444);
MODULE_PARM_DESC(marked, "warnings that were marked as printed");

static bool is_known(const char *module, const char *function, unsigned short flags)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].module, module) && !strcmp(known[i].function, function) &&
		    (flags & BUGFLAG_ONCE) == known[i].flags)
			return true;
	return false;
}

static void mark(const struct module *module, struct bug_entry *bug)
{
	const unsigned long address = (unsigned long)&bug->bug_addr_disp + bug->bug_addr_disp;
	char function[KSYM_SYMBOL_LEN];

	/* Writes "function [module]". */
	sprint_symbol_no_offset(function, address);
	function[strcspn(function, " ")] = '\0';
	if ((bug->flags & BUGFLAG_WARNING) && is_known(module->name, function, bug->flags)) {
		bug->flags |= BUGFLAG_ONCE | BUGFLAG_DONE;
		marked++;
	}
}

static int on_module(struct notifier_block *block, unsigned long state, void *data)
{
	const struct module *module = data;
	unsigned int i;

	if (state == MODULE_STATE_COMING)
		for (i = 0; i < module->num_bugs; i++)
			mark(module, &module->bug_table[i]);
	return NOTIFY_OK;
}

static struct notifier_block block = { .notifier_call = on_module };

static int __init known_warnings_init(void)
{
	return register_module_notifier(&block);
}

static void __exit known_warnings_exit(void)
{
	unregister_module_notifier(&block);
}

module_init(known_warnings_init);
module_exit(known_warnings_exit);
MODULE_DESCRIPTION("Marks known warnings of other drivers as printed");
MODULE_LICENSE("Dual BSD/GPL");

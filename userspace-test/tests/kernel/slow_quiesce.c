// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Delays blk_mq_quiesce_tagset(). The NVMe core has noted already that the queues are quiesced when
 * it calls this function, so that the function that undoes it may run at the same time.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static uint delay_ms = 100;
module_param(delay_ms, uint, 0444);
MODULE_PARM_DESC(delay_ms, "delay of each call, in milliseconds");

static uint calls;
module_param(calls, uint, 0444);
MODULE_PARM_DESC(calls, "number of calls that have begun");

/* Does not sleep, because a probe must not. */
static int delay(struct kprobe *probe, struct pt_regs *regs)
{
	WRITE_ONCE(calls, calls + 1);
	mdelay(delay_ms);
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "blk_mq_quiesce_tagset",
	.pre_handler = delay,
};

static int __init slow_quiesce_init(void)
{
	return register_kprobe(&probe);
}

static void __exit slow_quiesce_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(slow_quiesce_init);
module_exit(slow_quiesce_exit);
MODULE_DESCRIPTION("Delays the block layer while it quiesces the queues of a tag set");
MODULE_LICENSE("Dual BSD/GPL");

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Exports of kdapl_bmi.ko, and the kernel's calls that its Rust code needs. */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/kdapl_bmi.h>

#include "glue.h"

/* Time between two ticks of the engine. */
#define TICK msecs_to_jiffies(500)

struct kdapl_bmi_ticker {
	struct delayed_work work;
	const void *shared;
};

static void tick(struct work_struct *work)
{
	struct kdapl_bmi_ticker *ticker =
		container_of(to_delayed_work(work), struct kdapl_bmi_ticker, work);

	kdapl_bmi_tick(ticker->shared);
	queue_delayed_work(system_dfl_wq, &ticker->work, TICK);
}

struct kdapl_bmi_ticker *kdapl_bmi_ticker_start(const void *shared)
{
	struct kdapl_bmi_ticker *ticker = kzalloc_obj(*ticker);

	if (!ticker)
		return NULL;
	ticker->shared = shared;
	INIT_DELAYED_WORK(&ticker->work, tick);
	queue_delayed_work(system_dfl_wq, &ticker->work, TICK);
	return ticker;
}

void kdapl_bmi_ticker_stop(struct kdapl_bmi_ticker *ticker)
{
	cancel_delayed_work_sync(&ticker->work);
	kfree(ticker);
}

void bmi_unexpected_free(void *buffer)
{
	kvfree(buffer);
}

u64 kdapl_bmi_random(void)
{
	return get_random_u64();
}

unsigned int kdapl_bmi_noio_save(void)
{
	return memalloc_noio_save();
}

void kdapl_bmi_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}

EXPORT_SYMBOL_NS_GPL(bmi_open_with, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_close, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_open_context, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_close_context, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_post_send_list, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_post_sendunexpected_list, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_post_recv_list, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_test, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_testsome, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_testcontext, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_testunexpected, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_cancel, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_memalloc, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_memfree, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_unexpected_free, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_set_info, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_get_info, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_addr_lookup, "KDAPL_BMI");
EXPORT_SYMBOL_NS_GPL(bmi_addr_rev_lookup, "KDAPL_BMI");

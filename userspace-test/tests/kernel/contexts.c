// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Contexts that cannot sleep: under a spinlock, with interrupts off, in interrupts. */
#include <linux/completion.h>
#include <linux/irq_work.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#include "contexts.h"

/* A call in another context. */
struct call {
	void (*run)(void *data);
	void *data;
	struct completion over;
	struct timer_list timer;
	struct irq_work irq_work;
};

static void under_spinlock(struct call *call)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	call->run(call->data);
	spin_unlock(&lock);
}

static void with_interrupts_off(struct call *call)
{
	unsigned long flags;

	local_irq_save(flags);
	call->run(call->data);
	local_irq_restore(flags);
}

static void timer_expired(struct timer_list *timer)
{
	struct call *call = container_of(timer, struct call, timer);

	call->run(call->data);
	complete(&call->over);
}

static void in_timer(struct call *call)
{
	timer_setup_on_stack(&call->timer, timer_expired, 0);
	mod_timer(&call->timer, jiffies);
	wait_for_completion(&call->over);
	timer_delete_sync(&call->timer);
	timer_destroy_on_stack(&call->timer);
}

static void interrupted(struct irq_work *work)
{
	struct call *call = container_of(work, struct call, irq_work);

	call->run(call->data);
	complete(&call->over);
}

static void in_irq_work(struct call *call)
{
	call->irq_work = IRQ_WORK_INIT(interrupted);
	irq_work_queue(&call->irq_work);
	irq_work_sync(&call->irq_work);
}

static void as_rcu_reader(struct call *call)
{
	rcu_read_lock();
	call->run(call->data);
	rcu_read_unlock();
}

static void (*const contexts[])(struct call *call) = {
	under_spinlock, as_rcu_reader, with_interrupts_off, in_timer, in_irq_work,
};
static_assert(ARRAY_SIZE(contexts) == CONTEXTS);

void call_in(unsigned int context, void (*run)(void *data), void *data)
{
	struct call call = { .run = run, .data = data };

	init_completion(&call.over);
	contexts[context](&call);
}

bool in_soft_interrupt(void)
{
	return in_serving_softirq();
}

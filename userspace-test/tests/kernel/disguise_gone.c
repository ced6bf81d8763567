// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The latest destroyed queue pairs. Their completions may still be queued in soft-RoCE, and in
 * qedr, which uses the queue pair when it polls one. Other drivers discard them.
 */
#include <linux/atomic.h>
#include <linux/spinlock.h>

#include "disguise.h"

static DEFINE_SPINLOCK(gone_lock);
static struct ib_qp *gone[256];
static unsigned int next_gone;
static atomic_t late = ATOMIC_INIT(0);
static atomic_t discards = ATOMIC_INIT(0);
static atomic_t hides = ATOMIC_INIT(0);
module_param_cb(late, &disguise_atomic_ops, &late, 0444);
MODULE_PARM_DESC(late, "completions that were polled after their queue pair was destroyed");
module_param_cb(discards, &disguise_once_ops, &discards, 0644);
MODULE_PARM_DESC(discards, "1 discards the completions of destroyed queue pairs");
module_param_cb(hides, &disguise_once_ops, &hides, 0644);
MODULE_PARM_DESC(hides, "1 hides all completions, like a device that does not answer");

void disguise_replace_gone(struct ib_qp *old, struct ib_qp *new)
{
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&gone_lock, flags);
	for (i = 0; old && i < ARRAY_SIZE(gone); i++)
		if (gone[i] == old)
			gone[i] = NULL;
	if (new)
		gone[next_gone++ % ARRAY_SIZE(gone)] = new;
	spin_unlock_irqrestore(&gone_lock, flags);
}

static bool is_gone(const struct ib_qp *qp)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(gone); i++)
		if (gone[i] == qp)
			return true;
	return false;
}

int disguise_poll_cq(struct ib_cq *cq, int most, struct ib_wc *wc)
{
	unsigned long flags;
	int found, left, i;

	if (atomic_read(&hides))
		return 0;
	do {
		found = disguise_own.poll_cq(cq, most, wc);
		left = 0;
		spin_lock_irqsave(&gone_lock, flags);
		for (i = 0; i < found; i++) {
			if (is_gone(wc[i].qp)) {
				atomic_inc(&late);
				if (atomic_read(&discards))
					continue;
			}
			if (left != i)
				wc[left] = wc[i];
			left++;
		}
		spin_unlock_irqrestore(&gone_lock, flags);
	} while (found > 0 && !left);
	return found > 0 ? left : found;
}

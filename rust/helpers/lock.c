// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The interrupt-saving spinlock operations, which are macros. */
#include <linux/spinlock.h>

#include "helpers.h"

unsigned long kdapl_helper_spin_lock_irqsave(spinlock_t *lock)
{
	unsigned long flags;

	spin_lock_irqsave(lock, flags);
	return flags;
}

void kdapl_helper_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags)
{
	spin_unlock_irqrestore(lock, flags);
}

bool kdapl_helper_spin_trylock_irqsave(spinlock_t *lock, unsigned long *flags)
{
	unsigned long saved;

	if (!spin_trylock_irqsave(lock, saved))
		return false;
	*flags = saved;
	return true;
}

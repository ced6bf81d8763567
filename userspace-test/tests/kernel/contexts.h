/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef _KDAPL_CONTEXTS_H
#define _KDAPL_CONTEXTS_H

#include <linux/types.h>

/* Number of contexts that cannot sleep. */
#define CONTEXTS	5

/* Calls a function in a context, below CONTEXTS. */
void call_in(unsigned int context, void (*run)(void *data), void *data);

/* Returns whether the caller is in a soft interrupt. */
bool in_soft_interrupt(void);

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Tests of LMRs of kernel memory with remote privileges. Side 1 of a pair owns the memory. */
#ifndef _KDAPL_REMOTE_H
#define _KDAPL_REMOTE_H

#include "ktest.h"

#define ALL		(LOCAL_FLAGS | REMOTE_FLAGS)
#define PAGES		4
#define BEFORE		150
#define LENGTH		(2 * PAGE_SIZE)
#define UNTOUCHED	0x11

/* Memory of vmalloc(), for each test. */
extern u8 *remote_memory;

/* Runs a test over memory, which is freed after the adapter is closed. */
int remote_with_memory(int (*run)(void));
/* Without a queue pair that carries out registrations there is no such LMR. */
int remote_not_over_iwarp(void);
/* Makes an LMR of LENGTH bytes, and describes it for the peer. */
int remote_show(DAT_MEM_PRIV_FLAGS privileges, struct lmr *lmr, DAT_RMR_TRIPLET *remote);

#define TEST(name)							\
	static int name(void)						\
	{								\
		return is_iwarp ? remote_not_over_iwarp() : remote_with_memory(do_##name); \
	}

#endif

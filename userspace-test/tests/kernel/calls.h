/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Table of the exported calls, for tests that make each of them. */
#ifndef _KDAPL_CALLS_H
#define _KDAPL_CALLS_H

#include <rdma/kdat.h>

struct call {
	const char *name;
	/* Creates the objects that the call needs. */
	int (*stage)(void);
	DAT_RETURN (*make)(void);
	bool is_extension;
};

/* Ends with a call without a name. A call may have several rows. */
extern const struct call calls[];

/* Opens an adapter, and creates the objects that a call needs. */
int call_prepare(const struct call *call);
/* Returns the second adapter of a call, or DAT_HANDLE_NULL. */
DAT_IA_HANDLE call_second_adapter(void);
/* Returns whether the adapter supports a call. */
bool call_is_supported(const struct call *call);

/* Lists the names of the calls. */
struct seq_file;
int calls_show(struct seq_file *seq, void *unused);

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The tables of the protection matrix of kernel memory. Each cell is tried over each source. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "protection.h"

#define VA	DAT_VA_TYPE_VA
#define ZB	DAT_VA_TYPE_ZB
#define ALL	(LOCAL_FLAGS | REMOTE_FLAGS)
#define LREAD	DAT_MEM_PRIV_LOCAL_READ_FLAG
#define RREAD	DAT_MEM_PRIV_REMOTE_READ_FLAG
#define RWRITE	DAT_MEM_PRIV_REMOTE_WRITE_FLAG

#define Y	MAY
#define N	BREAKS
#define S	SIW_MAY
#define V	PROTECTION
#define P	PRIVILEGE
#define F	FAILS

/* The columns are: send, receive, RDMA read of the peer, RDMA write of the peer. */

/* LMRs of dat_lmr_kcreate(). A peer needs a remote privilege, a receive LOCAL_WRITE. */
static const struct row lmr_rows[] = {
	{ "all privileges", open_lmr, ALL, VA, HERE, INSIDE, { Y, Y, Y, Y } },
	{ "REMOTE_READ", open_lmr, LOCAL_FLAGS | RREAD, VA, HERE, INSIDE, { Y, Y, Y, N } },
	{ "REMOTE_WRITE", open_lmr, LOCAL_FLAGS | RWRITE, VA, HERE, INSIDE, { Y, Y, N, Y } },
	{ "LOCAL_READ and REMOTE_READ", open_lmr, LREAD | RREAD, VA, HERE, INSIDE, { Y, P, Y, N } },
	{ "remote privileges", open_lmr, REMOTE_FLAGS, VA, HERE, INSIDE, { Y, P, Y, Y } },
	{ "local privileges", open_lmr, LOCAL_FLAGS, VA, HERE, INSIDE, { Y, Y, N, N } },
	{ "no privilege", open_lmr, 0, VA, HERE, INSIDE, { Y, P, N, N } },
	{ "one byte before", open_lmr, ALL, VA, HERE, BEFORE, { V, V, N, N } },
	{ "one byte after", open_lmr, ALL, VA, HERE, AFTER, { V, V, N, N } },
	{ "unknown contexts", open_unknown, ALL, VA, HERE, INSIDE, { V, V, N, N } },
	/* Contiguous memory needs no key of the device: see Remote privileges in kernel-api.md. */
	{ "invalidated by a peer", open_invalidated_lmr, ALL, VA, HERE, LAST, { Y, Y, N, N } },
	{ "invalidated by a peer, two pieces", open_invalidated_lmr, ALL, VA, HERE, ACROSS,
	  { F, F, N, N } },
	{ "freed", open_freed_lmr, ALL, VA, HERE, INSIDE, { V, V, N, N } },
	{ "of another PZ", open_lmr, ALL, VA, OTHER_PZ, INSIDE, { V, V, N, N } },
	{ "of another adapter", open_lmr, ALL, VA, OTHER_ADAPTER, INSIDE, { V, V, N, N } },
	{}
};

/* As above. One byte before a zero-based LMR is the last address of all. */
static const struct row zero_based_rows[] = {
	{ "zero-based, the first byte", open_lmr, ALL, ZB, HERE, FIRST, { Y, Y, Y, Y } },
	{ "zero-based, the last byte", open_lmr, ALL, ZB, HERE, LAST, { Y, Y, Y, Y } },
	{ "zero-based, all", open_lmr, ALL, ZB, HERE, INSIDE, { Y, Y, Y, Y } },
	{ "zero-based, one byte before", open_lmr, ALL, ZB, HERE, BEFORE, { V, V, N, N } },
	{ "zero-based, one byte after", open_lmr, ALL, ZB, HERE, AFTER, { V, V, N, N } },
	{}
};

/* RMRs. Their contexts are those of peers, in the PZ and until the bind ends. */
static const struct row rmr_rows[] = {
	{ "before a bind", open_unbound_yet, 0, VA, HERE, INSIDE, { V, V, N, N } },
	{ "bound for both", open_rmr, REMOTE_FLAGS, VA, HERE, INSIDE, { V, V, Y, Y } },
	{ "bound for reading", open_rmr, RREAD, VA, HERE, INSIDE, { V, V, Y, N } },
	{ "bound for writing", open_rmr, RWRITE, VA, HERE, INSIDE, { V, V, S, Y } },
	{ "bound for nothing", open_rmr, 0, VA, HERE, INSIDE, { V, V, S, N } },
	{ "bound through another EP", open_rmr_by_other_ep, REMOTE_FLAGS, VA, HERE, INSIDE,
	  { V, V, Y, Y } },
	{ "one byte before", open_rmr, REMOTE_FLAGS, VA, HERE, BEFORE, { V, V, N, N } },
	{ "one byte after", open_rmr, REMOTE_FLAGS, VA, HERE, AFTER, { V, V, N, N } },
	{ "old context", open_old_rmr, REMOTE_FLAGS, VA, HERE, INSIDE, { V, V, N, N } },
	{ "unbound", open_unbound, REMOTE_FLAGS, VA, HERE, INSIDE, { V, V, N, N } },
	{ "freed", open_freed_rmr, REMOTE_FLAGS, VA, HERE, INSIDE, { V, V, N, N } },
	{ "freed with its LMR", open_freed_with_lmr, REMOTE_FLAGS, VA, HERE, INSIDE,
	  { V, V, N, N } },
	{ "invalidated by a peer", open_invalidated_rmr, REMOTE_FLAGS, VA, HERE, INSIDE,
	  { V, V, N, N } },
	{ "of another PZ", open_rmr, REMOTE_FLAGS, VA, OTHER_PZ, INSIDE, { V, V, N, N } },
	{ "of another adapter", open_rmr, REMOTE_FLAGS, VA, OTHER_ADAPTER, INSIDE,
	  { V, V, N, N } },
	{}
};

/* LMRs of dat_lmr_allocate(). */
static const struct row fmr_rows[] = {
	{ "before dat_lmr_fmr()", open_fmr_before, ALL, VA, HERE, INSIDE, { V, V, N, N } },
	{ "registered for all", open_fmr, ALL, VA, HERE, INSIDE, { Y, Y, Y, Y } },
	{ "registered for reads", open_fmr, LREAD | RREAD, VA, HERE, INSIDE, { Y, P, Y, N } },
	{ "registered for writes", open_fmr, LOCAL_FLAGS | RWRITE, VA, HERE, INSIDE,
	  { Y, Y, S, Y } },
	{ "registered for this side", open_fmr, LOCAL_FLAGS, VA, HERE, INSIDE, { Y, Y, S, N } },
	{ "registered through another EP", open_fmr_by_other_ep, ALL, VA, HERE, INSIDE,
	  { Y, Y, Y, Y } },
	{ "one byte before", open_fmr, ALL, VA, HERE, BEFORE, { V, V, N, N } },
	{ "one byte after", open_fmr, ALL, VA, HERE, AFTER, { V, V, N, N } },
	{ "old contexts", open_old_fmr, ALL, VA, HERE, INSIDE, { V, V, N, N } },
	{ "invalidated", open_fmr_invalidated, ALL, VA, HERE, INSIDE, { V, V, N, N } },
	{ "invalidated by a peer", open_fmr_invalidated_by_peer, ALL, VA, HERE, INSIDE,
	  { V, V, N, N } },
	{ "freed", open_fmr_freed, ALL, VA, HERE, INSIDE, { V, V, N, N } },
	{ "freed after the invalidation", open_fmr_freed_later, ALL, VA, HERE, INSIDE,
	  { V, V, N, N } },
	{ "of another PZ", open_fmr, ALL, VA, OTHER_PZ, INSIDE, { V, V, N, N } },
	{ "of another adapter", open_fmr, ALL, VA, OTHER_ADAPTER, INSIDE, { V, V, N, N } },
	{}
};

static const struct row zero_based_fmr_rows[] = {
	{ "zero-based, the first byte", open_fmr, ALL, ZB, HERE, FIRST, { Y, Y, Y, Y } },
	{ "zero-based, the last byte", open_fmr, ALL, ZB, HERE, LAST, { Y, Y, Y, Y } },
	{ "zero-based, one byte before", open_fmr, ALL, ZB, HERE, BEFORE, { V, V, N, N } },
	{ "zero-based, one byte after", open_fmr, ALL, ZB, HERE, AFTER, { V, V, N, N } },
	{}
};

static const struct row zero_based_rmr_rows[] = {
	{ "bound to a zero-based LMR", open_rmr, REMOTE_FLAGS, ZB, HERE, INSIDE, { V, V, Y, Y } },
	{ "the same, one byte before", open_rmr, REMOTE_FLAGS, ZB, HERE, BEFORE, { V, V, N, N } },
	{ "the same, one byte after", open_rmr, REMOTE_FLAGS, ZB, HERE, AFTER, { V, V, N, N } },
	{}
};
#undef Y
#undef N
#undef S
#undef V
#undef P
#undef F

static int each_row(struct stage *stage, const struct row *row)
{
	for (; row->name; row++)
		TRY(ktest_where(protection_row(stage, row), "%s, %s", stage->source->name,
				row->name));
	return 0;
}

/* Makes the adapters and the connection that no violation may disturb. */
static int set_up(struct stage *stage)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	OK(dat_ia_open(ia_attr.adapter_name, 8, &evd, &stage->other_ia));
	TRY(pair_make(&stage->bystander));
	return pair_connect(&stage->bystander);
}

static int lmrs(struct stage *stage, const struct source *source)
{
	stage->is_of_lmrs = true;
	protection_describe(stage, source, false, false);
	TRY(each_row(stage, lmr_rows));
	protection_describe(stage, source, true, false);
	return each_row(stage, zero_based_rows);
}

static int rmrs(struct stage *stage, const struct source *source)
{
	protection_describe(stage, source, false, false);
	TRY(each_row(stage, rmr_rows));
	protection_describe(stage, source, true, false);
	return each_row(stage, zero_based_rmr_rows);
}

/* dat_lmr_fmr() takes whole pages of memory that is virtual, or a list of pages. */
static int fmrs(struct stage *stage, const struct source *source)
{
	const bool is_virtual = source->type == DAT_MEM_TYPE_VIRTUAL;
	const bool whole = is_virtual || source->type == DAT_MEM_TYPE_PHYSICAL;

	if (source->type == DAT_MEM_TYPE_PHYSICAL_VAR_PAGES)
		return 0;
	protection_describe(stage, source, is_virtual, whole);
	TRY(each_row(stage, fmr_rows));
	protection_describe(stage, source, true, whole);
	return each_row(stage, zero_based_fmr_rows);
}

/* Runs the tables over a source. The memory outlives the adapters. */
static int over(struct stage *stage, const struct source *source,
		int (*tables)(struct stage *stage, const struct source *source))
{
	const bool is_virtual = source->type == DAT_MEM_TYPE_VIRTUAL;
	int error;

	stage->area = is_virtual ? vmalloc(AREA) : alloc_pages_exact(AREA, GFP_KERNEL);
	EXPECT(stage->area);
	error = set_up(stage) ?: tables(stage, source);
	dat_ia_close(stage->other_ia, DAT_CLOSE_ABRUPT_FLAG);
	error = error ?: ktest_renew();
	if (error)
		dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	if (is_virtual)
		vfree(stage->area);
	else
		free_pages_exact(stage->area, AREA);
	return error;
}

static int over_each(int (*tables)(struct stage *stage, const struct source *source))
{
	const struct source *source;
	int error = 0;

	for (source = protection_sources; source->name && !error; source++) {
		struct stage *stage = kzalloc(sizeof(*stage), GFP_KERNEL);
		u8 *copies = vmalloc(AREA + CLIENT);

		if (stage && copies) {
			stage->expected = copies;
			stage->client = copies + AREA;
			error = over(stage, source, tables);
		} else {
			error = FAIL("no memory");
		}
		vfree(copies);
		kfree(stage);
	}
	return error;
}

static int protection_lmrs(void)
{
	return over_each(lmrs);
}

static int protection_rmrs(void)
{
	return over_each(rmrs);
}

static int protection_fmrs(void)
{
	return over_each(fmrs);
}

const struct ktest protection_tests[] = {
	{ "protection_lmrs", protection_lmrs },
	{ "protection_rmrs", protection_rmrs },
	{ "protection_fmrs", protection_fmrs },
	{}
};

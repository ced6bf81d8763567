// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Opens memory for the protection matrix: LMRs that a request registers. */
#include "protection.h"

#define DEFAULT		DAT_COMPLETION_DEFAULT_FLAG

static int allocate(struct stage *stage, const struct row *row, struct opened *opened)
{
	const u64 start = (u64)stage->area + stage->part[0].from;
	const u64 address = row->va_type == DAT_VA_TYPE_ZB ? 0 : start;

	OK(dat_lmr_allocate(ia, pz, AREA / PAGE_SIZE, DAT_LMR_SCOPE_PZ, &stage->lmr));
	*opened = (struct opened){ .origin = address, .address = address,
				   .length = stage->length };
	return 0;
}

/* Registers the memory through side 1 of a pair. */
static int map(struct stage *stage, const struct row *row, const struct pair *pair,
	       struct opened *opened)
{
	OK(dat_lmr_fmr(stage->lmr, stage->source->type, stage->region, stage->count,
		       row->privileges, row->va_type, pair->ep[1], cookie(4), DEFAULT,
		       &opened->local, &opened->remote));
	return next_dto(pair->dto[1], DAT_DTO_LMR_FMR, 4, 0);
}

static int unmap(struct stage *stage)
{
	OK(dat_lmr_invalidate(stage->lmr, stage->pair.ep[1], cookie(5), DEFAULT));
	return next_dto(stage->pair.dto[1], DAT_DTO_LMR_INVALIDATE, 5, 0);
}

int open_fmr_before(struct stage *stage, const struct row *row, struct opened *opened)
{
	DAT_LMR_PARAM param;

	TRY(allocate(stage, row, opened));
	OK(dat_lmr_query(stage->lmr, 0, &param));
	opened->local = param.lmr_context;
	opened->remote = param.rmr_context;
	return 0;
}

int open_fmr(struct stage *stage, const struct row *row, struct opened *opened)
{
	TRY(allocate(stage, row, opened));
	return map(stage, row, &stage->pair, opened);
}

int open_fmr_by_other_ep(struct stage *stage, const struct row *row, struct opened *opened)
{
	struct pair other = {};

	TRY(pair_make(&other));
	TRY(pair_connect(&other));
	TRY(allocate(stage, row, opened));
	return map(stage, row, &other, opened);
}

/* The contexts of the first of two registrations. */
int open_old_fmr(struct stage *stage, const struct row *row, struct opened *opened)
{
	struct opened new;

	TRY(open_fmr(stage, row, opened));
	TRY(unmap(stage));
	TRY(map(stage, row, &stage->pair, &new));
	EXPECT(new.local != opened->local && new.remote != opened->remote);
	return 0;
}

int open_fmr_invalidated(struct stage *stage, const struct row *row, struct opened *opened)
{
	TRY(open_fmr(stage, row, opened));
	return unmap(stage);
}

int open_fmr_invalidated_by_peer(struct stage *stage, const struct row *row,
				 struct opened *opened)
{
	TRY(open_fmr(stage, row, opened));
	return protection_peer_invalidates(stage, opened->remote);
}

/* The LMR is freed while the memory is registered. */
int open_fmr_freed(struct stage *stage, const struct row *row, struct opened *opened)
{
	TRY(open_fmr(stage, row, opened));
	OK(dat_lmr_free(stage->lmr));
	return 0;
}

int open_fmr_freed_later(struct stage *stage, const struct row *row, struct opened *opened)
{
	TRY(open_fmr_invalidated(stage, row, opened));
	OK(dat_lmr_free(stage->lmr));
	return 0;
}

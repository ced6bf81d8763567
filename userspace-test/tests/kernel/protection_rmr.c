// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Opens memory for the protection matrix: RMRs that are bound to a part of it. */
#include "protection.h"

#define DEFAULT		DAT_COMPLETION_DEFAULT_FLAG
#define BOUND		128

/* Binds the RMR to the part, through side 1 of a pair. A length of 0 unbinds it. */
static int bind(struct stage *stage, const struct pair *pair, DAT_MEM_PRIV_FLAGS privileges,
		DAT_LMR_TRIPLET part, DAT_RMR_CONTEXT *context)
{
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *data;
	DAT_EVENT event;

	OK(dat_rmr_bind(stage->rmr, stage->lmr, &part, privileges, DAT_VA_TYPE_VA, pair->ep[1],
			cookie(3), DEFAULT, context));
	TRY(next_event(pair->dto[1], DAT_RMR_BIND_COMPLETION_EVENT, &event));
	data = &event.event_data.rmr_completion_event_data;
	EXPECT(data->rmr_handle == stage->rmr);
	SAME(data->status, DAT_DTO_SUCCESS);
	return 0;
}

/* Makes an LMR and an RMR. Returns the part of the LMR: some bytes of both parts of the memory. */
static int make(struct stage *stage, const struct row *row, struct opened *opened,
		DAT_LMR_TRIPLET *part)
{
	const size_t offset = stage->part[1].size ? stage->part[0].size - BOUND / 2 : 300;
	struct lmr lmr;

	OK(lmr_make(stage->source->type, stage->region, stage->length, LOCAL_FLAGS, row->va_type,
		    &lmr));
	stage->lmr = lmr.handle;
	OK(dat_rmr_create(pz, &stage->rmr));
	*part = (DAT_LMR_TRIPLET){ lmr.address + offset, BOUND, lmr.local };
	*opened = (struct opened){ .origin = lmr.address, .address = part->virtual_address,
				   .length = BOUND };
	return 0;
}

static void show(struct opened *opened, DAT_RMR_CONTEXT context)
{
	opened->local = opened->remote = context;
}

int open_unbound_yet(struct stage *stage, const struct row *row, struct opened *opened)
{
	DAT_LMR_TRIPLET part;
	DAT_RMR_PARAM param;

	TRY(make(stage, row, opened, &part));
	OK(dat_rmr_query(stage->rmr, 0, &param));
	show(opened, param.rmr_context);
	return 0;
}

int open_rmr(struct stage *stage, const struct row *row, struct opened *opened)
{
	DAT_RMR_CONTEXT context;
	DAT_LMR_TRIPLET part;

	TRY(make(stage, row, opened, &part));
	TRY(bind(stage, &stage->pair, row->privileges, part, &context));
	show(opened, context);
	return 0;
}

int open_rmr_by_other_ep(struct stage *stage, const struct row *row, struct opened *opened)
{
	DAT_RMR_CONTEXT context;
	struct pair other = {};
	DAT_LMR_TRIPLET part;

	TRY(pair_make(&other));
	TRY(pair_connect(&other));
	TRY(make(stage, row, opened, &part));
	TRY(bind(stage, &other, row->privileges, part, &context));
	show(opened, context);
	return 0;
}

/* Another bind ends the context. */
int open_old_rmr(struct stage *stage, const struct row *row, struct opened *opened)
{
	DAT_RMR_CONTEXT old, new;
	DAT_LMR_TRIPLET part;

	TRY(make(stage, row, opened, &part));
	TRY(bind(stage, &stage->pair, row->privileges, part, &old));
	TRY(bind(stage, &stage->pair, row->privileges, part, &new));
	EXPECT(old != new);
	show(opened, old);
	return 0;
}

int open_unbound(struct stage *stage, const struct row *row, struct opened *opened)
{
	const DAT_LMR_TRIPLET none = {};
	DAT_RMR_CONTEXT context;

	TRY(open_rmr(stage, row, opened));
	return bind(stage, &stage->pair, 0, none, &context);
}

int open_freed_rmr(struct stage *stage, const struct row *row, struct opened *opened)
{
	TRY(open_rmr(stage, row, opened));
	OK(dat_rmr_free(stage->rmr));
	return 0;
}

int open_freed_with_lmr(struct stage *stage, const struct row *row, struct opened *opened)
{
	TRY(open_freed_rmr(stage, row, opened));
	OK(dat_lmr_free(stage->lmr));
	return 0;
}

int open_invalidated_rmr(struct stage *stage, const struct row *row, struct opened *opened)
{
	TRY(open_rmr(stage, row, opened));
	return protection_peer_invalidates(stage, opened->remote);
}

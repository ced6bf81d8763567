// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Opens memory for the protection matrix: as LMRs, in this PZ or elsewhere. */
#include "protection.h"

#define DEFAULT		DAT_COMPLETION_DEFAULT_FLAG

/* Over iWARP an LMR of kernel memory has local privileges only. */
int open_lmr(struct stage *stage, const struct row *row, struct opened *opened)
{
	DAT_MEM_PRIV_FLAGS privileges = row->privileges;
	struct lmr lmr;

	if (is_iwarp && privileges & REMOTE_FLAGS) {
		REFUSED(lmr_make(stage->source->type, stage->region, stage->length, privileges,
				 row->va_type, &lmr), DAT_MODEL_NOT_SUPPORTED, 0);
		privileges &= ~REMOTE_FLAGS;
	}
	OK(lmr_make(stage->source->type, stage->region, stage->length, privileges, row->va_type,
		    &lmr));
	SAME(lmr.size, stage->length);
	SAME(!lmr.remote, !(privileges & REMOTE_FLAGS));
	stage->lmr = lmr.handle;
	/* Without a context of peers, a peer names the other one. */
	*opened = (struct opened){ lmr.address, lmr.address, lmr.size, lmr.local,
				   lmr.remote ?: lmr.local };
	return 0;
}

/* Contexts that no memory has. */
int open_unknown(struct stage *stage, const struct row *row, struct opened *opened)
{
	TRY(open_lmr(stage, row, opened));
	opened->local ^= 0x400000;
	opened->remote ^= 0x400000;
	return 0;
}

int open_freed_lmr(struct stage *stage, const struct row *row, struct opened *opened)
{
	TRY(open_lmr(stage, row, opened));
	OK(dat_lmr_free(stage->lmr));
	return 0;
}

int protection_peer_invalidates(const struct stage *stage, DAT_RMR_CONTEXT context)
{
	const struct pair *pair = &stage->pair;
	DAT_LMR_TRIPLET none = {};
	DAT_EVENT event;

	OK(dat_ep_post_recv(pair->ep[1], 1, &none, cookie(1), DEFAULT));
	OK(dat_ep_post_send_with_invalidate(pair->ep[0], 1, &none, cookie(2), DEFAULT, DAT_TRUE,
					    context));
	TRY(next_dto(pair->dto[0], DAT_DTO_SEND, 2, 0));
	TRY(next_event(pair->dto[1], DAT_DTO_COMPLETION_EVENT, &event));
	SAME(event.event_data.dto_completion_event_data.rmr_context, context);
	return 0;
}

int open_invalidated_lmr(struct stage *stage, const struct row *row, struct opened *opened)
{
	TRY(open_lmr(stage, row, opened));
	/* Over iWARP there is no context of peers. */
	return is_iwarp ? 0 : protection_peer_invalidates(stage, opened->remote);
}

/* Opens the memory in another PZ, through a connection there. */
static int open_in_zone(struct stage *stage, const struct row *row, struct opened *opened)
{
	OK(dat_pz_create(ia, &pz));
	TRY(pair_make(&stage->pair));
	TRY(pair_connect(&stage->pair));
	return row->open(stage, row, opened);
}

int protection_open(struct stage *stage, const struct row *row, struct opened *opened)
{
	const struct pair own = stage->pair;
	const DAT_IA_HANDLE own_ia = ia;
	const DAT_PZ_HANDLE own_pz = pz;
	int error;

	if (row->place == HERE)
		return row->open(stage, row, opened);
	if (row->place == OTHER_ADAPTER)
		ia = stage->other_ia;
	stage->pair = (struct pair){};
	error = open_in_zone(stage, row, opened);
	stage->pair = own;
	pz = own_pz;
	ia = own_ia;
	return error;
}

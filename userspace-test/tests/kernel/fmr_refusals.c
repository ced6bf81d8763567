// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests what registrations refuse. */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "fmr.h"

/* Refusals for the state of the LMR or of the Endpoint. */
static int refuse_states(struct scene *scene)
{
	DAT_EP_HANDLE unconnected, stranger;
	struct pair *pair = &scene->pair;
	struct scene other = *scene;
	DAT_PZ_HANDLE other_pz;

	OK(dat_ep_create(ia, pz, pair->dto[0], pair->dto[0], pair->connection[0], NULL,
			 &unconnected));
	OK(dat_pz_create(ia, &other_pz));
	OK(dat_ep_create(ia, other_pz, pair->dto[0], pair->dto[0], pair->connection[0], NULL,
			 &stranger));
	OK(dat_lmr_allocate(ia, other_pz, PAGES, DAT_LMR_SCOPE_PZ, &other.lmr));
	REFUSED(fmr_invalidate(scene, pair->ep[1], 2), DAT_INVALID_STATE,
		DAT_INVALID_STATE_LMR_FREE);
	REFUSED(fmr(scene, unconnected, 1, DEFAULT), DAT_INVALID_STATE,
		DAT_INVALID_STATE_EP_UNCONNECTED);
	REFUSED(fmr(&other, pair->ep[1], 1, DEFAULT), DAT_PROTECTION_VIOLATION, 0);
	/* None of them has changed the LMR. */
	TRY(fmr_registered(scene));
	REFUSED(fmr(scene, pair->ep[1], 1, DEFAULT), DAT_INVALID_STATE,
		DAT_INVALID_STATE_LMR_IN_USE);
	REFUSED(fmr_invalidate(scene, unconnected, 2), DAT_INVALID_STATE,
		DAT_INVALID_STATE_EP_UNCONNECTED);
	OK(dat_lmr_free(other.lmr));
	REFUSED(fmr(&other, pair->ep[1], 1, DEFAULT), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	/* The peer's Endpoint may end the registration of this one. */
	OK(fmr_invalidate(scene, pair->ep[0], 2));
	REFUSED(fmr_invalidate(scene, pair->ep[1], 2), DAT_INVALID_STATE,
		DAT_INVALID_STATE_LMR_FREE);
	REFUSED(fmr(scene, pair->ep[1], 1, DEFAULT), DAT_INVALID_STATE,
		DAT_INVALID_STATE_LMR_IN_USE);
	REFUSED(dat_lmr_free(scene->lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	TRY(next_dto(pair->dto[0], DAT_DTO_LMR_INVALIDATE, 2, 0));
	/* While the registration is outstanding, only its own Endpoint does. */
	OK(fmr(scene, pair->ep[1], 1, DEFAULT));
	REFUSED(fmr_invalidate(scene, pair->ep[0], 2), DAT_INVALID_STATE,
		DAT_INVALID_STATE_LMR_IN_USE);
	OK(fmr_invalidate(scene, pair->ep[1], 2));
	TRY(next_dto(pair->dto[1], DAT_DTO_LMR_FMR, 1, 0));
	TRY(next_dto(pair->dto[1], DAT_DTO_LMR_INVALIDATE, 2, 0));
	OK(dat_lmr_free(scene->lmr));
	return 0;
}

static int fmr_states(void)
{
	return fmr_with_pages(refuse_states);
}

/* An Endpoint of another PZ does not end a registration. */
static int refuse_zone(struct scene *scene)
{
	DAT_PZ_HANDLE own = pz;
	struct pair other = {};

	TRY(fmr_registered(scene));
	OK(dat_pz_create(ia, &pz));
	TRY(pair_make(&other));
	TRY(pair_connect(&other));
	REFUSED(fmr_invalidate(scene, other.ep[0], 2), DAT_PROTECTION_VIOLATION, 0);
	pz = own;
	memset(scene->pages, 0, SIZE);
	TRY(fmr_peer_access(scene, (u64)scene->pages, scene->pages));
	TRY(fmr_invalidated(scene));
	return 0;
}

static int fmr_zones(void)
{
	return fmr_with_pages(refuse_zone);
}

/* Refusals of arguments. */
static int refuse_arguments(struct scene *scene)
{
	const DAT_REGION_DESCRIPTION none = {};
	DAT_REGION_DESCRIPTION region = { .for_va = scene->pages };
	DAT_EP_HANDLE ep = scene->pair.ep[1];
	DAT_LMR_HANDLE lmr = scene->lmr, plain;
	DAT_LMR_CONTEXT context;
	DAT_PADDR address;

#define FMR(lmr, type, region, count, privileges, va_type, ep, flags)			\
	dat_lmr_fmr(lmr, type, region, count, privileges, va_type, ep, cookie(1), flags, NULL, NULL)
#define VIRTUAL		DAT_MEM_TYPE_VIRTUAL
#define PHYSICAL	DAT_MEM_TYPE_PHYSICAL
	REFUSED(dat_lmr_allocate(ia, pz, 0, DAT_LMR_SCOPE_PZ, &plain), DAT_LENGTH_ERROR, 0);
	REFUSED(dat_lmr_allocate(ia, pz, U32_MAX, DAT_LMR_SCOPE_PZ, &plain), DAT_LENGTH_ERROR, 0);
	REFUSED(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_EP, &plain), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_ANY, &plain), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(dat_lmr_allocate(ia, ep, 1, DAT_LMR_SCOPE_PZ, &plain), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_PZ);
	REFUSED(dat_lmr_allocate(pz, pz, 1, DAT_LMR_SCOPE_PZ, &plain), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_IA);
	REFUSED(FMR(ep, VIRTUAL, region, 1, ALL, 0, ep, 0), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_LMR);
	REFUSED(FMR(lmr, VIRTUAL, region, 1, ALL, 0, lmr, 0), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_EP);
	REFUSED(FMR(lmr, 1, region, 1, ALL, 0, ep, 0), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(FMR(lmr, 0x80, region, 1, ALL, 0, ep, 0), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(FMR(lmr, VIRTUAL, region, 1, ALL, 2, ep, 0), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(FMR(lmr, VIRTUAL, region, 0, ALL, 0, ep, 0), DAT_LENGTH_ERROR, 0);
	REFUSED(FMR(lmr, VIRTUAL, region, PAGES + 1, ALL, 0, ep, 0), DAT_LENGTH_ERROR, 0);
	REFUSED(FMR(lmr, VIRTUAL, none, 1, ALL, 0, ep, 0), DAT_INVALID_ADDRESS,
		DAT_INVALID_ADDRESS_MALFORMED);
	region.for_va = scene->pages + 8;
	REFUSED(FMR(lmr, VIRTUAL, region, 1, ALL, 0, ep, 0), DAT_INVALID_ADDRESS,
		DAT_INVALID_ADDRESS_MALFORMED);
	region.for_va = page_address(ZERO_PAGE(0));
	REFUSED(FMR(lmr, VIRTUAL, region, 1, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 0, ep, 0),
		DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	address = U64_MAX & PAGE_MASK;
	region.for_physical = &address;
	REFUSED(FMR(lmr, PHYSICAL, region, 1, ALL, 0, ep, 0), DAT_INVALID_ADDRESS,
		DAT_INVALID_ADDRESS_MALFORMED);
	REFUSED(FMR(lmr, PHYSICAL, region, 0, ALL, 0, ep, 0), DAT_LENGTH_ERROR, 0);
	address = virt_to_phys(scene->pages) + 8;
	REFUSED(FMR(lmr, PHYSICAL, region, 1, ALL, 0, ep, 0), DAT_INVALID_ADDRESS,
		DAT_INVALID_ADDRESS_MALFORMED);
	REFUSED(dat_lmr_invalidate(ep, ep, cookie(1), 0), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_LMR);
	REFUSED(dat_lmr_invalidate(lmr, lmr, cookie(1), 0), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_EP);
	/* Another kind of LMR. */
	OK(register_memory(pair_memory, PAGE_SIZE, LOCAL, &plain, &context));
	region.for_va = scene->pages;
	REFUSED(FMR(plain, VIRTUAL, region, 1, ALL, 0, ep, 0), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_LMR);
	REFUSED(dat_lmr_invalidate(plain, ep, cookie(1), 0), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_LMR);
#undef PHYSICAL
#undef VIRTUAL
#undef FMR
	return fmr_registered(scene);
}

static int fmr_refusals(void)
{
	return fmr_with_pages(refuse_arguments);
}

const struct ktest fmr_refusal_tests[] = {
	{ "fmr_states", fmr_states },
	{ "fmr_zones", fmr_zones },
	{ "fmr_refusals", fmr_refusals },
	{}
};

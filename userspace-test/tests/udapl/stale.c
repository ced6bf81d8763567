// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests handles of freed objects, and invented handles. */
#include "consumer.h"

#include <pthread.h>

/* An invented handle. libdat2 reads the table of a handle, so it has that of a valid one. */
struct forged {
	void *table;
	char rest[256];
};

static void freed(DAT_IA_HANDLE ia)
{
	DAT_EVD_PARAM evd_param;
	DAT_EP_PARAM ep_param;
	DAT_PZ_PARAM pz_param;
	DAT_LMR_PARAM lmr_param;
	DAT_EP_HANDLE ep;
	struct side side;

	open_side(&side, ia);
	close_side(&side);
	REFUSED(DAT_INVALID_HANDLE, dat_pz_query(side.pz, DAT_PZ_FIELD_ALL, &pz_param));
	REFUSED(DAT_INVALID_HANDLE, dat_evd_query(side.evd, DAT_EVD_FIELD_ALL, &evd_param));
	REFUSED(DAT_INVALID_HANDLE, dat_ep_query(side.ep, DAT_EP_FIELD_ALL, &ep_param));
	REFUSED(DAT_INVALID_HANDLE, dat_lmr_query(side.lmr, DAT_LMR_FIELD_ALL, &lmr_param));
	REFUSED(DAT_INVALID_HANDLE, dat_pz_free(side.pz));
	REFUSED(DAT_INVALID_HANDLE, dat_evd_free(side.evd));
	REFUSED(DAT_INVALID_HANDLE, dat_ep_free(side.ep));
	REFUSED(DAT_INVALID_HANDLE, dat_lmr_free(side.lmr));
	REFUSED(DAT_INVALID_HANDLE, dat_ep_create(ia, side.pz, side.evd, side.evd, side.evd, NULL,
						  &ep));
}

static void of_another_kind(DAT_IA_HANDLE ia)
{
	DAT_EVD_PARAM param;
	struct side side;

	open_side(&side, ia);
	REFUSED(DAT_INVALID_HANDLE, dat_evd_query(side.ep, DAT_EVD_FIELD_ALL, &param));
	REFUSED(DAT_INVALID_HANDLE, dat_ep_free(side.pz));
	REFUSED(DAT_INVALID_HANDLE, dat_lmr_free(side.evd));
	close_side(&side);
}

static void never_made(DAT_IA_HANDLE ia)
{
	struct forged forged = { 0 };
	DAT_EVD_PARAM param;
	struct side side;

	open_side(&side, ia);
	forged.table = *(void **)side.pz;
	REFUSED(DAT_INVALID_HANDLE, dat_pz_free(&forged));
	REFUSED(DAT_INVALID_HANDLE, dat_ep_free(&forged));
	REFUSED(DAT_INVALID_HANDLE, dat_evd_query(&forged, DAT_EVD_FIELD_ALL, &param));
	REFUSED(DAT_INVALID_PARAMETER, dat_evd_query(side.evd, DAT_EVD_FIELD_ALL, NULL));
	REFUSED(DAT_INVALID_PARAMETER, dat_evd_dequeue(side.evd, NULL));
	close_side(&side);
}

/* A thread that creates objects until their adapter is closed. */
static struct {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE last[8];
	unsigned count;
} creator;

static void *create(void *unused)
{
	DAT_PZ_HANDLE pz;

	while (dat_pz_create(creator.ia, &pz) == DAT_SUCCESS)
		creator.last[creator.count++ % 8] = pz;
	return unused;
}

/* The close also invalidates handles that another thread creates meanwhile. */
static void closed_meanwhile(const char *name)
{
	DAT_PZ_PARAM param;
	pthread_t thread;

	for (int i = 0; i < 40; i++) {
		creator.ia = open_ia(name, DAT_TRUE);
		creator.count = 0;
		CHECK(pthread_create(&thread, NULL, create, NULL) == 0);
		while (!*(volatile unsigned *)&creator.count)
			;
		OK(dat_ia_close(creator.ia, DAT_CLOSE_ABRUPT_FLAG));
		CHECK(pthread_join(thread, NULL) == 0);
		for (unsigned j = 0; j < 8 && j < creator.count; j++)
			REFUSED(DAT_INVALID_HANDLE,
				dat_pz_query(creator.last[j], DAT_PZ_FIELD_ALL, &param));
	}
}

void case_stale(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	struct side side;

	freed(ia);
	of_another_kind(ia);
	never_made(ia);
	/* The close frees all remaining objects, and invalidates their handles. */
	open_side(&side, ia);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	REFUSED(DAT_INVALID_HANDLE, dat_pz_free(side.pz));
	REFUSED(DAT_INVALID_HANDLE, dat_ep_free(side.ep));
	REFUSED(DAT_INVALID_HANDLE, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	closed_meanwhile(place->name);
}

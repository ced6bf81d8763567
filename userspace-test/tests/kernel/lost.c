// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests memory over which the driver fails to destroy regions. */
#include <linux/gfp.h>

#include "fmr.h"

/* Runs with a driver that destroys no region. */
static int lmr_free_lost(void)
{
	/* Never freed: the device may access it at any time. */
	void *page = (void *)__get_free_page(GFP_KERNEL);
	const DAT_REGION_DESCRIPTION region = { .for_va = page };
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_LMR_HANDLE lmr;

	EXPECT(page);
	OK(dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, PAGE_SIZE, pz, ALL, DAT_VA_TYPE_VA,
			   DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, &local, &remote, NULL, NULL));
	REFUSED(dat_lmr_free(lmr), DAT_INTERNAL_ERROR, 0);
	REFUSED(dat_lmr_free(lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	OK(dat_lmr_allocate(ia, pz, PAGES, DAT_LMR_SCOPE_PZ, &lmr));
	REFUSED(dat_lmr_free(lmr), DAT_INTERNAL_ERROR, 0);
	/* Without remote privileges there is no region. */
	OK(dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, PAGE_SIZE, pz, LOCAL, DAT_VA_TYPE_VA,
			   DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, &local, &remote, NULL, NULL));
	OK(dat_lmr_free(lmr));
	return 0;
}

const struct ktest lost_tests[] = {
	{ "lmr_free_lost", lmr_free_lost },
	{}
};

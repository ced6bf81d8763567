// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Frees an Endpoint with a receive while it connects to a program in user space. The program says
 * that it has the request by stage 2.
 */
#include "ktest.h"

static int free_amid_connect(void)
{
	struct pair pair = {};
	DAT_LMR_TRIPLET place;

	TRY(pair_make(&pair));
	place = pair_place(&pair, 0, 4);
	OK(dat_ep_post_recv(pair.ep[0], 1, &place, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_connect(pair.ep[0], ia_attr.ia_address_ptr, ktest_port, DAT_TIMEOUT_INFINITE, 0,
			  NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	WRITE_ONCE(ktest_stage, 1);
	UNTIL(READ_ONCE(ktest_stage) == 2);
	WRITE_ONCE(ktest_stage, 3);
	OK(dat_ep_free(pair.ep[0]));
	WRITE_ONCE(ktest_stage, 4);
	return 0;
}

const struct ktest connecting_tests[] = {
	{ "free_amid_connect", free_amid_connect },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Memory that a peer uses, for several tests. */
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <rdma/kdat_ib_extensions.h>

#include "ktest.h"
#include "remote.h"

u8 *remote_memory;

int remote_with_memory(int (*run)(void))
{
	int error;

	remote_memory = vmalloc(PAGES * PAGE_SIZE);
	EXPECT(remote_memory);
	memset(remote_memory, UNTOUCHED, PAGES * PAGE_SIZE);
	error = run();
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	vfree(remote_memory);
	return error;
}

int remote_not_over_iwarp(void)
{
	struct lmr lmr;

	REFUSED(lmr_make_virtual(pair_memory, 64, LOCAL_FLAGS | DAT_MEM_PRIV_REMOTE_READ_FLAG,
				 &lmr),
		DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(lmr_make_virtual(pair_memory, 64, LOCAL_FLAGS | DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
				 &lmr),
		DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(lmr_make_virtual(pair_memory, 64, LOCAL_FLAGS | DAT_IB_MEM_PRIV_REMOTE_ATOMIC,
				 &lmr),
		DAT_MODEL_NOT_SUPPORTED, 0);
	OK(lmr_make_virtual(pair_memory, 64, LOCAL_FLAGS, &lmr));
	SAME(lmr.remote, 0);
	return 0;
}

int remote_show(DAT_MEM_PRIV_FLAGS privileges, struct lmr *lmr, DAT_RMR_TRIPLET *remote)
{
	OK(lmr_make_virtual(remote_memory + BEFORE, LENGTH, privileges, lmr));
	EXPECT(lmr->remote);
	SAME(lmr->size, LENGTH);
	SAME(lmr->address, (u64)remote_memory + BEFORE);
	*remote = (DAT_RMR_TRIPLET){ lmr->address, LENGTH, lmr->remote };
	return 0;
}

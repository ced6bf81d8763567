// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Protection Zones, and registration of memory. */
#include "examples.h"

/* --- */
void example_memory(char *adapter)
{
	DAT_IA_HANDLE ia = open_ia(adapter, DAT_TRUE);
	static char memory[10000];
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_LMR_TRIPLET segment = { .virtual_address = (DAT_VADDR)(uintptr_t)memory };
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_LMR_PARAM param;
	DAT_PZ_PARAM zone;
	DAT_LMR_HANDLE lmr;
	DAT_VADDR address;
	DAT_PZ_HANDLE pz;
	DAT_VLEN size;

	OK(dat_pz_create(ia, &pz));
	OK(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &zone));
	CHECK(zone.ia_handle == ia);

	OK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), pz,
			  DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG,
			  DAT_VA_TYPE_VA, &lmr, &lmr_context, &rmr_context, &size, &address));
	OK(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	CHECK(param.length == sizeof(memory) && param.lmr_context == lmr_context &&
	      param.pz_handle == pz);
	REFUSED(DAT_INVALID_STATE, dat_pz_free(pz));

	/* Some machines need these before and after RDMA operations of the peer. */
	segment.segment_length = sizeof(memory);
	segment.lmr_context = lmr_context;
	OK(dat_lmr_sync_rdma_read(ia, &segment, 1));
	OK(dat_lmr_sync_rdma_write(ia, &segment, 1));

	OK(dat_lmr_free(lmr));
	OK(dat_pz_free(pz));
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Operations of the InfiniBand extensions, if the device has them. */
#include "examples.h"

#include <dat2/dat_ib_extensions.h>
#include <stdio.h>
#include <string.h>

/* --- */
void example_atomic(char *adapter)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	struct side client, server;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT lmr_context;
	DAT_PROVIDER_ATTR provider;
	DAT_RMR_TRIPLET counter;
	DAT_LMR_TRIPLET before;
	DAT_LMR_HANDLE lmr;
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR attr;
	DAT_VADDR address;
	DAT_VLEN size;

	/* Query an adapter without a look at its events. */
	OK(dat_ib_open_query(adapter, &ia, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL,
			     &provider));
	OK(dat_ib_close_query(ia));
	if (attr.extension_supported != DAT_EXTENSION_IB) {
		printf("%s has no atomic operations\n", attr.adapter_name);
		return;
	}
	ia = open_ia(adapter, DAT_TRUE);
	open_side(&client, ia);
	open_side(&server, ia);
	region.for_va = server.memory;
	OK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, 8, server.pz,
			  (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG |
					       DAT_IB_MEM_PRIV_REMOTE_ATOMIC),
			  DAT_VA_TYPE_VA, &lmr, &lmr_context, &counter.rmr_context, &size,
			  &address));
	connect_sides(&client, &server);

	/* Add 3 to a counter of the peer, and replace it by 10 if it is 45. */
	*(DAT_UINT64 *)server.memory = 42;
	counter.virtual_address = (DAT_VADDR)(uintptr_t)server.memory;
	counter.segment_length = 8;
	before = (DAT_LMR_TRIPLET) { (DAT_VADDR)(uintptr_t)client.memory, 8, client.lmr_context };
	OK(dat_ib_post_fetch_and_add(client.ep, 3, &before, cookie, &counter,
				     DAT_COMPLETION_DEFAULT_FLAG));
	expect(client.evd, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
	CHECK(*(DAT_UINT64 *)client.memory == 42 && *(DAT_UINT64 *)server.memory == 45);
	OK(dat_ib_post_cmp_and_swap(client.ep, 45, 10, &before, cookie, &counter,
				    DAT_COMPLETION_DEFAULT_FLAG));
	expect(client.evd, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
	CHECK(*(DAT_UINT64 *)client.memory == 45 && *(DAT_UINT64 *)server.memory == 10);

	/* The macros call this function. */
	CHECK(DAT_GET_TYPE(dat_extension_op(client.ep, 0x7777)) == DAT_NOT_IMPLEMENTED);

	disconnect_sides(&client, &server);
	OK(dat_lmr_free(lmr));
	close_side(&client);
	close_side(&server);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

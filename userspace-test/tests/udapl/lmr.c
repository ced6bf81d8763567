// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests LMRs of other types of memory than virtual addresses, by writes of the peer. */
#define _GNU_SOURCE /* for memfd_create() */
#include "consumer.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static DAT_RETURN create_lmr(struct side *side, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			     DAT_VLEN size, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE *lmr,
			     DAT_RMR_CONTEXT *context)
{
	DAT_LMR_CONTEXT local;
	DAT_VADDR address;
	DAT_VLEN length;

	return dat_lmr_create(side->ia, type, region, size, side->pz, privileges, DAT_VA_TYPE_VA,
			      lmr, &local, context, &length, &address);
}

/* Writes 64 bytes of the client's memory to the server. */
static void write_to(struct side *client, DAT_VADDR address, DAT_RMR_CONTEXT context, char byte)
{
	DAT_LMR_TRIPLET local = { (uintptr_t)client->memory, 64, client->lmr_context };
	DAT_RMR_TRIPLET remote = { address, 64, context };
	DAT_DTO_COOKIE user = { .as_64 = 16 };

	memset(client->memory, byte, 64);
	OK(dat_ep_post_rdma_write(client->ep, 1, &local, user, &remote,
				  DAT_COMPLETION_DEFAULT_FLAG));
	completed(client, DAT_DTO_RDMA_WRITE, 16, 64);
}

/* An LMR of another LMR has the same memory, and lives on without the other. */
static void lmr_of_lmr(struct side *client, struct side *server)
{
	DAT_REGION_DESCRIPTION region = { .for_va = server->memory + 2048 };
	DAT_RMR_CONTEXT context;
	DAT_LMR_HANDLE first, second;
	DAT_LMR_PARAM param;

	OK(create_lmr(server, DAT_MEM_TYPE_VIRTUAL, region, 4096, DAT_MEM_PRIV_LOCAL_READ_FLAG,
		      &first, &context));
	region.for_lmr_handle = first;
	REFUSED(DAT_LENGTH_ERROR, create_lmr(server, DAT_MEM_TYPE_LMR, region, 4097,
					     DAT_MEM_PRIV_ALL_FLAG, &second, &context));
	region.for_lmr_handle = server->ep;
	REFUSED(DAT_INVALID_HANDLE, create_lmr(server, DAT_MEM_TYPE_LMR, region, 64,
					       DAT_MEM_PRIV_ALL_FLAG, &second, &context));
	region.for_lmr_handle = first;
	OK(create_lmr(server, DAT_MEM_TYPE_LMR, region, 4096, DAT_MEM_PRIV_ALL_FLAG, &second,
		      &context));
	OK(dat_lmr_query(second, DAT_LMR_FIELD_ALL, &param));
	CHECK(param.mem_type == DAT_MEM_TYPE_LMR && param.region_desc.for_lmr_handle == first);
	CHECK(param.length == 4096 && param.mem_priv == DAT_MEM_PRIV_ALL_FLAG);
	OK(dat_lmr_free(first));
	write_to(client, (uintptr_t)server->memory + 2048, context, 'l');
	CHECK(server->memory[2048] == 'l' && server->memory[2048 + 63] == 'l');
	OK(dat_lmr_free(second));
}

/* Shared memory is registered at this process's address. All its mappings have the same bytes. */
static void shared_memory(struct side *client, struct side *server)
{
	int fd = memfd_create("shared", 0);
	DAT_REGION_DESCRIPTION region;
	DAT_RMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_PARAM param;
	char *here, *there;

	CHECK(fd >= 0 && !ftruncate(fd, 8192));
	here = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	there = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(here != MAP_FAILED && there != MAP_FAILED && here != there);
	memset(&region, 0, sizeof(region));
	region.for_shared_memory.virtual_address = here;
	OK(create_lmr(server, DAT_MEM_TYPE_SHARED_VIRTUAL, region, 8192, DAT_MEM_PRIV_ALL_FLAG,
		      &lmr, &context));
	OK(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	CHECK(param.mem_type == DAT_MEM_TYPE_SHARED_VIRTUAL);
	CHECK(param.region_desc.for_shared_memory.virtual_address == here && param.length == 8192);
	write_to(client, (uintptr_t)here + 4090, context, 's');
	CHECK(there[4089] == 0 && there[4090] == 's' && there[4090 + 63] == 's' &&
	      there[4090 + 64] == 0);
	OK(dat_lmr_free(lmr));
	munmap(here, 8192);
	munmap(there, 8192);
	close(fd);
}

/* The peer addresses a zero-based LMR from 0 on. */
static void zero_based(struct side *client, struct side *server)
{
	char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT context;
	DAT_LMR_PARAM param;
	DAT_LMR_HANDLE lmr;
	DAT_VADDR address;
	DAT_VLEN length;

	CHECK(memory != MAP_FAILED);
	OK(dat_lmr_create(server->ia, DAT_MEM_TYPE_VIRTUAL, region, 8192, server->pz,
			  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, &lmr, &lmr_context, &context,
			  &length, &address));
	CHECK(address == 0 && length == 8192);
	OK(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	CHECK(param.va_type == DAT_VA_TYPE_ZB && param.region_desc.for_va == memory);
	CHECK(param.registered_address == 0 && param.registered_size == 8192);
	write_to(client, 4090, context, 'z');
	CHECK(memory[4089] == 0 && memory[4090] == 'z' && memory[4090 + 63] == 'z' &&
	      memory[4090 + 64] == 0);
	OK(dat_lmr_free(lmr));
	region.for_va = memory + 1;
	REFUSED(DAT_INVALID_ADDRESS, dat_lmr_create(server->ia, DAT_MEM_TYPE_VIRTUAL, region, 64,
						    server->pz, DAT_MEM_PRIV_ALL_FLAG,
						    DAT_VA_TYPE_ZB, &lmr, &lmr_context, &context,
						    &length, &address));
	munmap(memory, 8192);
}

void use_lmrs(struct side *client, struct side *server)
{
	zero_based(client, server);
	lmr_of_lmr(client, server);
	shared_memory(client, server);
}

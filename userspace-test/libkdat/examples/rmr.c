// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Memory that a peer may use for a while. */
#include "examples.h"

#include <string.h>

/* --- */
/* Binds an RMR to the first bytes of a side's memory. Returns the context for the peer. */
static DAT_RMR_CONTEXT open_window(struct side *side, DAT_RMR_HANDLE rmr,
				   DAT_MEM_PRIV_FLAGS privileges)
{
	DAT_LMR_TRIPLET part = { (DAT_VADDR)(uintptr_t)side->memory, 16, side->lmr_context };
	DAT_RMR_COOKIE cookie = { .as_64 = 1 };
	DAT_RMR_CONTEXT context;
	DAT_EVENT event;

	OK(dat_rmr_bind(rmr, side->lmr, &part, privileges, DAT_VA_TYPE_VA, side->ep, cookie,
			DAT_COMPLETION_DEFAULT_FLAG, &context));
	event = expect(side->evd, DAT_RMR_BIND_COMPLETION_EVENT);
	CHECK(event.event_data.rmr_completion_event_data.status == DAT_RMR_BIND_SUCCESS);
	return context;
}

void example_rmr(char *adapter)
{
	DAT_IA_HANDLE ia = open_ia(adapter, DAT_TRUE);
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_RMR_HANDLE window, target, none;
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_RMR_TRIPLET local, remote;
	struct side client, server;
	DAT_RMR_PARAM param;
	DAT_EVENT event;

	open_side(&client, ia);
	open_side(&server, ia);
	connect_sides(&client, &server);
	OK(dat_rmr_create(server.pz, &window));
	OK(dat_rmr_create(client.pz, &target));
	/* The scope of one Endpoint is not supported: use a PZ for it. */
	REFUSED(DAT_MODEL_NOT_SUPPORTED, dat_rmr_create_for_ep(server.pz, &none));

	/* The client reads from the server's RMR into its own. */
	strcpy(server.memory, "sixteen bytes..");
	remote.virtual_address = (DAT_VADDR)(uintptr_t)server.memory;
	remote.segment_length = 16;
	remote.rmr_context = open_window(&server, window, DAT_MEM_PRIV_REMOTE_READ_FLAG);
	local.virtual_address = (DAT_VADDR)(uintptr_t)client.memory;
	local.segment_length = 16;
	local.rmr_context = open_window(&client, target, DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	OK(dat_ep_post_rdma_read_to_rmr(client.ep, &local, cookie, &remote,
					DAT_COMPLETION_DEFAULT_FLAG));
	event = expect(client.evd, DAT_DTO_COMPLETION_EVENT);
	CHECK(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
	CHECK(!strcmp(client.memory, "sixteen bytes.."));
	OK(dat_rmr_query(window, DAT_RMR_FIELD_ALL, &param));
	CHECK(param.rmr_context == remote.rmr_context && param.rmr_scope == DAT_RMR_SCOPE_PZ);

	/* It says that it is done, and takes its right to read away with the same message. */
	OK(dat_ep_post_recv(server.ep, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_post_send_with_invalidate(client.ep, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG,
					    DAT_TRUE, remote.rmr_context));
	expect(client.evd, DAT_DTO_COMPLETION_EVENT);
	event = expect(server.evd, DAT_DTO_COMPLETION_EVENT);
	dto = &event.event_data.dto_completion_event_data;
	CHECK(dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE &&
	      dto->rmr_context == remote.rmr_context);

	OK(dat_rmr_free(window));
	OK(dat_rmr_free(target));
	disconnect_sides(&client, &server);
	close_side(&client);
	close_side(&server);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

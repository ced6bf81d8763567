// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Messages, and RDMA writes and reads. */
#include "examples.h"

#include <string.h>

/* --- */
/* Takes the completion of a DTO, which must have succeeded. Returns the number of bytes. */
static DAT_SEG_LENGTH complete(DAT_EVD_HANDLE evd, DAT_UINT64 cookie)
{
	DAT_EVENT event = expect(evd, DAT_DTO_COMPLETION_EVENT);
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	CHECK(dto->status == DAT_DTO_SUCCESS && dto->user_cookie.as_64 == cookie);
	return dto->transfered_length;
}

void example_transfer(char *adapter)
{
	DAT_IA_HANDLE ia = open_ia(adapter, DAT_TRUE);
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	struct side client, server;
	DAT_LMR_TRIPLET local;
	DAT_RMR_TRIPLET remote;

	/* Two Endpoints, with memory that both sides may read and write. */
	open_side(&client, ia);
	open_side(&server, ia);
	connect_sides(&client, &server);

	/* Post a receive before the peer sends. */
	local = (DAT_LMR_TRIPLET) { (DAT_VADDR)(uintptr_t)server.memory, 64, server.lmr_context };
	OK(dat_ep_post_recv(server.ep, 1, &local, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	strcpy(client.memory, "a message");
	local = (DAT_LMR_TRIPLET) { (DAT_VADDR)(uintptr_t)client.memory, 10, client.lmr_context };
	OK(dat_ep_post_send(client.ep, 1, &local, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	complete(client.evd, 1);
	CHECK(complete(server.evd, 1) == 10 && !strcmp(server.memory, "a message"));

	/* Write to the peer's memory and read it back. Programs exchange address and context. */
	remote = (DAT_RMR_TRIPLET) { (DAT_VADDR)(uintptr_t)server.memory + 100, 10,
				     server.rmr_context };
	OK(dat_ep_post_rdma_write(client.ep, 1, &local, cookie, &remote,
				  DAT_COMPLETION_DEFAULT_FLAG));
	complete(client.evd, 1);
	CHECK(!strcmp(server.memory + 100, "a message"));
	local.virtual_address += 200;
	OK(dat_ep_post_rdma_read(client.ep, 1, &local, cookie, &remote,
				 DAT_COMPLETION_DEFAULT_FLAG));
	complete(client.evd, 1);
	CHECK(!strcmp(client.memory + 200, "a message"));

	disconnect_sides(&client, &server);
	close_side(&client);
	close_side(&server);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Receives that several Endpoints share. */
#include "examples.h"

#include <string.h>

/* --- */
void example_srq(char *adapter)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 16, .max_recv_iov = 1,
			      .low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_IA_HANDLE ia = open_ia(adapter, DAT_TRUE);
	DAT_DTO_COMPLETION_EVENT_DATA *receive;
	DAT_DTO_COOKIE cookie = { .as_64 = 7 };
	DAT_LMR_TRIPLET buffer;
	struct side client, server;
	DAT_SRQ_PARAM param;
	DAT_SRQ_HANDLE srq;
	DAT_EVENT event;

	open_side(&client, ia);
	open_side(&server, ia);
	OK(dat_srq_create(ia, server.pz, &attr, &srq));
	OK(dat_srq_resize(srq, 8));
	OK(dat_srq_set_lw(srq, 0));
	OK(dat_ep_free(server.ep));
	OK(dat_ep_create_with_srq(ia, server.pz, server.evd, server.evd, server.evd, srq, NULL,
				  &server.ep));

	buffer = (DAT_LMR_TRIPLET) { (DAT_VADDR)(uintptr_t)server.memory, 64, server.lmr_context };
	OK(dat_srq_post_recv(srq, 1, &buffer, cookie));
	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	CHECK(param.max_recv_dtos == 8 && param.available_dto_count == 1);

	connect_sides(&client, &server);
	strcpy(client.memory, "for anyone");
	buffer = (DAT_LMR_TRIPLET) { (DAT_VADDR)(uintptr_t)client.memory, 11, client.lmr_context };
	OK(dat_ep_post_send(client.ep, 1, &buffer, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	expect(client.evd, DAT_DTO_COMPLETION_EVENT);
	event = expect(server.evd, DAT_DTO_COMPLETION_EVENT);
	receive = &event.event_data.dto_completion_event_data;
	CHECK(receive->ep_handle == server.ep && receive->user_cookie.as_64 == 7);
	CHECK(!strcmp(server.memory, "for anyone"));

	disconnect_sides(&client, &server);
	close_side(&client);
	OK(dat_ep_free(server.ep));
	OK(dat_srq_free(srq));
	OK(dat_ep_create(ia, server.pz, server.evd, server.evd, server.evd, NULL, &server.ep));
	close_side(&server);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

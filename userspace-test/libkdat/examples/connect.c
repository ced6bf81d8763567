// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connections from request to end. Both sides are in one program. */
#include "examples.h"

#include <string.h>

/* --- */
/* Answers the next request: accepts it with the server's Endpoint, or rejects it. */
static void answer(struct side *server, int accept)
{
	DAT_EVENT event = expect(server->cr_evd, DAT_CONNECTION_REQUEST_EVENT);
	DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;
	DAT_CR_PARAM request;

	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
	CHECK(request.private_data_size >= 5 && !memcmp(request.private_data, "hello", 5));
	if (accept)
		OK(dat_cr_accept(cr, server->ep, 7, "welcome"));
	else
		OK(dat_cr_reject(cr, 2, "no"));
}

void example_connect(char *adapter)
{
	DAT_IA_HANDLE ia = open_ia(adapter, DAT_TRUE);
	struct side client, server, third, fourth;
	DAT_CONN_QUAL qualifier, any;
	DAT_PSP_HANDLE psp, other;
	DAT_PSP_PARAM param;
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	open_side(&client, ia);
	open_side(&server, ia);
	qualifier = 0x123456789;
	OK(dat_psp_create(ia, qualifier, server.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_psp_create_any(ia, &any, server.cr_evd, DAT_PSP_CONSUMER_FLAG, &other));
	OK(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	CHECK(param.conn_qual == qualifier && param.evd_handle == server.cr_evd);

	/* A connect that the peer rejects. */
	OK(dat_ep_connect(client.ep, attr.ia_address_ptr, any, PATIENCE, 5, "hello", DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	answer(&server, 0);
	event = expect(client.evd, DAT_CONNECTION_EVENT_PEER_REJECTED);
	CHECK(!memcmp(event.event_data.connect_event_data.private_data, "no", 2));
	OK(dat_ep_reset(client.ep));

	/* One that it accepts. */
	OK(dat_ep_connect(client.ep, attr.ia_address_ptr, qualifier, PATIENCE, 5, "hello", DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	answer(&server, 1);
	event = expect(client.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	CHECK(!memcmp(event.event_data.connect_event_data.private_data, "welcome", 7));
	expect(server.evd, DAT_CONNECTION_EVENT_ESTABLISHED);

	/* Another one to the same peer. */
	open_side(&third, ia);
	open_side(&fourth, ia);
	OK(dat_ep_dup_connect(third.ep, client.ep, PATIENCE, 5, "hello", DAT_QOS_BEST_EFFORT));
	event = expect(server.cr_evd, DAT_CONNECTION_REQUEST_EVENT);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, fourth.ep, 0, NULL));
	expect(third.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(fourth.evd, DAT_CONNECTION_EVENT_ESTABLISHED);

	OK(dat_psp_free(psp));
	OK(dat_psp_free(other));
	OK(dat_ep_disconnect(client.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect(client.evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect(server.evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	disconnect_sides(&third, &fourth);
	close_side(&client);
	close_side(&server);
	close_side(&third);
	close_side(&fourth);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

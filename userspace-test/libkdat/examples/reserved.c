// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* A service point for one Endpoint, and a request that is passed on to it. */
#include "examples.h"

/* --- */
void example_reserved(char *adapter)
{
	DAT_IA_HANDLE ia = open_ia(adapter, DAT_TRUE);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	struct side client, server;
	DAT_CONN_QUAL qualifier;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_RSP_PARAM param;
	DAT_EVENT event;

	open_side(&client, ia);
	open_side(&server, ia);
	OK(dat_rsp_create(ia, 0x20000, server.ep, server.cr_evd, &rsp));
	OK(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	CHECK(param.conn_qual == 0x20000 && param.ep_handle == server.ep);

	/* The client calls another service point, which passes the request on. */
	OK(dat_psp_create_any(ia, &qualifier, server.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	arrival = call_side(&client, &server, qualifier, 0, NULL);
	OK(dat_cr_handoff(arrival.cr_handle, 0x20000));
	event = expect(server.cr_evd, DAT_CONNECTION_REQUEST_EVENT);
	arrival = event.event_data.cr_arrival_event_data;
	CHECK(arrival.sp_handle.rsp_handle == rsp && arrival.conn_qual == 0x20000);

	/* The reserved Endpoint is the only one that the request can be accepted with. */
	OK(dat_cr_accept(arrival.cr_handle, DAT_HANDLE_NULL, 0, NULL));
	expect(client.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(server.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	OK(dat_rsp_free(rsp));
	OK(dat_psp_free(psp));
	disconnect_sides(&client, &server);
	close_side(&client);
	close_side(&server);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

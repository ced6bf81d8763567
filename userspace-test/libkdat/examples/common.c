// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* A Common Service Point: a connection to an address and port. */
#include "examples.h"

#include <sys/socket.h>

/* --- */
void example_common(char *adapter)
{
	DAT_COMM stream = { .type = SOCK_STREAM }, datagrams = { .type = SOCK_DGRAM };
	DAT_IA_HANDLE ia = open_ia(adapter, DAT_TRUE);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	struct side client, server;
	DAT_CSP_PARAM param;
	DAT_CSP_HANDLE csp;
	DAT_EVENT event;

	open_side(&client, ia);
	open_side(&server, ia);
	REFUSED(DAT_COMM_NOT_SUPPORTED, dat_csp_create(ia, &datagrams, NULL, server.cr_evd, &csp));
	OK(dat_csp_create(ia, &stream, NULL, server.cr_evd, &csp));
	OK(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	CHECK(param.ia_handle == ia && param.evd_handle == server.cr_evd &&
	      param.comm->type == SOCK_STREAM);

	OK(dat_ep_common_connect(client.ep, param.address_ptr, PATIENCE, 5, "hello"));
	event = expect(server.cr_evd, DAT_CONNECTION_REQUEST_EVENT);
	arrival = event.event_data.cr_arrival_event_data;
	CHECK(arrival.sp_handle.csp_handle == csp);
	OK(dat_cr_accept(arrival.cr_handle, server.ep, 0, NULL));
	expect(client.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(server.evd, DAT_CONNECTION_EVENT_ESTABLISHED);

	OK(dat_csp_free(csp));
	disconnect_sides(&client, &server);
	close_side(&client);
	close_side(&server);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Calls that libdat2 does not export: a program reaches them by the provider's table of functions.
 */
#include "consumer.h"

#include <dat2/dat_registry.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Returns the provider's own handle of an adapter. libdat2 exports it, and no header declares it.
 */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE ia, DAT_IA_HANDLE *own);

static int readable(int fd, int timeout_ms)
{
	struct pollfd file = { .fd = fd, .events = POLLIN };

	return poll(&file, 1, timeout_ms) == 1 && file.revents == POLLIN;
}

static void triggers(DAT_IA_HANDLE own)
{
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;
	DAT_FD fd;

	OK(DAT_CNO_FD_CREATE(own, &fd, &cno));
	CHECK(!readable(fd, 0));
	evd = cno;
	OK(DAT_CNO_TRIGGER(cno, &evd));
	CHECK(evd == DAT_HANDLE_NULL);
	CHECK(readable(fd, PATIENCE / 1000));
	evd = cno;
	OK(dat_cno_wait(cno, 0, &evd));
	CHECK(evd == DAT_HANDLE_NULL);
	CHECK(!readable(fd, 0));
	OK(dat_cno_free(cno));
	REFUSED(DAT_INVALID_HANDLE, DAT_CNO_TRIGGER(cno, &evd));
	CHECK(!close(fd));
}

static void common(DAT_IA_HANDLE ia, DAT_IA_HANDLE own)
{
	DAT_COMM stream = { .type = SOCK_STREAM }, datagrams = { .type = SOCK_DGRAM };
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	struct side client, server;
	DAT_CSP_PARAM param;
	DAT_CSP_HANDLE csp;
	DAT_EVENT event;

	open_side(&client, ia);
	open_side(&server, ia);
	REFUSED(DAT_COMM_NOT_SUPPORTED, DAT_CSP_CREATE(own, &datagrams, NULL, server.cr_evd, &csp));
	OK(DAT_CSP_CREATE(own, &stream, NULL, server.cr_evd, &csp));
	OK(DAT_CSP_QUERY(csp, DAT_CSP_FIELD_ALL, &param));
	CHECK(param.ia_handle == ia && param.evd_handle == server.cr_evd &&
	      param.comm->type == SOCK_STREAM);
	OK(DAT_EP_COMMON_CONNECT(client.ep, param.address_ptr, PATIENCE, 5, "hello"));
	event = expect(server.cr_evd, DAT_CONNECTION_REQUEST_EVENT);
	arrival = event.event_data.cr_arrival_event_data;
	CHECK(arrival.sp_handle.csp_handle == csp);
	OK(dat_cr_accept(arrival.cr_handle, server.ep, 0, NULL));
	expect(client.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(server.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	OK(DAT_CSP_FREE(csp));
	disconnect_sides(&client, &server);
	close_side(&client);
	close_side(&server);
}

void case_table(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE), own;

	OK(dats_get_ia_handle(ia, &own));
	triggers(own);
	common(ia, own);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

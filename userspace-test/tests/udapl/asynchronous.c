// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests asynchronous events: each is reported once, and names its object. */
#include "consumer.h"

/* Time in which no further event may arrive, in microseconds. */
#define QUIET 50000
/* The shortest queue has room for eight events. */
#define ROOM 8

static DAT_EVD_HANDLE async_evd(DAT_IA_HANDLE ia)
{
	DAT_EVD_HANDLE evd;
	DAT_IA_ATTR attr;

	OK(dat_ia_query(ia, &evd, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	return evd;
}

static void quiet(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	REFUSED(DAT_TIMEOUT_EXPIRED, dat_evd_wait(evd, QUIET, 1, &event, &more));
}

/* Takes the only event of the asynchronous EVD. */
static void reported(DAT_IA_HANDLE ia, DAT_EVENT_NUMBER number, DAT_HANDLE object)
{
	DAT_EVENT event = expect(async_evd(ia), number);

	CHECK(event.event_data.asynch_error_event_data.dat_handle == object);
	/* The number says all there is to say: the other reasons are watermarks. */
	CHECK(event.event_data.asynch_error_event_data.reason == 0);
	quiet(async_evd(ia));
}

/* Returns a connection qualifier that nobody listens for. */
static DAT_CONN_QUAL nobody(struct side *side)
{
	DAT_CONN_QUAL qualifier;
	DAT_PSP_HANDLE psp;

	OK(dat_psp_create_any(side->ia, &qualifier, side->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_psp_free(psp));
	return qualifier;
}

/* One Endpoint more is refused than their connect EVD has room for. */
static void overflow(DAT_IA_HANDLE ia)
{
	DAT_EP_HANDLE eps[ROOM + 1];
	DAT_EVD_HANDLE evd;
	DAT_CONN_QUAL qualifier;
	struct side side;
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	open_side(&side, ia);
	qualifier = nobody(&side);
	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	OK(dat_evd_create(ia, 1, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &evd));
	for (int i = 0; i <= ROOM; i++) {
		OK(dat_ep_create(ia, side.pz, side.evd, side.evd, evd, NULL, &eps[i]));
		OK(dat_ep_connect(eps[i], attr.ia_address_ptr, qualifier, PATIENCE, 0, NULL,
				  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	}
	reported(ia, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd);
	for (int i = 0; i < ROOM; i++)
		expect(evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	CHECK(dat_evd_dequeue(evd, &event) == DAT_QUEUE_EMPTY);
	for (int i = 0; i <= ROOM; i++)
		OK(dat_ep_free(eps[i]));
	OK(dat_evd_free(evd));
	close_side(&side);
}

/* A message too long for its receive breaks the connection of an Endpoint without a connect EVD. */
static void broken(DAT_IA_HANDLE ia)
{
	DAT_EP_PARAM param = { 0 };
	DAT_CONN_QUAL qualifier;
	struct side client, server;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	DAT_BOOLEAN idle;
	DAT_EP_STATE state;

	open_side(&client, ia);
	open_side(&server, ia);
	OK(dat_ep_modify(client.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	OK(dat_psp_create_any(ia, &qualifier, server.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	post(&server, 1, 0, 64, 1);
	OK(dat_cr_accept(call_side(&client, &server, qualifier, 0, NULL).cr_handle, server.ep, 0,
			 NULL));
	expect(server.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	do
		OK(dat_ep_get_status(client.ep, &state, &idle, &idle));
	while (state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	post(&client, 0, 0, 128, 2);
	reported(ia, DAT_ASYNC_ERROR_EP_BROKEN, client.ep);
	event = expect(client.evd, DAT_DTO_COMPLETION_EVENT);
	CHECK(event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS);
	quiet(client.evd);
	OK(dat_psp_free(psp));
	close_side(&client);
	close_side(&server);
}

void case_asynchronous(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);

	overflow(ia);
	broken(ia);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* The test reports failures of the latest queue pair while this program waits. */
void case_failure(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	struct side other, side;
	DAT_BOOLEAN idle;
	DAT_EP_STATE state;

	open_side(&other, ia);
	open_side(&side, ia);
	await_signal();
	reported(ia, DAT_ASYNC_ERROR_EP_BROKEN, side.ep);
	OK(dat_ep_get_status(side.ep, &state, &idle, &idle));
	CHECK(state == DAT_EP_STATE_DISCONNECTED);
	quiet(side.evd);
	close_side(&other);
	close_side(&side);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* Takes the end of a connection whose device was removed, which flushes one receive. */
static void lost(struct side *side)
{
	DAT_EVENT event = expect(side->evd, DAT_DTO_COMPLETION_EVENT);
	DAT_COUNT more;

	CHECK(event.event_data.dto_completion_event_data.ep_handle == side->ep);
	CHECK(event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED);
	event = next(side->evd);
	/* The peer is on the same device, and may be removed a little earlier. */
	CHECK(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
	      event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
	CHECK(event.event_data.connect_event_data.ep_handle == side->ep);
	/* No other event can arrive any more. */
	REFUSED(DAT_ABORT, dat_evd_wait(side->evd, PATIENCE, 1, &event, &more));
}

/* The test removes the device while this program waits. */
void case_removal(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	DAT_IA_HANDLE idle = open_ia(place->name, DAT_FALSE);
	struct side client, server;
	DAT_PZ_HANDLE pz;

	open_side(&client, ia);
	open_side(&server, ia);
	connect_sides(&client, &server);
	post(&client, 1, 0, 64, 1);
	post(&server, 1, 0, 64, 2);
	await_signal();
	/* Each adapter reports the removal. */
	reported(ia, DAT_ASYNC_ERROR_IA_CATASTROPHIC, ia);
	reported(idle, DAT_ASYNC_ERROR_IA_CATASTROPHIC, idle);
	lost(&client);
	lost(&server);
	REFUSED(DAT_INSUFFICIENT_RESOURCES, dat_pz_create(ia, &pz));
	close_side(&client);
	close_side(&server);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_ia_close(idle, DAT_CLOSE_GRACEFUL_FLAG));
}

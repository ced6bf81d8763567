// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Makes each connect of connect_refusals.h, which every interface refuses with the same code. */
#include "consumer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../connect_tables.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Checks that a return code is that of a row. */
#define REFUSED_AS(call, row) do {						\
	DAT_RETURN code_ = (call);						\
	if (code_ != (DAT_CLASS_ERROR | (row)->type << 16 | (row)->subtype))	\
		fail(__FILE__, __LINE__, #call, code_);				\
} while (0)

static DAT_IA_ADDRESS_PTR own_address(DAT_IA_HANDLE ia)
{
	DAT_IA_ATTR attr;

	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	return attr.ia_address_ptr;
}

/* Connects by a call whose other arguments are right. */
static DAT_RETURN connect_to(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR to)
{
	return dat_ep_connect(ep, to, 20000, PATIENCE, 0, NULL, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
}

static void stays_in(DAT_EP_HANDLE ep, DAT_EP_STATE expected)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	OK(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
	if (state != expected)
		fail(__FILE__, (int)state, "the state is another one", expected);
}

/* Reads an IPv4 or IPv6 address. */
static struct sockaddr_storage read_address(const char *text)
{
	struct sockaddr_storage address = { .ss_family = strchr(text, ':') ? AF_INET6 : AF_INET };
	void *to = address.ss_family == AF_INET ?
		(void *)&((struct sockaddr_in *)&address)->sin_addr :
		(void *)&((struct sockaddr_in6 *)&address)->sin6_addr;

	CHECK(inet_pton(address.ss_family, text, to) == 1);
	return address;
}

/* Returns the address of a row, which is neither RIGHT nor NONE. */
static struct sockaddr_storage address_of(enum address word, int is_v4)
{
	if (word == UNKNOWN)
		return (struct sockaddr_storage) { .ss_family = AF_UNIX };
	if (word == OTHER)
		return (struct sockaddr_storage) { .ss_family = is_v4 ? AF_INET6 : AF_INET };
	return read_address(is_v4 ? addresses[word].v4 : addresses[word].v6);
}

static void refused_arguments(struct side *side)
{
	DAT_IA_ADDRESS_PTR right = own_address(side->ia);
	struct sockaddr_storage address;
	static char data[600];

	for (size_t i = 0; i < COUNT(refusals); i++) {
		const struct refusal *row = &refusals[i];
		DAT_IA_ADDRESS_PTR to = row->address == RIGHT ? right :
			row->address == NONE ? NULL : (DAT_IA_ADDRESS_PTR)&address;

		if (to == (DAT_IA_ADDRESS_PTR)&address)
			address = address_of(row->address, right->sa_family == AF_INET);
		printf("row %zu\n", i);
		REFUSED_AS(dat_ep_connect(side->ep, to, row->conn_qual, row->timeout, row->size,
					  data, row->qos, row->flags), row);
		stays_in(side->ep, DAT_EP_STATE_UNCONNECTED);
	}
}

static void refused_handles(struct side *side)
{
	/* libdat2 reads the table of a handle. */
	struct {
		void *table;
		char rest[256];
	} invented = { .table = *(void **)side->ep };
	DAT_CONN_QUAL qualifier;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE freed;

	OK(dat_ep_create(side->ia, side->pz, side->evd, side->evd, side->evd, NULL, &freed));
	OK(dat_ep_free(freed));
	OK(dat_psp_create_any(side->ia, &qualifier, side->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	for (size_t i = 0; i < COUNT(handles); i++) {
		const char *kind = handles[i].name;
		DAT_HANDLE handle = !strcmp(kind, "NONE") ? DAT_HANDLE_NULL :
			!strcmp(kind, "FREED") ? freed : !strcmp(kind, "PZ") ? side->pz :
			!strcmp(kind, "EVD") ? side->evd : !strcmp(kind, "LMR") ? side->lmr :
			!strcmp(kind, "PSP") ? psp : (DAT_HANDLE)&invented;

		printf("handle %s\n", kind);
		REFUSED_AS(connect_to(handle, own_address(side->ia)), &handles[i]);
	}
	OK(dat_psp_free(psp));
}

void case_refusals(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	struct side client, server;

	open_side(&client, ia);
	open_side(&server, ia);
	refused_arguments(&client);
	refused_handles(&client);
	connect_sides(&client, &server);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* The side whose Endpoint is in question, and its peer. */
struct scene {
	struct side own, peer;
	DAT_EP_HANDLE ep;
};

/* Lets the peer connect, and takes its request. */
static DAT_CR_HANDLE take_request(struct scene *scene, DAT_CONN_QUAL qualifier)
{
	return call_side(&scene->peer, &scene->own, qualifier, 0, NULL).cr_handle;
}

/* Reserves an Endpoint of this zone, and lets the peer connect to it. */
static void reserve(struct scene *scene, DAT_PZ_HANDLE zone, int has_request)
{
	struct side *own = &scene->own;
	DAT_CONN_QUAL qualifier;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;

	OK(dat_ep_create(own->ia, zone, own->evd, own->evd, own->evd, NULL, &scene->ep));
	OK(dat_psp_create_any(own->ia, &qualifier, own->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_psp_free(psp));
	OK(dat_rsp_create(own->ia, qualifier, scene->ep, own->cr_evd, &rsp));
	if (has_request)
		take_request(scene, qualifier);
}

/* Takes the Endpoint that comes with a request. */
static void provide(struct scene *scene, int is_complete)
{
	struct side *own = &scene->own;
	DAT_EP_PARAM param = {
		.pz_handle = own->pz,
		.recv_evd_handle = own->evd,
		.request_evd_handle = own->evd,
		.connect_evd_handle = own->evd,
	};
	DAT_CONN_QUAL qualifier;
	DAT_PSP_HANDLE psp;
	DAT_CR_PARAM request;

	OK(dat_psp_create_any(own->ia, &qualifier, own->cr_evd, DAT_PSP_PROVIDER_FLAG, &psp));
	OK(dat_cr_query(take_request(scene, qualifier), DAT_CR_FIELD_ALL, &request));
	scene->ep = request.local_ep_handle;
	if (is_complete)
		OK(dat_ep_modify(scene->ep,
				 DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
				 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
				 &param));
}

/* Connects. The peer does not answer unless it @accepts. */
static void call(struct scene *scene, DAT_CONNECT_FLAGS flags, int accepts)
{
	struct side *peer = &scene->peer;
	DAT_CONN_QUAL qualifier;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	OK(dat_psp_create_any(peer->ia, &qualifier, peer->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(scene->ep, own_address(peer->ia), qualifier, PATIENCE, 0, NULL,
			  DAT_QOS_BEST_EFFORT, flags));
	event = expect(peer->cr_evd, DAT_CONNECTION_REQUEST_EVENT);
	if (!accepts)
		return;
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, peer->ep, 0, NULL));
	expect(scene->own.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Disconnects while flushed receives wait for room in a full EVD. */
static void flush(struct scene *scene)
{
	DAT_EP_PARAM param = { 0 };

	OK(dat_evd_create(scene->own.ia, 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG,
			  &param.recv_evd_handle));
	OK(dat_ep_modify(scene->ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param));
	for (int i = 0; i < 4; i++)
		post(&scene->own, 1, 0, 64, i);
	connect_sides(&scene->own, &scene->peer);
	OK(dat_ep_disconnect(scene->ep, DAT_CLOSE_ABRUPT_FLAG));
}

static void end(struct scene *scene)
{
	connect_sides(&scene->own, &scene->peer);
	OK(dat_ep_disconnect(scene->ep, DAT_CLOSE_ABRUPT_FLAG));
	expect(scene->own.evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* Brings an Endpoint to a state. */
static void reach(struct scene *scene, DAT_EP_STATE state)
{
	struct side *own = &scene->own;

	scene->ep = own->ep;
	switch (state) {
	case DAT_EP_STATE_UNCONFIGURED_UNCONNECTED:
		OK(dat_ep_create(own->ia, DAT_HANDLE_NULL, own->evd, own->evd, own->evd, NULL,
				 &scene->ep));
		return;
	case DAT_EP_STATE_RESERVED:
		return reserve(scene, own->pz, 0);
	case DAT_EP_STATE_UNCONFIGURED_RESERVED:
		return reserve(scene, DAT_HANDLE_NULL, 0);
	case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
		return reserve(scene, own->pz, 1);
	case DAT_EP_STATE_UNCONFIGURED_PASSIVE:
		return reserve(scene, DAT_HANDLE_NULL, 1);
	case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
		return provide(scene, 1);
	case DAT_EP_STATE_UNCONFIGURED_TENTATIVE:
		return provide(scene, 0);
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		return call(scene, DAT_CONNECT_DEFAULT_FLAG, 0);
	case DAT_EP_STATE_CONNECTED:
		return call(scene, DAT_CONNECT_DEFAULT_FLAG, 1);
	case DAT_EP_STATE_CONNECTED_SINGLE_PATH:
		return call(scene, DAT_CONNECT_MULTIPATH_REQUESTED_FLAG, 1);
	case DAT_EP_STATE_DISCONNECT_PENDING:
		return flush(scene);
	case DAT_EP_STATE_DISCONNECTED:
		return end(scene);
	default:
		fail(__FILE__, __LINE__, "no way leads to this state", state);
	}
}

static void refused_in(DAT_IA_HANDLE ia, DAT_EP_HANDLE ep, const struct state *row)
{
	printf("state %d\n", (int)row->state);
	stays_in(ep, row->state);
	REFUSED_AS(connect_to(ep, own_address(ia)), row);
	stays_in(ep, row->state);
}

void case_states(struct place *place)
{
	for (size_t i = 0; i < COUNT(states); i++) {
		DAT_IA_HANDLE ia;
		struct scene scene;

		/* A case of its own. */
		if (states[i].state == DAT_EP_STATE_COMPLETION_PENDING)
			continue;
		ia = open_ia(place->name, DAT_FALSE);
		open_side(&scene.own, ia);
		open_side(&scene.peer, ia);
		reach(&scene, states[i].state);
		refused_in(ia, scene.ep, &states[i]);
		OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
		free(scene.own.memory);
		free(scene.peer.memory);
	}
}

/* Accepts a program that does not confirm. It connects when the service point exists. */
void case_accepting(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	DAT_CONN_QUAL qualifier;
	struct side side;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	size_t i = 0;

	while (states[i].state != DAT_EP_STATE_COMPLETION_PENDING)
		CHECK(++i < COUNT(states));
	open_side(&side, ia);
	OK(dat_psp_create_any(ia, &qualifier, side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	printf("listening at %u.\n", (unsigned)qualifier);
	event = expect(side.cr_evd, DAT_CONNECTION_REQUEST_EVENT);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, side.ep, 0, NULL));
	refused_in(ia, side.ep, &states[i]);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* The test removes the way to the peer while this program waits. */
void case_route(struct place *place)
{
	const char *way = place->more[0], *peer = place->more[1];
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	struct sockaddr_storage address = read_address(peer);
	struct side side;
	size_t i = 0;

	while (strcmp(routes[i].name, way))
		CHECK(++i < COUNT(routes));
	open_side(&side, ia);
	await_signal();
	REFUSED_AS(connect_to(side.ep, (DAT_IA_ADDRESS_PTR)&address), &routes[i]);
	stays_in(side.ep, DAT_EP_STATE_UNCONNECTED);
	close_side(&side);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

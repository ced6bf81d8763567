// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Makes each connect of connect_refusals.h, which every interface refuses with the same code. */
#include <linux/inet.h>
#include <linux/moduleparam.h>
#include <linux/socket.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "ktest.h"
#include "../connect_tables.h"

static char *way;
module_param(way, charp, 0444);
MODULE_PARM_DESC(way, "row of connect_refusals.h that connect_route tries");

static char *peer;
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "address that connect_route connects to");

/* Index 0 is the Endpoint in question, index 1 its peer. */
struct scene {
	struct pair pair;
	DAT_EP_HANDLE ep;
	DAT_CR_HANDLE request;
};

/* Checks that a return code is that of a row. */
#define REFUSED_AS(call, row) REFUSED(call, (row)->type << 16, (row)->subtype)

/* Connects by a call whose other arguments are right. */
static DAT_RETURN connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR to, DAT_CONN_QUAL conn_qual)
{
	return dat_ep_connect(ep, to, conn_qual, PATIENCE_US, 0, NULL, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
}

static int stays_in(DAT_EP_HANDLE ep, DAT_EP_STATE expected)
{
	DAT_EP_STATE state;

	OK(dat_ep_get_status(ep, &state, NULL, NULL));
	SAME(state, expected);
	return 0;
}

/* Writes the address of a row, which is neither RIGHT nor NONE. */
static int write_address(enum address word, struct sockaddr_storage *address)
{
	const bool is_v4 = ia_attr.ia_address_ptr->sa_family == AF_INET;

	memset(address, 0, sizeof(*address));
	if (word == UNKNOWN)
		address->ss_family = AF_UNIX;
	else if (word == OTHER)
		address->ss_family = is_v4 ? AF_INET6 : AF_INET;
	else
		EXPECT(!inet_pton_with_scope(&init_net, AF_UNSPEC, is_v4 ? addresses[word].v4 :
					     addresses[word].v6, NULL, address));
	return 0;
}

static int connect_arguments(const struct pair *pair)
{
	static const u8 data[600];
	struct sockaddr_storage address;
	const struct refusal *row;

	for (row = refusals; row < refusals + ARRAY_SIZE(refusals); row++) {
		DAT_IA_ADDRESS_PTR to = row->address == RIGHT ? ia_attr.ia_address_ptr :
			row->address == NONE ? NULL : (struct sockaddr *)&address;
		DAT_RETURN ret;

		if (to == (struct sockaddr *)&address)
			TRY(write_address(row->address, &address));
		ret = dat_ep_connect(pair->ep[0], to, row->conn_qual, row->timeout, row->size, data,
				     row->qos, row->flags);
		if (ret != (DAT_CLASS_ERROR | row->type << 16 | row->subtype))
			return FAIL("row %zd: %08x", row - refusals, ret);
		TRY(stays_in(pair->ep[0], DAT_EP_STATE_UNCONNECTED));
	}
	return 0;
}

/* Returns a handle that names no Endpoint. */
static int wrong_handle(const struct pair *pair, const char *kind, DAT_HANDLE *handle)
{
	DAT_CONN_QUAL conn_qual;
	DAT_LMR_CONTEXT context;

	if (!strcmp(kind, "NONE"))
		*handle = DAT_HANDLE_NULL;
	else if (!strcmp(kind, "PZ"))
		*handle = pz;
	else if (!strcmp(kind, "EVD"))
		*handle = pair->dto[0];
	else if (!strcmp(kind, "INVENTED"))
		*handle = (DAT_HANDLE)~0ul;
	else if (!strcmp(kind, "LMR"))
		OK(register_memory(pair->memory, 64, LOCAL_FLAGS, handle, &context));
	else if (!strcmp(kind, "PSP"))
		OK(dat_psp_create_any(ia, &conn_qual, pair->connection[1], DAT_PSP_CONSUMER_FLAG,
				      handle));
	else if (!strcmp(kind, "FREED")) {
		OK(dat_ep_create(ia, pz, pair->dto[0], pair->dto[0], pair->connection[0], NULL,
				 handle));
		OK(dat_ep_free(*handle));
	} else {
		return FAIL("%s: no handle of this kind", kind);
	}
	return 0;
}

static int connect_refusals(void)
{
	struct pair pair = {};
	DAT_HANDLE handle;
	unsigned int i;

	TRY(pair_make(&pair));
	TRY(connect_arguments(&pair));
	for (i = 0; i < ARRAY_SIZE(handles); i++) {
		TRY(wrong_handle(&pair, handles[i].name, &handle));
		REFUSED_AS(connect(handle, ia_attr.ia_address_ptr, 20000), &handles[i]);
	}
	return pair_connect(&pair);
}

/* Lets the peer connect, and takes its request. */
static int take_request(struct scene *scene, DAT_CONN_QUAL conn_qual)
{
	DAT_EVENT event;

	OK(connect(scene->pair.ep[1], ia_attr.ia_address_ptr, conn_qual));
	TRY(next_event(scene->pair.connection[0], DAT_CONNECTION_REQUEST_EVENT, &event));
	scene->request = event.event_data.cr_arrival_event_data.cr_handle;
	return 0;
}

/* Reserves an Endpoint of this zone, and lets the peer connect to it. */
static int reserve(struct scene *scene, DAT_PZ_HANDLE zone, bool has_request)
{
	const struct pair *pair = &scene->pair;
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;

	OK(dat_ep_create(ia, zone, pair->dto[0], pair->dto[0], pair->connection[0], NULL,
			 &scene->ep));
	OK(dat_psp_create_any(ia, &conn_qual, pair->connection[0], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_psp_free(psp));
	OK(dat_rsp_create(ia, conn_qual, scene->ep, pair->connection[0], &rsp));
	return has_request ? take_request(scene, conn_qual) : 0;
}

/* Takes the Endpoint that comes with a request. */
static int provide(struct scene *scene, bool is_complete)
{
	DAT_EP_PARAM param = {
		.pz_handle = pz,
		.recv_evd_handle = scene->pair.dto[0],
		.request_evd_handle = scene->pair.dto[0],
		.connect_evd_handle = scene->pair.connection[0],
	};
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;
	DAT_CR_PARAM cr;

	OK(dat_psp_create_any(ia, &conn_qual, scene->pair.connection[0], DAT_PSP_PROVIDER_FLAG,
			      &psp));
	TRY(take_request(scene, conn_qual));
	OK(dat_cr_query(scene->request, 0, &cr));
	scene->ep = cr.local_ep_handle;
	if (is_complete)
		OK(dat_ep_modify(scene->ep,
				 DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
				 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
				 &param));
	return 0;
}

/* Connects with a request for several paths. The peer does not answer unless it @accepts. */
static int call(struct scene *scene, DAT_CONNECT_FLAGS flags, bool accepts)
{
	const struct pair *pair = &scene->pair;
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	OK(dat_psp_create_any(ia, &conn_qual, pair->connection[1], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(scene->ep, ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, flags));
	TRY(next_event(pair->connection[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	if (!accepts)
		return 0;
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair->ep[1], 0, NULL));
	return next_event(pair->connection[0], DAT_CONNECTION_EVENT_ESTABLISHED, &event);
}

/* Disconnects while flushed receives wait for room in a full EVD. */
static int flush(struct scene *scene)
{
	const DAT_LMR_TRIPLET place = pair_place(&scene->pair, 0, 64);
	DAT_EP_PARAM param = {};
	unsigned int i;

	OK(dat_evd_kcreate(ia, 1, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
			   &param.recv_evd_handle));
	OK(dat_ep_modify(scene->ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param));
	for (i = 0; i < 4; i++)
		OK(dat_ep_post_recv(scene->ep, 1, &place, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
	TRY(pair_connect(&scene->pair));
	OK(dat_ep_disconnect(scene->ep, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}

static int end(struct scene *scene)
{
	DAT_EVENT event;

	TRY(pair_connect(&scene->pair));
	OK(dat_ep_disconnect(scene->ep, DAT_CLOSE_ABRUPT_FLAG));
	return next_event(scene->pair.connection[0], DAT_CONNECTION_EVENT_DISCONNECTED, &event);
}

/* Brings an Endpoint to a state. */
static int reach(struct scene *scene, DAT_EP_STATE state)
{
	TRY(pair_make(&scene->pair));
	scene->ep = scene->pair.ep[0];
	switch (state) {
	case DAT_EP_STATE_UNCONFIGURED_UNCONNECTED:
		OK(dat_ep_create(ia, DAT_HANDLE_NULL, scene->pair.dto[0], scene->pair.dto[0],
				 scene->pair.connection[0], NULL, &scene->ep));
		return 0;
	case DAT_EP_STATE_RESERVED:
		return reserve(scene, pz, false);
	case DAT_EP_STATE_UNCONFIGURED_RESERVED:
		return reserve(scene, DAT_HANDLE_NULL, false);
	case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
		return reserve(scene, pz, true);
	case DAT_EP_STATE_UNCONFIGURED_PASSIVE:
		return reserve(scene, DAT_HANDLE_NULL, true);
	case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
		return provide(scene, true);
	case DAT_EP_STATE_UNCONFIGURED_TENTATIVE:
		return provide(scene, false);
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		return call(scene, DAT_CONNECT_DEFAULT_FLAG, false);
	case DAT_EP_STATE_CONNECTED:
		return call(scene, DAT_CONNECT_DEFAULT_FLAG, true);
	case DAT_EP_STATE_CONNECTED_SINGLE_PATH:
		return call(scene, DAT_CONNECT_MULTIPATH_REQUESTED_FLAG, true);
	case DAT_EP_STATE_DISCONNECT_PENDING:
		return flush(scene);
	case DAT_EP_STATE_DISCONNECTED:
		return end(scene);
	default:
		return FAIL("no way leads to state %u", state);
	}
}

static int refused_in(DAT_EP_HANDLE ep, const struct state *row)
{
	TRY(stays_in(ep, row->state));
	REFUSED_AS(connect(ep, ia_attr.ia_address_ptr, 20000), row);
	return stays_in(ep, row->state);
}

static int connect_states(void)
{
	const struct state *row;

	for (row = states; row < states + ARRAY_SIZE(states); row++) {
		struct scene scene = {};

		/* In a test of its own. */
		if (row->state == DAT_EP_STATE_COMPLETION_PENDING)
			continue;
		TRY(reach(&scene, row->state));
		TRY(refused_in(scene.ep, row));
		TRY(ktest_renew());
	}
	return 0;
}

/* Accepts a program in user space that does not confirm. It connects at stage 1. */
static int connect_while_accepting(void)
{
	struct pair pair = {};
	const struct state *row;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	for (row = states; row->state != DAT_EP_STATE_COMPLETION_PENDING; row++)
		EXPECT(row + 1 < states + ARRAY_SIZE(states));
	TRY(pair_make(&pair));
	OK(dat_psp_create(ia, ktest_port, pair.connection[0], DAT_PSP_CONSUMER_FLAG, &psp));
	WRITE_ONCE(ktest_stage, 1);
	TRY(next_event(pair.connection[0], DAT_CONNECTION_REQUEST_EVENT, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair.ep[0], 0, NULL));
	return refused_in(pair.ep[0], row);
}

/* A program in user space removes the way to the peer at stage 1, and says so by stage 2. */
static int connect_route(void)
{
	struct sockaddr_storage address;
	struct pair pair = {};
	unsigned int i;

	for (i = 0; strcmp(routes[i].name, way); i++)
		EXPECT(i + 1 < ARRAY_SIZE(routes));
	EXPECT(!inet_pton_with_scope(&init_net, AF_UNSPEC, peer, NULL, &address));
	TRY(pair_make(&pair));
	WRITE_ONCE(ktest_stage, 1);
	UNTIL(READ_ONCE(ktest_stage) == 2);
	REFUSED_AS(connect(pair.ep[0], (struct sockaddr *)&address, 20000), &routes[i]);
	return stays_in(pair.ep[0], DAT_EP_STATE_UNCONNECTED);
}

const struct ktest refusal_tests[] = {
	{ "connect_refusals", connect_refusals },
	{ "connect_states", connect_states },
	{ "connect_while_accepting", connect_while_accepting },
	{ "connect_route", connect_route },
	{}
};

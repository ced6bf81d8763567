// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests both sides of a connection: every DTO, handoff of requests, and duplicate connections. */
#include "consumer.h"

#include <dat2/dat_registry.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void ended(struct side *side, DAT_DTO_COMPLETION_STATUS status, DAT_DTOS operation,
		  DAT_UINT64 cookie, unsigned length)
{
	DAT_EVENT event = expect(side->evd, DAT_DTO_COMPLETION_EVENT);
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	CHECK(dto->ep_handle == side->ep && dto->status == status);
	CHECK(dto->operation == operation && dto->user_cookie.as_64 == cookie &&
	      dto->transfered_length == length);
}

void completed(struct side *side, DAT_DTOS operation, DAT_UINT64 cookie, unsigned length)
{
	ended(side, DAT_DTO_SUCCESS, operation, cookie, length);
}

/* Posts on a disconnected Endpoint, which flushes the DTOs at once, in their order. */
static void marked(struct side *side)
{
	post(side, 1, 0, 64, 21);
	post(side, 0, 64, 10, 22);
	post(side, 1, 0, 64, 23);
	ended(side, DAT_DTO_ERR_FLUSHED, DAT_DTO_RECEIVE, 21, 0);
	ended(side, DAT_DTO_ERR_FLUSHED, DAT_DTO_SEND, 22, 0);
	ended(side, DAT_DTO_ERR_FLUSHED, DAT_DTO_RECEIVE, 23, 0);
}

static DAT_EP_STATE state_of(struct side *side, DAT_BOOLEAN *request_idle)
{
	DAT_BOOLEAN recv_idle;
	DAT_EP_STATE state;

	OK(dat_ep_get_status(side->ep, &state, &recv_idle, request_idle));
	return state;
}

/* An Endpoint whose EVDs are DAT_HANDLE_NULL works without events. */
static void silent(DAT_IA_HANDLE ia)
{
	DAT_EP_PARAM param = { 0 };
	struct side client, server;
	DAT_CONN_QUAL qualifier;
	DAT_BOOLEAN idle;
	DAT_PSP_HANDLE psp;

	open_side(&client, ia);
	open_side(&server, ia);
	OK(dat_ep_modify(client.ep, DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				    DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	OK(dat_ep_query(client.ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.ep_state == DAT_EP_STATE_UNCONNECTED && param.pz_handle == client.pz);
	CHECK(param.recv_evd_handle == DAT_HANDLE_NULL &&
	      param.request_evd_handle == DAT_HANDLE_NULL);
	CHECK(param.connect_evd_handle == DAT_HANDLE_NULL);
	OK(dat_psp_create_any(ia, &qualifier, server.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_cr_accept(call_side(&client, &server, qualifier, 0, NULL).cr_handle, server.ep, 0,
			 NULL));
	expect(server.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	while (state_of(&client, &idle) != DAT_EP_STATE_CONNECTED)
		usleep(1000);
	for (DAT_COUNT i = 0; i < 3 * param.ep_attr.max_request_dtos; i++) {
		post(&server, 1, 0, 64, i);
		post(&client, 0, 64, 10, i);
		completed(&server, DAT_DTO_RECEIVE, i, 10);
		while (state_of(&client, &idle) == DAT_EP_STATE_CONNECTED && !idle)
			usleep(1000);
	}
	OK(dat_ep_disconnect(client.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect(server.evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	while (state_of(&client, &idle) != DAT_EP_STATE_DISCONNECTED)
		usleep(1000);
	OK(dat_psp_free(psp));
	close_side(&client);
	close_side(&server);
}

static void rdma(struct side *side, struct side *peer, int write, DAT_UINT64 cookie)
{
	DAT_LMR_TRIPLET local = { (uintptr_t)side->memory + 4096, 1000, side->lmr_context };
	DAT_RMR_TRIPLET remote = { (uintptr_t)peer->memory + 4096, 1000, peer->rmr_context };
	DAT_DTO_COOKIE user = { .as_64 = cookie };

	if (write)
		OK(dat_ep_post_rdma_write(side->ep, 1, &local, user, &remote,
					  DAT_COMPLETION_DEFAULT_FLAG));
	else
		OK(dat_ep_post_rdma_read(side->ep, 1, &local, user, &remote,
					 DAT_COMPLETION_DEFAULT_FLAG));
}

/* Reads the server's memory into a part of the client's that an RMR is bound to. */
static void read_to_rmr(struct side *client, struct side *server)
{
	DAT_LMR_TRIPLET part = { (uintptr_t)client->memory + 5000, 100, client->lmr_context };
	DAT_RMR_TRIPLET local = { (uintptr_t)client->memory + 5000, 100, 0 };
	DAT_RMR_TRIPLET remote = { (uintptr_t)server->memory + 4096, 100, server->rmr_context };
	DAT_DTO_COOKIE user = { .as_64 = 15 };
	DAT_RMR_HANDLE rmr;

	OK(dat_rmr_create(client->pz, &rmr));
	REFUSED(DAT_PROTECTION_VIOLATION,
		DAT_EP_POST_RDMA_READ_TO_RMR(client->ep, &local, user, &remote,
					     DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_rmr_bind(rmr, client->lmr, &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
			client->ep, user, DAT_COMPLETION_SUPPRESS_FLAG, &local.rmr_context));
	memset(client->memory + 5000, 0, 100);
	OK(DAT_EP_POST_RDMA_READ_TO_RMR(client->ep, &local, user, &remote,
					DAT_COMPLETION_DEFAULT_FLAG));
	completed(client, DAT_DTO_RDMA_READ, 15, 100);
	for (int i = 0; i < 100; i++)
		CHECK(client->memory[5000 + i] == 'w');
	OK(dat_rmr_free(rmr));
}

static void transfer(struct side *client, struct side *server)
{
	post(server, 1, 0, 64, 11);
	strcpy(client->memory + 64, "a message");
	post(client, 0, 64, 10, 12);
	completed(client, DAT_DTO_SEND, 12, 10);
	completed(server, DAT_DTO_RECEIVE, 11, 10);
	CHECK(!strcmp(server->memory, "a message"));

	memset(client->memory + 4096, 'w', 1000);
	rdma(client, server, 1, 13);
	completed(client, DAT_DTO_RDMA_WRITE, 13, 1000);
	memset(client->memory + 4096, 0, 1000);
	rdma(client, server, 0, 14);
	completed(client, DAT_DTO_RDMA_READ, 14, 1000);
	for (int i = 0; i < 1000; i++)
		CHECK(client->memory[4096 + i] == 'w');
	read_to_rmr(client, server);
	use_lmrs(client, server);
}

static void addresses(struct side *side)
{
	DAT_EP_PARAM param, other;

	OK(dat_ep_query(side->ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.ep_state == DAT_EP_STATE_CONNECTED);
	CHECK(param.local_ia_address_ptr->sa_family == AF_INET &&
	      param.remote_ia_address_ptr->sa_family == AF_INET);
	CHECK(param.local_port_qual && param.remote_port_qual);
	/* A query of other fields leaves the addresses that an earlier one has returned. */
	OK(dat_ep_query(side->ep, DAT_EP_FIELD_EP_STATE, &other));
	CHECK(param.local_ia_address_ptr->sa_family == AF_INET &&
	      param.remote_ia_address_ptr->sa_family == AF_INET);
}

/* Hands a request over to a second service point, which accepts it. */
static void give_on(struct side *client, struct side *server)
{
	DAT_CONN_QUAL from, to;
	DAT_PSP_HANDLE first, second;
	DAT_CR_HANDLE request;
	DAT_EVENT event;

	OK(dat_psp_create_any(server->ia, &from, server->cr_evd, DAT_PSP_CONSUMER_FLAG, &first));
	OK(dat_psp_create_any(server->ia, &to, server->cr_evd, DAT_PSP_CONSUMER_FLAG, &second));
	request = call_side(client, server, from, 0, NULL).cr_handle;
	OK(dat_cr_handoff(request, to));
	REFUSED(DAT_INVALID_HANDLE, dat_cr_reject(request, 0, NULL));
	event = expect(server->cr_evd, DAT_CONNECTION_REQUEST_EVENT);
	CHECK(event.event_data.cr_arrival_event_data.sp_handle.psp_handle == second);
	CHECK(event.event_data.cr_arrival_event_data.conn_qual == to);
	OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 2, "no"));
	event = expect(client->evd, DAT_CONNECTION_EVENT_PEER_REJECTED);
	CHECK(!memcmp(event.event_data.connect_event_data.private_data, "no", 2));
	OK(dat_ep_reset(client->ep));
	OK(dat_psp_free(first));
	OK(dat_psp_free(second));
}

/* Accepts a request with an Endpoint that the provider created. */
static void provided(struct side *client, struct side *server)
{
	DAT_CONN_QUAL qualifier;
	DAT_CR_PARAM request;
	DAT_EP_PARAM param = { 0 };
	DAT_CR_HANDLE cr;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE own;
	DAT_EVENT event;

	OK(dat_psp_create_any(server->ia, &qualifier, server->cr_evd, DAT_PSP_PROVIDER_FLAG, &psp));
	cr = call_side(client, server, qualifier, 0, NULL).cr_handle;
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
	CHECK(request.local_ep_handle != DAT_HANDLE_NULL);
	param.pz_handle = server->pz;
	param.recv_evd_handle = param.request_evd_handle = param.connect_evd_handle = server->evd;
	OK(dat_ep_modify(request.local_ep_handle,
			 DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			 &param));
	OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	own = server->ep;
	server->ep = request.local_ep_handle;
	event = expect(server->evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	CHECK(event.event_data.connect_event_data.ep_handle == server->ep);
	expect(client->evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	transfer(client, server);
	disconnect_sides(client, server);
	OK(dat_ep_free(server->ep));
	server->ep = own;
	OK(dat_ep_reset(client->ep));
	OK(dat_psp_free(psp));
}

/* Reserves an Endpoint for a qualifier of more than 16 bits. */
static void reserved(struct side *client, struct side *server)
{
	const DAT_CONN_QUAL qualifier = 0xaffab1e;
	DAT_RSP_PARAM param;
	DAT_RSP_HANDLE rsp;
	DAT_CR_ARRIVAL_EVENT_DATA arrival;

	OK(dat_rsp_create(server->ia, qualifier, server->ep, server->cr_evd, &rsp));
	OK(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	CHECK(param.conn_qual == qualifier && param.ep_handle == server->ep &&
	      param.evd_handle == server->cr_evd);
	arrival = call_side(client, server, qualifier, 0, NULL);
	CHECK(arrival.conn_qual == qualifier && arrival.sp_handle.rsp_handle == rsp);
	OK(dat_cr_accept(arrival.cr_handle, DAT_HANDLE_NULL, 0, NULL));
	expect(server->evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(client->evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	transfer(client, server);
	disconnect_sides(client, server);
	marked(client);
	marked(server);
	OK(dat_rsp_free(rsp));
	OK(dat_ep_reset(client->ep));
	OK(dat_ep_reset(server->ep));
}

/* Connects a second pair with dup_connect. */
static void follow(struct side *client, struct side *server)
{
	DAT_EP_HANDLE caller, answerer;
	DAT_CONN_QUAL qualifier = connect_sides(client, server);
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	OK(dat_psp_create(server->ia, qualifier, server->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_create(client->ia, client->pz, client->evd, client->evd, client->evd, NULL,
			 &caller));
	OK(dat_ep_create(server->ia, server->pz, server->evd, server->evd, server->evd, NULL,
			 &answerer));
	OK(dat_ep_dup_connect(caller, client->ep, PATIENCE, 0, NULL, DAT_QOS_BEST_EFFORT));
	event = expect(server->cr_evd, DAT_CONNECTION_REQUEST_EVENT);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, answerer, 0, NULL));
	event = expect(server->evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	CHECK(event.event_data.connect_event_data.ep_handle == answerer);
	event = expect(client->evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	CHECK(event.event_data.connect_event_data.ep_handle == caller);
	OK(dat_ep_free(caller));
	event = expect(server->evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	CHECK(event.event_data.connect_event_data.ep_handle == answerer);
	OK(dat_ep_free(answerer));
	OK(dat_psp_free(psp));
	addresses(client);
	addresses(server);
	transfer(client, server);
	disconnect_sides(client, server);
	OK(dat_ep_reset(client->ep));
	OK(dat_ep_reset(server->ep));
}

void case_exchange(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	struct side client, server;

	open_side(&client, ia);
	open_side(&server, ia);
	follow(&client, &server);
	give_on(&client, &server);
	provided(&client, &server);
	reserved(&client, &server);
	close_side(&client);
	close_side(&server);
	silent(ia);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests requests that are taken after their service point was freed. */
#include "consumer.h"

/* A qualifier of more than 16 bits. */
#define QUALIFIER 0xaffab1e

/* Sides whose server has a CNO, which shows that a request is queued. */
struct pair {
	struct side client, server;
	DAT_CNO_HANDLE cno;
};

/* Connects the client, and waits until the request is queued. */
static void request(struct pair *pair)
{
	DAT_EVD_HANDLE evd;
	DAT_IA_ATTR attr;

	OK(dat_ia_query(pair->server.ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	OK(dat_ep_connect(pair->client.ep, attr.ia_address_ptr, QUALIFIER, PATIENCE, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	OK(dat_cno_wait(pair->cno, PATIENCE, &evd));
	CHECK(evd == pair->server.cr_evd);
}

/* Takes a request whose service point is gone. It still has its qualifier and its Endpoint. */
static DAT_CR_HANDLE take(struct pair *pair, DAT_EP_HANDLE *ep)
{
	DAT_EVENT event = expect(pair->server.cr_evd, DAT_CONNECTION_REQUEST_EVENT);
	DAT_CR_ARRIVAL_EVENT_DATA arrival = event.event_data.cr_arrival_event_data;
	DAT_CR_PARAM param;

	CHECK(arrival.sp_handle.psp_handle == DAT_HANDLE_NULL && arrival.conn_qual == QUALIFIER);
	OK(dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &param));
	CHECK(param.local_ep_handle != DAT_HANDLE_NULL);
	*ep = param.local_ep_handle;
	return arrival.cr_handle;
}

/* Accepts a request on the Endpoint that came with it. */
static void use_provided(struct pair *pair, DAT_CR_HANDLE cr, DAT_EP_HANDLE ep)
{
	struct side *server = &pair->server;
	DAT_EP_PARAM param = { 0 };
	DAT_EP_HANDLE own = server->ep;

	param.pz_handle = server->pz;
	param.recv_evd_handle = param.request_evd_handle = param.connect_evd_handle = server->evd;
	OK(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
				 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			 &param));
	OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	expect(server->evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(pair->client.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	server->ep = ep;
	disconnect_sides(&pair->client, server);
	OK(dat_ep_free(ep));
	server->ep = own;
	OK(dat_ep_reset(pair->client.ep));
}

/* A request of a PSP and one of an RSP, each with an Endpoint of the provider. */
static void provided(struct pair *pair)
{
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;
	DAT_CR_HANDLE cr;

	OK(dat_psp_create(pair->server.ia, QUALIFIER, pair->server.cr_evd, DAT_PSP_PROVIDER_FLAG,
			  &psp));
	request(pair);
	OK(dat_psp_free(psp));
	cr = take(pair, &ep);
	use_provided(pair, cr, ep);

	OK(dat_rsp_create(pair->server.ia, QUALIFIER, DAT_HANDLE_NULL, pair->server.cr_evd, &rsp));
	request(pair);
	OK(dat_rsp_free(rsp));
	cr = take(pair, &ep);
	OK(dat_cr_reject(cr, 0, NULL));
	REFUSED(DAT_INVALID_HANDLE, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	expect(pair->client.evd, DAT_CONNECTION_EVENT_PEER_REJECTED);
	OK(dat_ep_reset(pair->client.ep));
}

void case_requests(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	struct pair pair;

	open_side(&pair.client, ia);
	open_side(&pair.server, ia);
	OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &pair.cno));
	OK(dat_evd_modify_cno(pair.server.cr_evd, pair.cno));
	provided(&pair);
	close_side(&pair.client);
	close_side(&pair.server);
	OK(dat_cno_free(pair.cno));
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests handles, service points and queries. */
#include <linux/in.h>
#include <linux/net.h>
#include <linux/string.h>

#include "ktest.h"

static int handles(void)
{
	DAT_EVD_HANDLE evd, other, next;
	DAT_HANDLE_TYPE type;
	struct pair pair = {};
	DAT_IA_HANDLE second;
	DAT_PZ_HANDLE freed;
	DAT_EVENT event;

	TRY(pair_make(&pair));
	OK(dat_get_handle_type(ia, &type));
	SAME(type, DAT_HANDLE_TYPE_IA);
	OK(dat_get_handle_type(pair.ep[0], &type));
	SAME(type, DAT_HANDLE_TYPE_EP);
	OK(dat_get_handle_type(async_evd, &type));
	SAME(type, DAT_HANDLE_TYPE_EVD);
	/* The handle of a freed PZ does not name the next PZ in its place. */
	OK(dat_pz_create(ia, &freed));
	OK(dat_pz_free(freed));
	OK(dat_pz_create(ia, &next));
	EXPECT(next != freed);
	REFUSED(dat_pz_free(freed), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	REFUSED(dat_get_handle_type(freed, &type), DAT_INVALID_HANDLE, 27);
	/* Handles of another kind, none, and invented ones. */
	REFUSED(dat_pz_free(pair.ep[0]), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	REFUSED(dat_pz_free(DAT_HANDLE_NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	REFUSED(dat_pz_free((void *)~0ul), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	REFUSED(dat_pz_free(&pair), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	REFUSED(dat_ep_free(pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	REFUSED(dat_lmr_free(pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	REFUSED(dat_psp_free(pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	REFUSED(dat_cr_reject(pz, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	REFUSED(dat_cno_free(pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	REFUSED(dat_evd_dequeue(pz, &event), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	REFUSED(dat_ia_close(pz, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	REFUSED(dat_pz_create(ia, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	/* The handle of another adapter's object. */
	evd = DAT_HANDLE_NULL;
	OK(dat_ia_open(ia_attr.adapter_name, 8, &evd, &second));
	OK(dat_evd_kcreate(second, 4, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, &other));
	REFUSED(dat_ep_create(ia, pz, other, pair.dto[0], pair.connection[0], NULL, &next),
		DAT_INVALID_HANDLE, 22);
	REFUSED(dat_ia_close(second, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE,
		DAT_INVALID_STATE_IA_IN_USE);
	OK(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
	REFUSED(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_IA);
	REFUSED(dat_evd_dequeue(other, &event), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	/* Another adapter uses the table of the closed one. */
	evd = DAT_HANDLE_NULL;
	OK(dat_ia_open(ia_attr.adapter_name, 8, &evd, &next));
	REFUSED(dat_evd_dequeue(other, &event), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	REFUSED(dat_pz_create(second, &freed), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	OK(dat_ia_close(next, DAT_CLOSE_GRACEFUL_FLAG));
	evd = DAT_HANDLE_NULL;
	REFUSED(dat_ia_open("nothing0", 8, &evd, &next), DAT_PROVIDER_NOT_FOUND, 100);
	REFUSED(dat_ia_openv(ia_attr.adapter_name, 8, &evd, &next, 1, 2, DAT_TRUE),
		DAT_PROVIDER_NOT_FOUND, 101);
	evd = async_evd;
	REFUSED(dat_ia_open(ia_attr.adapter_name, 8, &evd, &next), DAT_INVALID_HANDLE, 24);
	return 0;
}

static int service_points(void)
{
	const char question[] = "who is there?", answer[] = "nobody";
	const DAT_CONNECTION_EVENT_DATA *refused;
	DAT_EP_HANDLE own = DAT_HANDLE_NULL;
	DAT_CONN_QUAL conn_qual;
	struct pair pair = {};
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_PSP_PARAM psp_param;
	DAT_RSP_PARAM rsp_param;
	DAT_CR_PARAM cr;
	DAT_EVENT event;

	TRY(pair_make(&pair));
	OK(dat_psp_create_any(ia, &conn_qual, pair.connection[1], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_psp_query(psp, 0, &psp_param));
	EXPECT(psp_param.ia_handle == ia && psp_param.evd_handle == pair.connection[1]);
	SAME(psp_param.conn_qual, conn_qual);
	REFUSED(dat_psp_create(ia, conn_qual, pair.connection[1], DAT_PSP_CONSUMER_FLAG, &rsp),
		DAT_CONN_QUAL_IN_USE, 0);
	OK(dat_ep_connect(pair.ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US,
			  sizeof(question), question, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(pair.connection[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	EXPECT(event.event_data.cr_arrival_event_data.sp_handle == psp);
	SAME(event.event_data.cr_arrival_event_data.conn_qual, conn_qual);
	OK(dat_cr_query(event.event_data.cr_arrival_event_data.cr_handle, 0, &cr));
	EXPECT(cr.private_data_size >= sizeof(question) && !strcmp(cr.private_data, question));
	SAME(cr.remote_ia_address_ptr->sa_family, ia_attr.ia_address_ptr->sa_family);
	OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, sizeof(answer), answer));
	TRY(next_event(pair.connection[0], DAT_CONNECTION_EVENT_PEER_REJECTED, &event));
	refused = &event.event_data.connect_event_data;
	EXPECT(refused->ep_handle == pair.ep[0]);
	EXPECT(refused->private_data_size >= sizeof(answer) &&
	       !strcmp(refused->private_data, answer));
	OK(dat_psp_free(psp));
	/* An RSP with its own Endpoint. */
	OK(dat_ep_reset(pair.ep[0]));
	OK(dat_rsp_create(ia, conn_qual, pair.ep[1], pair.connection[1], &rsp));
	OK(dat_rsp_query(rsp, 0, &rsp_param));
	EXPECT(rsp_param.ep_handle == pair.ep[1]);
	OK(dat_ep_connect(pair.ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(pair.connection[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	OK(dat_cr_query(event.event_data.cr_arrival_event_data.cr_handle, 0, &cr));
	EXPECT(cr.local_ep_handle == pair.ep[1]);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, own, 0, NULL));
	TRY(next_event(pair.connection[0], DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	TRY(next_event(pair.connection[1], DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	return 0;
}

static int common_connect(void)
{
	const DAT_COMM stream = {}, datagrams = { .type = SOCK_DGRAM };
	struct sockaddr_in *address;
	struct pair pair = {};
	DAT_CSP_PARAM param;
	DAT_CSP_HANDLE csp;
	DAT_EVENT event;

	TRY(pair_make(&pair));
	REFUSED(dat_csp_create(ia, &datagrams, ia_attr.ia_address_ptr, pair.connection[1], &csp),
		DAT_COMM_NOT_SUPPORTED, 0);
	OK(dat_csp_create(ia, &stream, ia_attr.ia_address_ptr, pair.connection[1], &csp));
	OK(dat_csp_query(csp, 0, &param));
	address = (struct sockaddr_in *)&param.address;
	EXPECT(address->sin_port);
	SAME(param.comm.type, SOCK_STREAM);
	OK(dat_ep_common_connect(pair.ep[0], (struct sockaddr *)address, PATIENCE_US, 0, NULL));
	TRY(next_event(pair.connection[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair.ep[1], 0, NULL));
	TRY(next_event(pair.connection[0], DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	OK(dat_csp_free(csp));
	return 0;
}

static int endpoints(void)
{
	DAT_BOOLEAN recv_idle, request_idle;
	struct pair pair = {};
	DAT_LMR_TRIPLET place;
	DAT_EP_PARAM param;
	DAT_EP_STATE state;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;

	TRY(pair_make(&pair));
	OK(dat_ep_create(ia, DAT_HANDLE_NULL, pair.dto[0], DAT_HANDLE_NULL, DAT_HANDLE_NULL, NULL,
			 &ep));
	OK(dat_ep_get_status(ep, &state, NULL, NULL));
	SAME(state, DAT_EP_STATE_UNCONFIGURED_UNCONNECTED);
	memset(&param, 0, sizeof(param));
	param.pz_handle = pz;
	param.connect_evd_handle = pair.connection[0];
	param.ep_attr.max_recv_dtos = 5;
	REFUSED(dat_ep_modify(ep, DAT_EP_FIELD_EP_STATE, &param), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG(2));
	OK(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE |
			     DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	SAME(param.ep_state, DAT_EP_STATE_UNCONNECTED);
	EXPECT(param.ia_handle == ia && param.pz_handle == pz &&
	       param.recv_evd_handle == pair.dto[0]);
	EXPECT(!param.request_evd_handle && param.connect_evd_handle == pair.connection[0]);
	SAME(param.ep_attr.max_recv_dtos, 5);
	param.pz_handle = DAT_HANDLE_NULL;
	REFUSED(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_PZ);
	OK(dat_ep_free(ep));
	place = pair_place(&pair, 0, 64);
	OK(dat_ep_post_recv(pair.ep[0], 1, &place, (DAT_DTO_COOKIE){},
			    DAT_COMPLETION_DEFAULT_FLAG));
	TRY(pair_connect(&pair));
	OK(dat_ep_get_status(pair.ep[0], &state, &recv_idle, &request_idle));
	SAME(state, DAT_EP_STATE_CONNECTED);
	EXPECT(!recv_idle && request_idle);
	OK(dat_ep_query(pair.ep[0], DAT_EP_FIELD_ALL, &param));
	SAME(param.remote_ia_address_ptr->sa_family, ia_attr.ia_address_ptr->sa_family);
	REFUSED(dat_ep_post_send(pair.ep[0], -1, NULL, (DAT_DTO_COOKIE){},
				 DAT_COMPLETION_DEFAULT_FLAG),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	REFUSED(dat_ep_post_send(pair.ep[0], 1, NULL, (DAT_DTO_COOKIE){},
				 DAT_COMPLETION_DEFAULT_FLAG),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	OK(dat_ep_disconnect(pair.ep[0], DAT_CLOSE_GRACEFUL_FLAG));
	TRY(next_event(pair.dto[0], DAT_DTO_COMPLETION_EVENT, &event));
	SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	TRY(next_event(pair.connection[0], DAT_CONNECTION_EVENT_DISCONNECTED, &event));
	OK(dat_ep_reset(pair.ep[0]));
	OK(dat_ep_get_status(pair.ep[0], &state, NULL, NULL));
	SAME(state, DAT_EP_STATE_UNCONNECTED);
	return 0;
}

static bool is_in(DAT_EP_HANDLE ep, DAT_EP_STATE expected)
{
	DAT_EP_STATE state = expected + 1;

	return !dat_ep_get_status(ep, &state, NULL, NULL) && state == expected;
}

/* Connects an Endpoint that reports no events to one that reports all. */
static int connect_silent(struct pair *pair)
{
	TRY(pair_establish(pair));
	UNTIL(is_in(pair->ep[0], DAT_EP_STATE_CONNECTED));
	return 0;
}

/* Tests an Endpoint whose EVDs are all DAT_HANDLE_NULL. */
static int null_evds(void)
{
	DAT_BOOLEAN request_idle = DAT_FALSE;
	struct pair pair = {};
	DAT_LMR_TRIPLET place;
	unsigned int round;
	DAT_EP_PARAM param;
	DAT_EVENT event;
	DAT_COUNT more;

	TRY(pair_make(&pair));
	memset(&param, 0, sizeof(param));
	OK(dat_ep_modify(pair.ep[0],
			 DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				     DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	OK(dat_ep_query(pair.ep[0], DAT_EP_FIELD_ALL, &param));
	SAME(param.ep_state, DAT_EP_STATE_UNCONNECTED);
	EXPECT(!param.recv_evd_handle && !param.request_evd_handle && !param.connect_evd_handle);
	OK(dat_evd_free(pair.dto[0]));
	place = pair_place(&pair, 0, 64);
	OK(dat_ep_post_recv(pair.ep[0], 1, &place, (DAT_DTO_COOKIE){},
			    DAT_COMPLETION_DEFAULT_FLAG));
	TRY(connect_silent(&pair));
	for (round = 0; round < 3 * param.ep_attr.max_request_dtos; round++) {
		OK(dat_ep_post_recv(pair.ep[1], 1, &place, (DAT_DTO_COOKIE){},
				    DAT_COMPLETION_DEFAULT_FLAG));
		OK(dat_ep_post_send(pair.ep[0], 1, &place, (DAT_DTO_COOKIE){},
				    DAT_COMPLETION_DEFAULT_FLAG));
		TRY(next_event(pair.dto[1], DAT_DTO_COMPLETION_EVENT, &event));
		UNTIL(!dat_ep_get_status(pair.ep[0], NULL, NULL, &request_idle) && request_idle);
	}
	if (is_iwarp)
		return 0;
	/* The message is too long for the peer's receive. */
	OK(dat_ep_post_recv(pair.ep[1], 1, &place, (DAT_DTO_COOKIE){},
			    DAT_COMPLETION_DEFAULT_FLAG));
	place = pair_place(&pair, 0, 128);
	OK(dat_ep_post_send(pair.ep[0], 1, &place, (DAT_DTO_COOKIE){},
			    DAT_COMPLETION_DEFAULT_FLAG));
	TRY(next_event(async_evd, DAT_ASYNC_ERROR_EP_BROKEN, &event));
	EXPECT(event.event_data.asynch_error_event_data.dat_handle == pair.ep[0]);
	EXPECT(is_in(pair.ep[0], DAT_EP_STATE_DISCONNECTED));
	REFUSED(dat_evd_wait(async_evd, QUIET_MS * USEC_PER_MSEC, 1, &event, &more),
		DAT_TIMEOUT_EXPIRED, 0);
	return 0;
}

const struct ktest object_tests[] = {
	{ "handles", handles },
	{ "service_points", service_points },
	{ "common_connect", common_connect },
	{ "endpoints", endpoints },
	{ "null_evds", null_evds },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Endpoints before they are connected. */
#include "examples.h"

/* --- */
void example_endpoint(char *adapter)
{
	DAT_EP_ATTR attr = { .max_recv_dtos = 16, .max_request_dtos = 32 };
	DAT_IA_HANDLE ia = open_ia(adapter, DAT_TRUE);
	DAT_COUNT allocated, span;
	DAT_BOOLEAN idle, other;
	DAT_EP_PARAM param;
	DAT_EP_STATE state;
	DAT_EVD_HANDLE evd;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;

	OK(dat_pz_create(ia, &pz));
	OK(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG,
			  &evd));
	OK(dat_ep_create(ia, pz, evd, evd, evd, &attr, &ep));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.ep_attr.max_recv_dtos == 16 && param.ep_attr.max_request_dtos == 32);

	param.ep_attr.max_recv_dtos = 64;
	OK(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
	OK(dat_ep_query(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
	CHECK(param.ep_attr.max_recv_dtos == 64);

	/* A receive of no bytes needs no memory. */
	OK(dat_ep_post_recv(ep, 0, NULL, (DAT_DTO_COOKIE) { .as_64 = 1 },
			    DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_get_status(ep, &state, &idle, &other));
	CHECK(state == DAT_EP_STATE_UNCONNECTED && !idle && other);
	OK(dat_ep_recv_query(ep, &allocated, &span));
	CHECK(allocated == 1 && span == 1);
	OK(dat_ep_set_watermark(ep, 32, DAT_WATERMARK_INFINITE));

	OK(dat_ep_free(ep));
	OK(dat_evd_free(evd));
	OK(dat_pz_free(pz));
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

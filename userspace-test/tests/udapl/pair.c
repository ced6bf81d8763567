// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connects two sides in one process. */
#include "consumer.h"

#include <stdlib.h>
#include <string.h>

DAT_IA_HANDLE open_ia(const char *name, DAT_BOOLEAN thread_safe)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	OK(dat_ia_openv((char *)name, 8, &async_evd, &ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR,
			thread_safe));
	CHECK(async_evd != DAT_HANDLE_NULL);
	return ia;
}

void open_side(struct side *side, DAT_IA_HANDLE ia)
{
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN length;
	DAT_VADDR address;

	side->ia = ia;
	CHECK(side->memory = calloc(1, MEMORY));
	OK(dat_pz_create(ia, &side->pz));
	OK(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG,
			  &side->evd));
	OK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &side->cr_evd));
	OK(dat_ep_create(ia, side->pz, side->evd, side->evd, side->evd, NULL, &side->ep));
	region.for_va = side->memory;
	OK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY, side->pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_VA, &side->lmr, &side->lmr_context, &side->rmr_context,
			  &length, &address));
	CHECK(length >= MEMORY && address <= (uintptr_t)side->memory);
}

void close_side(struct side *side)
{
	OK(dat_ep_free(side->ep));
	OK(dat_lmr_free(side->lmr));
	OK(dat_evd_free(side->evd));
	OK(dat_evd_free(side->cr_evd));
	OK(dat_pz_free(side->pz));
	free(side->memory);
}

DAT_EVENT next(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_wait(evd, PATIENCE, 1, &event, &more));
	CHECK(event.evd_handle == evd);
	return event;
}

DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = next(evd);

	CHECK(event.event_number == number);
	return event;
}

DAT_CR_ARRIVAL_EVENT_DATA call_side(struct side *client, struct side *server,
				    DAT_CONN_QUAL qualifier, DAT_COUNT size,
				    const char *private_data)
{
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	OK(dat_ia_query(server->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	OK(dat_ep_connect(client->ep, attr.ia_address_ptr, qualifier, PATIENCE, size,
			  (DAT_PVOID)private_data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	event = expect(server->cr_evd, DAT_CONNECTION_REQUEST_EVENT);
	return event.event_data.cr_arrival_event_data;
}

DAT_CONN_QUAL connect_sides(struct side *client, struct side *server)
{
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_CR_PARAM request;
	DAT_CONN_QUAL qualifier;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	OK(dat_psp_create_any(server->ia, &qualifier, server->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	arrival = call_side(client, server, qualifier, 5, "hello");
	CHECK(arrival.sp_handle.psp_handle == psp && arrival.conn_qual == qualifier);
	OK(dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &request));
	CHECK(request.private_data_size >= 5 && !memcmp(request.private_data, "hello", 5));
	OK(dat_cr_accept(arrival.cr_handle, server->ep, 7, "welcome"));
	REFUSED(DAT_INVALID_HANDLE, dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &request));
	event = expect(server->evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	CHECK(event.event_data.connect_event_data.ep_handle == server->ep);
	event = expect(client->evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	CHECK(event.event_data.connect_event_data.ep_handle == client->ep);
	CHECK(!memcmp(event.event_data.connect_event_data.private_data, "welcome", 7));
	OK(dat_psp_free(psp));
	return qualifier;
}

void post(struct side *side, int receive, unsigned offset, unsigned length, DAT_UINT64 cookie)
{
	DAT_LMR_TRIPLET iov = { (uintptr_t)side->memory + offset, length, side->lmr_context };
	DAT_DTO_COOKIE user = { .as_64 = cookie };

	if (receive)
		OK(dat_ep_post_recv(side->ep, 1, &iov, user, DAT_COMPLETION_DEFAULT_FLAG));
	else
		OK(dat_ep_post_send(side->ep, 1, &iov, user, DAT_COMPLETION_DEFAULT_FLAG));
}

void disconnect_sides(struct side *client, struct side *server)
{
	OK(dat_ep_disconnect(client->ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect(client->evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect(server->evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* A uDAPL program that connects to itself and sends a message. docs/using.md builds it. */
#include <dat2/udat.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUALIFIER 7177
#define PATIENCE 10000000	/* microseconds */

/* Ends the program unless a call has succeeded. */
static void must(DAT_RETURN ret, const char *call)
{
	const char *major = "", *minor = "";

	if (ret == DAT_SUCCESS)
		return;
	dat_strerror(ret, &major, &minor);
	fprintf(stderr, "%s: %s %s\n", call, major, minor);
	exit(1);
}

#define MUST(call) must(call, #call)

/* Waits for an event, which must have this number. */
static DAT_EVENT next(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	DAT_COUNT more;

	MUST(dat_evd_wait(evd, PATIENCE, 1, &event, &more));
	if (event.event_number != number) {
		fprintf(stderr, "event %#x instead of %#x\n", event.event_number, number);
		exit(1);
	}
	return event;
}

int main(int argc, char **argv)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL, requests, client_evd, server_evd;
	DAT_EVD_FLAGS flags = (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	static char memory[256];
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_LMR_TRIPLET segment = { 0 };
	DAT_DTO_COOKIE cookie = { 0 };
	DAT_EP_HANDLE client, server;
	DAT_PSP_HANDLE psp;
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz;
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	if (argc != 2) {
		fprintf(stderr, "Usage: %s ADAPTER\n", argv[0]);
		return 2;
	}
	MUST(dat_ia_open(argv[1], 8, &async_evd, &ia));
	MUST(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	MUST(dat_pz_create(ia, &pz));
	MUST(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests));
	MUST(dat_evd_create(ia, 8, DAT_HANDLE_NULL, flags, &client_evd));
	MUST(dat_evd_create(ia, 8, DAT_HANDLE_NULL, flags, &server_evd));
	MUST(dat_ep_create(ia, pz, client_evd, client_evd, client_evd, NULL, &client));
	MUST(dat_ep_create(ia, pz, server_evd, server_evd, server_evd, NULL, &server));
	MUST(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), pz,
			    DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA, &lmr,
			    &segment.lmr_context, NULL, NULL, NULL));

	/* Post the receive before the peer can send. */
	segment.virtual_address = (DAT_VADDR)(uintptr_t)memory + 128;
	segment.segment_length = 128;
	MUST(dat_ep_post_recv(server, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));

	MUST(dat_psp_create(ia, QUALIFIER, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	MUST(dat_ep_connect(client, attr.ia_address_ptr, QUALIFIER, PATIENCE, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	event = next(requests, DAT_CONNECTION_REQUEST_EVENT);
	MUST(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, server, 0, NULL));
	next(client_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	next(server_evd, DAT_CONNECTION_EVENT_ESTABLISHED);

	strcpy(memory, "hello");
	segment.virtual_address = (DAT_VADDR)(uintptr_t)memory;
	segment.segment_length = 6;
	MUST(dat_ep_post_send(client, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	next(client_evd, DAT_DTO_COMPLETION_EVENT);
	next(server_evd, DAT_DTO_COMPLETION_EVENT);
	printf("received: %s\n", memory + 128);
	MUST(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}

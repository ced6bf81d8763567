// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The C program of README.md, which has all that follows the next line. */
/* --- */
#include <dat2/udat.h>
#include <err.h>
#include <stdio.h>

#define MUST(call) do { DAT_RETURN ret = call; if (ret) errx(1, #call ": %#x", ret); } while (0)

static DAT_EVENT next(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	DAT_COUNT more;

	MUST(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	if (event.event_number != number)
		errx(1, "event %#x", event.event_number);
	return event;
}

int main(int argc, char **argv)
{
	static char text[6];
	DAT_EVD_FLAGS kinds = DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG;
	DAT_REGION_DESCRIPTION region = { .for_va = text };
	DAT_LMR_TRIPLET segment = { .virtual_address = (DAT_VADDR)text, .segment_length = 6 };
	DAT_DTO_COOKIE cookie = { 0 };
	DAT_HANDLE async = DAT_HANDLE_NULL, ia, evd, pz, ep, lmr, psp;
	DAT_EVENT event;

	if (argc != 2)
		errx(2, "usage: %s DEVICE", argv[0]);
	MUST(dat_ia_open(argv[1], 8, &async, &ia));
	MUST(dat_evd_create(ia, 16, DAT_HANDLE_NULL, kinds, &evd));
	MUST(dat_pz_create(ia, &pz));
	MUST(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep));
	MUST(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, 6, pz, DAT_MEM_PRIV_ALL_FLAG,
			    DAT_VA_TYPE_VA, &lmr, &segment.lmr_context, NULL, NULL, NULL));
	MUST(dat_ep_post_recv(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	MUST(dat_psp_create(ia, 7176, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	event = next(evd, DAT_CONNECTION_REQUEST_EVENT);
	MUST(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
	next(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	event = next(evd, DAT_DTO_COMPLETION_EVENT); /* of the receive */
	if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
		errx(1, "the peer has ended before it sent a message");
	puts(text);
	next(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The C program of README.md, which has all that follows the next line. */
/* --- */
#include <arpa/inet.h>
#include <dat2/udat.h>
#include <err.h>
#include <stdio.h>

#define MUST(call) do { DAT_RETURN ret = call; if (ret) errx(1, #call ": %#x", ret); } while (0)

static DAT_EVENT next(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	MUST(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	return event;
}

int main(int argc, char **argv) /* DEVICE [ADDRESS]; without ADDRESS it serves */
{
	static char text[6];
	DAT_EVD_FLAGS kinds = DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG;
	DAT_REGION_DESCRIPTION region = { .for_va = text };
	DAT_LMR_TRIPLET segment = { .virtual_address = (DAT_VADDR)text, .segment_length = 6 };
	struct sockaddr_in peer = { .sin_family = AF_INET };
	DAT_DTO_COOKIE cookie = { 0 };
	DAT_EVENT cr;
	DAT_HANDLE async = DAT_HANDLE_NULL, ia, evd, pz, ep, lmr, psp;

	if (argc < 2)
		errx(2, "usage: %s DEVICE [ADDRESS]", argv[0]);
	if (argc > 2 && !inet_pton(AF_INET, argv[2], &peer.sin_addr))
		errx(2, "%s is not an IPv4 address", argv[2]);
	MUST(dat_ia_open(argv[1], 8, &async, &ia));
	MUST(dat_evd_create(ia, 16, DAT_HANDLE_NULL, kinds, &evd));
	MUST(dat_pz_create(ia, &pz));
	MUST(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep));
	MUST(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, 6, pz, DAT_MEM_PRIV_ALL_FLAG,
			    DAT_VA_TYPE_VA, &lmr, &segment.lmr_context, NULL, NULL, NULL));
	if (argc > 2) {
		MUST(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&peer, 7176, DAT_TIMEOUT_INFINITE, 0,
				    NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
		next(evd); /* ESTABLISHED */
		sprintf(text, "hello");
		MUST(dat_ep_post_send(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
		next(evd); /* the send is complete */
		MUST(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	} else {
		MUST(dat_ep_post_recv(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
		MUST(dat_psp_create(ia, 7176, evd, DAT_PSP_CONSUMER_FLAG, &psp));
		cr = next(evd);
		MUST(dat_cr_accept(cr.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
		next(evd); /* ESTABLISHED */
		next(evd); /* the receive is complete */
		puts(text);
	}
	next(evd); /* DISCONNECTED */
	return 0;
}

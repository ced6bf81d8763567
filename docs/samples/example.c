// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The example of docs/ioctl.md. What follows the next line stands there, too. */
/* --- */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <rdma/kdapl.h>

static int fd;
static char buffer[4096];

/* One call. A bad message shows in errno, DAT's own answer in hdr.ret. */
#define CALL(request, m) do {						\
	(m).hdr.size = sizeof(m);					\
	if (ioctl(fd, request, &(m)) || (m).hdr.ret) {			\
		fprintf(stderr, #request ": %m, DAT 0x%08x\n", (m).hdr.ret); \
		exit(1);						\
	}								\
} while (0)

static struct kdapl_event wait_event(__u64 evd)
{
	struct kdapl_event event;
	struct kdapl_evd_wait m = { .handle = evd, .timeout_ns = 10000000000, .threshold = 1,
		.max_events = 1, .events = (uintptr_t)&event, .event_size = sizeof(event) };

	CALL(KDAPL_EVD_WAIT, m);
	printf("event 0x%05x, status %u, value %llu\n", event.number, event.status,
	       (unsigned long long)event.value);
	return event;
}

static void post(__u64 ep, __u32 operation, __u32 lmr_context, __u32 length)
{
	struct kdapl_triplet iov = { (uintptr_t)buffer, length, lmr_context };
	struct kdapl_ep_post m = { .handle = ep, .dto = { .operation = operation,
		.iov = (uintptr_t)&iov, .iov_count = 1, .iov_size = sizeof(iov) } };

	CALL(KDAPL_EP_POST, m);
}

int main(int argc, char **argv)	/* example DEVICE [ADDRESS]: without one it serves */
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct kdapl_ia_open ia = { .abi_version = KDAPL_ABI_VERSION, .async_evd_qlen = 8 };
	struct kdapl_handle pz = { .handle = 0 };
	struct kdapl_evd_create evd = { .qlen = 16, .vector = -1,
		.flags = KDAPL_EVD_DTO | KDAPL_EVD_CONNECTION | KDAPL_EVD_CR };
	struct kdapl_ep_create ep = { .flags = 0 };
	struct kdapl_lmr_create lmr = { .address = (uintptr_t)buffer, .length = sizeof(buffer),
		.privileges = KDAPL_MEM_LOCAL_READ | KDAPL_MEM_LOCAL_WRITE };

	fd = open("/dev/" KDAPL_DEVICE_NAME, O_RDWR | O_CLOEXEC);
	if (fd < 0 || argc < 2 || (argc > 2 && !inet_aton(argv[2], &to.sin_addr)))
		return 1;
	strncpy((char *)ia.name, argv[1], sizeof(ia.name) - 1);
	CALL(KDAPL_IA_OPEN, ia);
	CALL(KDAPL_PZ_CREATE, pz);
	CALL(KDAPL_EVD_CREATE, evd);
	ep.pz = lmr.pz = pz.handle;
	ep.recv_evd = ep.request_evd = ep.connect_evd = evd.handle;
	CALL(KDAPL_EP_CREATE, ep);
	CALL(KDAPL_LMR_CREATE, lmr);
	if (argc > 2) {				/* the active side */
		struct kdapl_ep_connect connect = { .handle = ep.handle, .conn_qual = 7175,
						    .timeout_ns = 5000000000 };
		struct kdapl_ep_disconnect bye = { .handle = ep.handle,
						   .flags = KDAPL_CLOSE_GRACEFUL };

		memcpy(connect.remote_address.sa, &to, sizeof(to));
		CALL(KDAPL_EP_CONNECT, connect);
		if (wait_event(evd.handle).number != KDAPL_EVENT_ESTABLISHED)
			return 1;
		strcpy(buffer, "hello");
		post(ep.handle, KDAPL_DTO_SEND, lmr.lmr_context, 6);
		wait_event(evd.handle);		/* DTO_COMPLETION of the send */
		CALL(KDAPL_EP_DISCONNECT, bye);
	} else {				/* the passive side */
		struct kdapl_psp_create psp = { .conn_qual = 7175, .evd = evd.handle };
		struct kdapl_cr_answer accept = { .ep = ep.handle };

		post(ep.handle, KDAPL_DTO_RECEIVE, lmr.lmr_context, sizeof(buffer));
		CALL(KDAPL_PSP_CREATE, psp);
		accept.handle = wait_event(evd.handle).object;	/* CONNECTION_REQUEST */
		CALL(KDAPL_CR_ACCEPT, accept);
		wait_event(evd.handle);		/* ESTABLISHED */
		wait_event(evd.handle);		/* DTO_COMPLETION of the receive */
		puts(buffer);
	}
	wait_event(evd.handle);			/* DISCONNECTED */
	return 0;				/* closing the file takes everything down */
}

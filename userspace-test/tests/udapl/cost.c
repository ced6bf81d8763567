// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* udapl-cost: the cost of memory and of transfers over a provider. */
#include "consumer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
"Usage: udapl-cost ADAPTER COUNT WHAT\n"
"\n"
"Measures COUNT operations over an adapter of dat.conf, between two Endpoints of\n"
"this program, and prints the nanoseconds of one. The program sleeps until events\n"
"arrive.\n"
"\n"
"  register-4096, register-1048576  dat_lmr_create() of so many bytes, and then of\n"
"                                   dat_lmr_free(), on a line of its own\n"
"  list      a send of 64 bytes and its receive, 16 at a time\n"
"  send, write, read  of 65536 bytes, 16 in flight\n";

#define LIST	16
#define MESSAGE	64
#define LONG	65536
#define WINDOW	16
#define QUALIFIER	7197

static char *memory;
static DAT_LMR_CONTEXT lmr_context;
static DAT_RMR_CONTEXT rmr_context;
static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE sent, received;
static DAT_EP_HANDLE from, to;

noreturn void fail(const char *file, int line, const char *what, DAT_RETURN ret)
{
	const char *major = "", *minor = "";

	if (ret != DAT_SUCCESS)
		dat_strerror(ret, &major, &minor);
	fprintf(stderr, "%s:%d: %s (0x%08x %s %s)\n", file, line, what, ret, major, minor);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

static DAT_LMR_HANDLE make_lmr(char *address, size_t bytes)
{
	DAT_REGION_DESCRIPTION region = { .for_va = address };
	DAT_LMR_HANDLE lmr;
	DAT_VLEN length;
	DAT_VADDR start;

	OK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, bytes, pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_VA, &lmr, &lmr_context, &rmr_context, &length, &start));
	return lmr;
}

static char *touched(size_t bytes)
{
	char *address = aligned_alloc(4096, bytes);

	CHECK(address);
	return memset(address, 1, bytes);
}

static void registrations(unsigned count, size_t bytes)
{
	char *address = touched(bytes);
	uint64_t made = 0, freed = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t start = now(), then;
		DAT_LMR_HANDLE lmr = make_lmr(address, bytes);

		then = now();
		made += then - start;
		OK(dat_lmr_free(lmr));
		freed += now() - then;
	}
	printf("%.3f\n%.3f\n", (double)made / count, (double)freed / count);
}

static DAT_LMR_TRIPLET piece(size_t offset, size_t length)
{
	return (DAT_LMR_TRIPLET){ (uintptr_t)memory + offset, length, lmr_context };
}

static void receive(size_t length)
{
	DAT_LMR_TRIPLET iov = piece(LONG, length);
	DAT_DTO_COOKIE none = { .as_64 = 0 };

	OK(dat_ep_post_recv(to, 1, &iov, none, DAT_COMPLETION_DEFAULT_FLAG));
}

static void done(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_wait(evd, PATIENCE, 1, &event, &more));
	CHECK(event.event_number == DAT_DTO_COMPLETION_EVENT);
	CHECK(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
}

/* All but the last are suppressed. */
static void list(void)
{
	DAT_LMR_TRIPLET iov = piece(0, MESSAGE);
	DAT_DTO_COOKIE none = { .as_64 = 0 };

	for (int i = 0; i < LIST; i++)
		receive(MESSAGE);
	for (int i = 0; i < LIST; i++)
		OK(dat_ep_post_send(from, 1, &iov, none,
				    i + 1 < LIST ?
				    DAT_COMPLETION_SUPPRESS_FLAG : DAT_COMPLETION_DEFAULT_FLAG));
	for (int i = 0; i < LIST; i++)
		done(received);
	done(sent);
}

static void post_long(const char *what)
{
	DAT_RMR_TRIPLET remote = { (uintptr_t)memory + LONG, LONG, rmr_context };
	DAT_LMR_TRIPLET iov = piece(0, LONG);
	DAT_DTO_COOKIE none = { .as_64 = 0 };
	DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG;

	if (!strcmp(what, "send")) {
		receive(LONG);
		OK(dat_ep_post_send(from, 1, &iov, none, flags));
	} else if (!strcmp(what, "write")) {
		OK(dat_ep_post_rdma_write(from, 1, &iov, none, &remote, flags));
	} else {
		OK(dat_ep_post_rdma_read(from, 1, &iov, none, &remote, flags));
	}
}

static void stream(unsigned count, const char *what)
{
	unsigned posted = 0;

	for (; posted < count && posted < WINDOW; posted++)
		post_long(what);
	for (unsigned ended = 0; ended < count; ended++) {
		done(sent);
		if (!strcmp(what, "send"))
			done(received);
		if (posted++ < count)
			post_long(what);
	}
}

static void measure(unsigned count, const char *what)
{
	uint64_t start = now();

	if (!strcmp(what, "list"))
		for (unsigned i = 0; i < count; i += LIST)
			list();
	else
		stream(count, what);
	printf("%.3f\n", (double)(now() - start) / count);
}

static DAT_EVD_HANDLE make_evd(DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	OK(dat_evd_create(ia, 256, DAT_HANDLE_NULL, flags, &evd));
	return evd;
}

static DAT_EP_HANDLE make_ep(DAT_EVD_HANDLE dtos, DAT_EVD_HANDLE connections)
{
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(ia, pz, dtos, dtos, connections, NULL, &ep));
	return ep;
}

static DAT_EVENT expect_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_wait(evd, PATIENCE, 1, &event, &more));
	CHECK(event.event_number == number);
	return event;
}

static void connect_eps(DAT_EVD_HANDLE requests, DAT_EVD_HANDLE here, DAT_EVD_HANDLE there)
{
	DAT_PSP_HANDLE psp;
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	OK(dat_psp_create(ia, QUALIFIER, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(from, attr.ia_address_ptr, QUALIFIER, PATIENCE, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	event = expect_event(requests, DAT_CONNECTION_REQUEST_EVENT);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, to, 0, NULL));
	expect_event(here, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect_event(there, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Each stream of events has an EVD of its own: Debian's provider merges none. */
static void open_adapter(const char *adapter)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL, here, there;

	OK(dat_ia_open((char *)adapter, 8, &async_evd, &ia));
	OK(dat_pz_create(ia, &pz));
	sent = make_evd(DAT_EVD_DTO_FLAG);
	received = make_evd(DAT_EVD_DTO_FLAG);
	here = make_evd(DAT_EVD_CONNECTION_FLAG);
	there = make_evd(DAT_EVD_CONNECTION_FLAG);
	from = make_ep(sent, here);
	to = make_ep(received, there);
	connect_eps(make_evd(DAT_EVD_CR_FLAG), here, there);
	memory = touched(2 * LONG);
	make_lmr(memory, 2 * LONG);
}

int main(int argc, char **argv)
{
	unsigned count;

	if (argc != 4) {
		fputs(help, stderr);
		return 2;
	}
	open_adapter(argv[1]);
	count = atoi(argv[2]);
	if (!strncmp(argv[3], "register-", 9))
		registrations(count, atoi(argv[3] + 9));
	else
		measure(count, argv[3]);
	fflush(stdout);
	/* Frees nothing: the kernel does. */
	_exit(0);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tests requests that are handed off: to processes, by processes, and among consumers in the
 * kernel. The processes are those of the self-test, at `port` and the ports after it.
 */
#include <linux/string.h>

#include "ktest.h"

static const char please[] = { 'p', 'l', 'e', 'a', 's', 'e' };

/* Bytes of the client's message, and of the answer. */
#define QUESTION	4
#define ANSWER		16

/* User to whom the other process belongs. */
#define ORDINARY_USER	65534

/* A service point, and a client that connects to it. */
struct desk {
	struct pair pair;
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;
	/* The latest client. */
	DAT_EP_HANDLE ep;
	/* The clients' sends: a send may complete after the answer to it. */
	DAT_EVD_HANDLE sends;
};

static int desk_make(struct desk *desk)
{
	TRY(pair_make(&desk->pair));
	OK(dat_psp_create_any(ia, &desk->conn_qual, desk->pair.connection[1],
			      DAT_PSP_CONSUMER_FLAG, &desk->psp));
	OK(dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, &desk->sends));
	return 0;
}

/* Takes a request, which has the client's private data. */
static int next_request(DAT_EVD_HANDLE evd, DAT_PSP_HANDLE psp, DAT_CONN_QUAL conn_qual,
			DAT_CR_HANDLE *cr)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *arrival;
	DAT_CR_PARAM param;
	DAT_EVENT event;

	TRY(next_event(evd, DAT_CONNECTION_REQUEST_EVENT, &event));
	arrival = &event.event_data.cr_arrival_event_data;
	EXPECT(arrival->sp_handle == psp);
	SAME(arrival->conn_qual, conn_qual);
	*cr = arrival->cr_handle;
	OK(dat_cr_query(*cr, 0, &param));
	EXPECT(param.private_data_size >= sizeof(please) &&
	       !memcmp(param.private_data, please, sizeof(please)));
	return 0;
}

/* A new client connects, with a receive for the answer. */
static int call(struct desk *desk, DAT_CR_HANDLE *cr)
{
	const struct pair *pair = &desk->pair;
	const DAT_LMR_TRIPLET place = pair_place(pair, 0, ANSWER);

	OK(dat_ep_create(ia, pz, pair->dto[0], desk->sends, pair->connection[0], NULL,
			 &desk->ep));
	OK(dat_ep_post_recv(desk->ep, 1, &place, cookie(3), DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_connect(desk->ep, ia_attr.ia_address_ptr, desk->conn_qual, PATIENCE_US,
			  sizeof(please), please, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	return next_request(pair->connection[1], desk->psp, desk->conn_qual, cr);
}

/* The client is connected, and sends its question. */
static int ask(const struct desk *desk)
{
	const struct pair *pair = &desk->pair;
	const DAT_LMR_TRIPLET place = pair_place(pair, 4096, QUESTION);
	DAT_EVENT event;

	TRY(next_event(pair->connection[0], DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	memset(pair->memory, 0, ANSWER);
	OK(dat_ep_post_send(desk->ep, 1, &place, cookie(4), DAT_COMPLETION_DEFAULT_FLAG));
	return next_dto(desk->sends, DAT_DTO_SEND, 4, QUESTION);
}

/* The client gets the answer. */
static int hear(const struct desk *desk)
{
	TRY(next_dto(desk->pair.dto[0], DAT_DTO_RECEIVE, 3, ANSWER));
	EXPECT(!memcmp(desk->pair.memory, "from elsewhere..", ANSWER));
	return 0;
}

static int answered(const struct desk *desk)
{
	TRY(ask(desk));
	return hear(desk);
}

/* Accepts a request, with a receive for the question. */
static int accept(const struct pair *pair, DAT_CR_HANDLE cr)
{
	const DAT_LMR_TRIPLET place = pair_place(pair, 8192, QUESTION);
	DAT_EVENT event;

	OK(dat_ep_post_recv(pair->ep[1], 1, &place, cookie(5), DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_cr_accept(cr, pair->ep[1], 0, NULL));
	return next_event(pair->connection[1], DAT_CONNECTION_EVENT_ESTABLISHED, &event);
}

/* Answers the question. */
static int answer(const struct pair *pair)
{
	const DAT_LMR_TRIPLET place = pair_place(pair, 12288, ANSWER);

	TRY(next_dto(pair->dto[1], DAT_DTO_RECEIVE, 5, QUESTION));
	memcpy(pair->memory + 12288, "from elsewhere..", ANSWER);
	OK(dat_ep_post_send(pair->ep[1], 1, &place, cookie(6), DAT_COMPLETION_DEFAULT_FLAG));
	return next_dto(pair->dto[1], DAT_DTO_SEND, 6, ANSWER);
}

/* The request is as before, so that this consumer can accept it. */
static int still_here(struct desk *desk, DAT_CR_HANDLE cr)
{
	DAT_EVENT event;

	OK(dat_cr_accept(cr, desk->pair.ep[1], 0, NULL));
	TRY(next_event(desk->pair.connection[1], DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	return next_event(desk->pair.connection[0], DAT_CONNECTION_EVENT_ESTABLISHED, &event);
}

/* The program in user space kills the process at stage 1, and goes on to stage 2. */
static int handoff_to_process(void)
{
	struct desk desk = {};
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	TRY(desk_make(&desk));
	TRY(call(&desk, &cr));
	REFUSED(dat_cr_handoff(cr, ktest_port + 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	OK(dat_cr_handoff(cr, ktest_port));
	REFUSED(dat_cr_query(cr, 0, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	REFUSED(dat_cr_accept(cr, desk.pair.ep[1], 0, NULL), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_CR);
	TRY(answered(&desk));
	TRY(call(&desk, &cr));
	WRITE_ONCE(ktest_stage, 1);
	TRY(next_event(desk.pair.connection[0], DAT_CONNECTION_EVENT_DISCONNECTED, &event));
	UNTIL(READ_ONCE(ktest_stage) == 2);
	UNTIL(dat_cr_handoff(cr, ktest_port) ==
	      (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2));
	return still_here(&desk, cr);
}

/* The process at `port` belongs to another user. */
static int handoff_to_user(void)
{
	struct desk desk = {};
	DAT_CR_HANDLE cr;

	TRY(desk_make(&desk));
	TRY(call(&desk, &cr));
	REFUSED(dat_cr_handoff(cr, ktest_port), DAT_PRIVILEGES_VIOLATION, 0);
	REFUSED(kdapl_cr_handoff_to_user(cr, ktest_port, 0), DAT_PRIVILEGES_VIOLATION, 0);
	/* No user has this number. */
	REFUSED(kdapl_cr_handoff_to_user(cr, ktest_port, U32_MAX), DAT_PRIVILEGES_VIOLATION, 0);
	REFUSED(kdapl_cr_handoff_to_user(cr, desk.conn_qual, ORDINARY_USER),
		DAT_PRIVILEGES_VIOLATION, 0);
	REFUSED(kdapl_cr_handoff_to_user(cr, ktest_port + 1, ORDINARY_USER),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	OK(kdapl_cr_handoff_to_user(cr, ktest_port, ORDINARY_USER));
	WRITE_ONCE(ktest_stage, 1);
	return answered(&desk);
}

/* The service point of the process at `port` has as many requests as it takes. */
static int handoff_to_full(void)
{
	struct desk desk = {};
	DAT_CR_HANDLE cr;

	TRY(desk_make(&desk));
	TRY(call(&desk, &cr));
	REFUSED(dat_cr_handoff(cr, ktest_port), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_CREDITS);
	WRITE_ONCE(ktest_stage, 1);
	return still_here(&desk, cr);
}

/* A service point hands a request to itself, and then to one of another adapter. */
static int handoff_to_itself(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL, requests;
	DAT_CONN_QUAL other_qual;
	struct desk desk = {};
	DAT_IA_HANDLE other;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	int error;

	TRY(desk_make(&desk));
	TRY(call(&desk, &cr));
	OK(dat_cr_handoff(cr, desk.conn_qual));
	TRY(next_request(desk.pair.connection[1], desk.psp, desk.conn_qual, &cr));
	TRY(accept(&desk.pair, cr));
	TRY(ask(&desk));
	TRY(answer(&desk.pair));
	TRY(hear(&desk));
	TRY(call(&desk, &cr));
	OK(dat_ia_open(ia_attr.adapter_name, 8, &evd, &other));
	error = dat_evd_kcreate(other, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG, &requests) ||
		dat_psp_create_any(other, &other_qual, requests, DAT_PSP_CONSUMER_FLAG, &psp) ||
		dat_cr_handoff(cr, other_qual) ||
		next_request(requests, psp, other_qual, &cr) || dat_cr_reject(cr, 0, NULL);
	OK(dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
	EXPECT(!error);
	return 0;
}

/* Makes a PSP that takes handoffs at `port` + 3, whose EVD is full. */
static int make_crowded(void)
{
	DAT_PSP_HANDLE psp;
	DAT_EVD_HANDLE evd;

	OK(dat_evd_kcreate(ia, 2, DAT_UPCALL_DISABLE, NULL,
			   DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG, &evd));
	OK(dat_psp_create(ia, ktest_port + 3, evd, DAT_PSP_CONSUMER_FLAG | KDAPL_PSP_HANDOFF_FLAG,
			  &psp));
	while (!post_number(evd, 1))
		;
	return 0;
}

/*
 * The PSP at `port` takes requests that processes hand off. The PSP and the RSP at the next ports
 * do not. The program in user space begins at stage 1, and ends with stage 3.
 */
static int handoff_from_process(void)
{
	const DAT_PSP_FLAGS flags = DAT_PSP_CONSUMER_FLAG | KDAPL_PSP_HANDOFF_FLAG;
	DAT_PSP_HANDLE asks, other;
	struct pair pair = {};
	DAT_PSP_PARAM param;
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;

	TRY(pair_make(&pair));
	OK(dat_psp_create(ia, ktest_port, pair.connection[1], flags, &asks));
	OK(dat_psp_query(asks, 0, &param));
	SAME(param.psp_flags, flags);
	OK(dat_psp_create(ia, ktest_port + 1, pair.connection[1], DAT_PSP_CONSUMER_FLAG, &other));
	OK(dat_psp_query(other, 0, &param));
	SAME(param.psp_flags, DAT_PSP_CONSUMER_FLAG);
	OK(dat_rsp_create(ia, ktest_port + 2, DAT_HANDLE_NULL, pair.connection[1], &rsp));
	TRY(make_crowded());
	WRITE_ONCE(ktest_stage, 1);
	/* The first request here is the one that may come. */
	TRY(next_request(pair.connection[1], asks, ktest_port, &cr));
	TRY(accept(&pair, cr));
	TRY(answer(&pair));
	OK(dat_psp_free(asks));
	WRITE_ONCE(ktest_stage, 2);
	UNTIL(READ_ONCE(ktest_stage) == 3);
	return 0;
}

const struct ktest handoff_tests[] = {
	{ "handoff_to_process", handoff_to_process },
	{ "handoff_to_user", handoff_to_user },
	{ "handoff_to_full", handoff_to_full },
	{ "handoff_to_itself", handoff_to_itself },
	{ "handoff_from_process", handoff_from_process },
	{}
};

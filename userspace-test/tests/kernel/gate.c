// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the ready gate. One EVD has all events of an Endpoint. */
#include <linux/string.h>

#include "gate.h"

#define ALL_STREAMS	(DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_DTO_FLAG |	\
			 DAT_EVD_RMR_BIND_FLAG)

size_t gate_place(unsigned int side, unsigned int number)
{
	return (1 + side) * 16384 + number * GATE_MESSAGE;
}

int gate_make(struct pair *pair)
{
	return gate_make_with(pair, DAT_HANDLE_NULL);
}

int gate_make_with(struct pair *pair, DAT_EVD_HANDLE requests)
{
	DAT_EVD_HANDLE request;
	DAT_LMR_TRIPLET place;
	unsigned int side, i;

	TRY(pair_make(pair));
	for (side = 0; side < 2; side++) {
		OK(dat_evd_kcreate(ia, 128, DAT_UPCALL_DISABLE, NULL, ALL_STREAMS,
				   &pair->dto[side]));
		pair->connection[side] = pair->dto[side];
		request = side == 0 && requests ? requests : pair->dto[side];
		OK(dat_ep_create(ia, pz, pair->dto[side], request, pair->dto[side], NULL,
				 &pair->ep[side]));
		for (i = 0; i < GATE_RECEIVES; i++) {
			place = pair_place(pair, gate_place(side, i), GATE_MESSAGE);
			OK(dat_ep_post_recv(pair->ep[side], 1, &place, cookie(i),
					    DAT_COMPLETION_DEFAULT_FLAG));
		}
	}
	return 0;
}

int gate_established(const struct pair *pair, unsigned int side)
{
	DAT_EVENT event;

	TRY(next_event(pair->dto[side], DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	EXPECT(event.event_data.connect_event_data.ep_handle == pair->ep[side]);
	return 0;
}

int gate_connect(struct pair *pair, unsigned int closed)
{
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	unsigned int side;

	TRY(gate_make(pair));
	OK(dat_psp_create_any(ia, &conn_qual, pair->dto[1], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(pair->ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, closed & CLIENT ? KDAPL_READY_GATE_FLAG : 0));
	TRY(next_event(pair->dto[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	OK(kdapl_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair->ep[1], 0, NULL,
			   closed & SERVER ? KDAPL_READY_GATE_FLAG : 0));
	OK(dat_psp_free(psp));
	for (side = 0; side < 2; side++)
		if (!(closed & 1 << side))
			TRY(gate_established(pair, side));
	return 0;
}

int gate_send(const struct pair *pair, unsigned int from, unsigned int first, unsigned int count)
{
	DAT_LMR_TRIPLET place = pair_place(pair, 0, GATE_MESSAGE);
	unsigned int number;

	for (number = first; number < first + count; number++) {
		memset(pair->memory, number + 1, GATE_MESSAGE);
		OK(dat_ep_post_send(pair->ep[from], 1, &place, cookie(number),
				    DAT_COMPLETION_DEFAULT_FLAG));
		TRY(next_dto(pair->dto[from], DAT_DTO_SEND, number, GATE_MESSAGE));
	}
	return gate_arrived(pair, 1 - from, number - 1);
}

int gate_arrived(const struct pair *pair, unsigned int side, unsigned int number)
{
	const size_t last = gate_place(side, number) + GATE_MESSAGE - 1;

	UNTIL(READ_ONCE(pair->memory[last]) == number + 1);
	return 0;
}

int gate_receives(const struct pair *pair, unsigned int side, unsigned int first,
		  unsigned int count)
{
	unsigned int number;

	for (number = first; number < first + count; number++) {
		TRY(next_dto(pair->dto[side], DAT_DTO_RECEIVE, number, GATE_MESSAGE));
		SAME(pair->memory[gate_place(side, number)], number + 1);
	}
	return 0;
}

int gate_flushes(const struct pair *pair, unsigned int side, unsigned int first)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	unsigned int number;
	DAT_EVENT event;

	for (number = first; number < GATE_RECEIVES; number++) {
		TRY(next_event(pair->dto[side], DAT_DTO_COMPLETION_EVENT, &event));
		dto = &event.event_data.dto_completion_event_data;
		SAME(dto->status, DAT_DTO_ERR_FLUSHED);
		SAME(dto->user_cookie.as_64, number);
	}
	return 0;
}

int gate_quiet(const struct pair *pair, unsigned int side)
{
	DAT_EVENT event;

	REFUSED(dat_evd_wait(pair->dto[side], QUIET_MS * USEC_PER_MSEC, 1, &event, NULL),
		DAT_TIMEOUT_EXPIRED, 0);
	return 0;
}

int gate_state(const struct pair *pair, unsigned int side, DAT_EP_STATE expected)
{
	DAT_EP_STATE state;

	OK(dat_ep_get_status(pair->ep[side], &state, NULL, NULL));
	SAME(state, expected);
	return 0;
}

/* The other side sends to @side, whose gate is closed. Its events follow once the gate is open. */
static int events_wait(const struct pair *pair, unsigned int side)
{
	const DAT_LMR_TRIPLET place = pair_place(pair, 0, GATE_MESSAGE);

	TRY(gate_send(pair, 1 - side, 0, 3));
	TRY(gate_quiet(pair, side));
	TRY(gate_state(pair, side, side ? DAT_EP_STATE_COMPLETION_PENDING :
					  DAT_EP_STATE_ACTIVE_CONNECTION_PENDING));
	REFUSED(dat_ep_post_send(pair->ep[side], 1, &place, cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_INVALID_STATE, side ? DAT_INVALID_STATE_EP_COMPLPENDING :
					  DAT_INVALID_STATE_EP_ACTCONNPENDING);
	OK(kdapl_ep_ready(pair->ep[side]));
	TRY(gate_established(pair, side));
	TRY(gate_receives(pair, side, 0, 3));
	TRY(gate_state(pair, side, DAT_EP_STATE_CONNECTED));
	/* A second call has no effect, and the connection is as any other. */
	OK(kdapl_ep_ready(pair->ep[side]));
	TRY(gate_quiet(pair, side));
	TRY(gate_send(pair, 1 - side, 3, 2));
	TRY(gate_receives(pair, side, 3, 2));
	TRY(gate_send(pair, side, 0, 1));
	return gate_receives(pair, 1 - side, 0, 1);
}

static int gate_of_acceptor(void)
{
	struct pair pair = {};

	TRY(gate_connect(&pair, SERVER));
	return events_wait(&pair, 1);
}

static int gate_of_connector(void)
{
	struct pair pair = {};

	TRY(gate_connect(&pair, CLIENT));
	return events_wait(&pair, 0);
}

static int gate_of_both(void)
{
	struct pair pair = {};

	TRY(gate_connect(&pair, CLIENT | SERVER));
	TRY(gate_quiet(&pair, 0));
	TRY(gate_quiet(&pair, 1));
	OK(kdapl_ep_ready(pair.ep[0]));
	TRY(gate_established(&pair, 0));
	return events_wait(&pair, 1);
}

/* Gates that are opened before the connection is established hold nothing back. */
static int gate_opened_early(void)
{
	DAT_CONN_QUAL conn_qual;
	struct pair pair = {};
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	TRY(gate_make(&pair));
	OK(dat_psp_create_any(ia, &conn_qual, pair.dto[1], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(pair.ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, KDAPL_READY_GATE_FLAG));
	OK(kdapl_ep_ready(pair.ep[0]));
	TRY(next_event(pair.dto[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	OK(kdapl_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair.ep[1], 0, NULL,
			   KDAPL_READY_GATE_FLAG));
	OK(kdapl_ep_ready(pair.ep[1]));
	TRY(gate_established(&pair, 0));
	TRY(gate_established(&pair, 1));
	TRY(gate_send(&pair, 0, 0, 1));
	return gate_receives(&pair, 1, 0, 1);
}

/* The peer of @side disconnects while the gate of @side is closed. */
static int peer_ends(unsigned int side)
{
	struct pair pair = {};
	DAT_EP_STATE state;
	DAT_EVENT event;

	TRY(gate_connect(&pair, 1 << side));
	TRY(gate_send(&pair, 1 - side, 0, 2));
	OK(dat_ep_disconnect(pair.ep[1 - side], DAT_CLOSE_GRACEFUL_FLAG));
	TRY(gate_flushes(&pair, 1 - side, 0));
	TRY(next_event(pair.dto[1 - side], DAT_CONNECTION_EVENT_DISCONNECTED, &event));
	UNTIL(!dat_ep_get_status(pair.ep[side], &state, NULL, NULL) &&
	      state == DAT_EP_STATE_DISCONNECT_PENDING);
	TRY(gate_quiet(&pair, side));
	REFUSED(dat_ep_reset(pair.ep[side]), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCPENDING);
	OK(kdapl_ep_ready(pair.ep[side]));
	TRY(gate_established(&pair, side));
	TRY(gate_receives(&pair, side, 0, 2));
	TRY(gate_flushes(&pair, side, 2));
	TRY(next_event(pair.dto[side], DAT_CONNECTION_EVENT_DISCONNECTED, &event));
	REFUSED(kdapl_ep_ready(pair.ep[side]), DAT_INVALID_STATE,
		DAT_INVALID_STATE_EP_DISCONNECTED);
	OK(dat_ep_reset(pair.ep[side]));
	return gate_state(&pair, side, DAT_EP_STATE_UNCONNECTED);
}

static int gate_peer_disconnects(void)
{
	TRY(peer_ends(1));
	return peer_ends(0);
}

static int gate_disconnected_instead(void)
{
	struct pair pair = {};
	DAT_EVENT event;

	TRY(gate_connect(&pair, SERVER));
	TRY(gate_send(&pair, 0, 0, 2));
	OK(dat_ep_disconnect(pair.ep[1], DAT_CLOSE_GRACEFUL_FLAG));
	TRY(gate_receives(&pair, 1, 0, 2));
	TRY(gate_flushes(&pair, 1, 2));
	TRY(next_event(pair.dto[1], DAT_CONNECTION_EVENT_DISCONNECTED, &event));
	REFUSED(kdapl_ep_ready(pair.ep[1]), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED);
	TRY(gate_flushes(&pair, 0, 0));
	return next_event(pair.dto[0], DAT_CONNECTION_EVENT_DISCONNECTED, &event);
}

static int gate_freed_instead(void)
{
	struct pair pair = {};
	DAT_EVENT event;

	TRY(gate_connect(&pair, SERVER));
	TRY(gate_send(&pair, 0, 0, 2));
	OK(dat_ep_free(pair.ep[1]));
	REFUSED(kdapl_ep_ready(pair.ep[1]), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	TRY(gate_flushes(&pair, 0, 0));
	TRY(next_event(pair.dto[0], DAT_CONNECTION_EVENT_DISCONNECTED, &event));
	/* No event of the freed Endpoint was queued, and the EVD has no other user. */
	TRY(gate_quiet(&pair, 1));
	OK(dat_evd_free(pair.dto[1]));
	return 0;
}

/* A connect that fails is reported although the gate is closed. */
static int gate_of_failure(void)
{
	DAT_CONN_QUAL nobody;
	struct pair pair = {};
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	TRY(gate_make(&pair));
	OK(dat_psp_create_any(ia, &nobody, pair.dto[1], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_psp_free(psp));
	OK(dat_ep_connect(pair.ep[0], ia_attr.ia_address_ptr, nobody, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, KDAPL_READY_GATE_FLAG));
	TRY(next_event(pair.dto[0], DAT_CONNECTION_EVENT_NON_PEER_REJECTED, &event));
	REFUSED(kdapl_ep_ready(pair.ep[0]), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED);
	return gate_flushes(&pair, 0, 0);
}

const struct ktest gate_tests[] = {
	{ "gate_of_acceptor", gate_of_acceptor },
	{ "gate_of_connector", gate_of_connector },
	{ "gate_of_both", gate_of_both },
	{ "gate_opened_early", gate_opened_early },
	{ "gate_peer_disconnects", gate_peer_disconnects },
	{ "gate_disconnected_instead", gate_disconnected_instead },
	{ "gate_freed_instead", gate_freed_instead },
	{ "gate_of_failure", gate_of_failure },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* A listener that attacks its callers. */
#include "hostile.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLERS		16	/* callers at the same time */
#define ANSWER_BYTES	196	/* limit of an accept over InfiniBand and RoCE */
#define REJECT_BYTES	148

static struct rdma_event_channel *channel;
static struct attack *callers[CALLERS];

bool lie_in_wait(const struct aim *aim)
{
	struct sockaddr_storage at = aim->address;
	struct rdma_cm_id *id;

	/* The port has the same offset in both families. */
	((struct sockaddr_in *)&at)->sin_port = htons(aim->ports[0]);
	channel = rdma_create_event_channel();
	if (channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) &&
	    !rdma_bind_addr(id, (struct sockaddr *)&at) && !rdma_listen(id, 128))
		return true;
	perror("rdmacm-hostile: listening");
	return false;
}

static void refuse(struct rdma_cm_id *id)
{
	uint8_t data[256];
	unsigned int length = private_data(data, REJECT_BYTES);

	tally.refused++;
	/* A program can choose between two reject reasons only. */
	if (one_in(3))
		rdma_reject_ece(id, data, length);
	else
		rdma_reject(id, data, length);
}

static void accept_caller(struct attack *attack)
{
	struct rdma_conn_param param;
	uint8_t data[256];

	if (attack->qp || !make_qp(attack))
		return;
	attack->ready = !one_in(8) && modify(attack, IBV_QPS_RTR) && modify(attack, IBV_QPS_RTS);
	/* Before the accept the victim expects no message. */
	if (attack->ready && one_in(4))
		post_anything(attack);
	param = some_parameters(attack, data, ANSWER_BYTES);
	if (!rdma_accept(attack->id, &param))
		tally.answered++;
	/* The victim has not confirmed the accept yet. */
	if (attack->ready && one_in(2))
		post_anything(attack);
	if (one_in(8))
		rdma_disconnect(attack->id);
}

static void forget(struct attack **caller)
{
	end(*caller);
	free(*caller);
	*caller = NULL;
}

/* Performs a random act on a caller in any state. */
static void provoke(struct attack **caller)
{
	struct attack *attack = *caller;
	unsigned int what = below(16);

	if (what == 0) {
		forget(caller);
		return;
	}
	if (attack->id && what == 1)
		rdma_disconnect(attack->id);
	else if (attack->id && what == 2)
		refuse(attack->id);
	else if (attack->id && what == 3)
		accept_caller(attack);
	else if (what == 4)
		drop_qp(attack);
	else if (what == 5)
		drop_id(attack);
	else if (attack->qp && attack->ready)
		post_anything(attack);
	if (attack->cq)
		drain(attack, 0);
}

/* Stores a new caller, which owns the id. */
static void meet(struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	unsigned int at = below(CALLERS);

	tally.requests++;
	if (callers[at])
		forget(&callers[at]);
	callers[at] = calloc(1, sizeof(struct attack));
	if (!callers[at])
		return;
	callers[at]->id = id;
	id->context = callers[at];
	learn(callers[at], param);
}

static void answer(struct attack **caller)
{
	switch (below(16)) {
	case 0:
		/* No answer for now. */
		return;
	case 1:
		forget(caller);
		return;
	case 2:
	case 3:
		refuse((*caller)->id);
		return;
	case 4:
		dawdle(30);
		/* fall through */
	default:
		accept_caller(*caller);
	}
}

static struct attack **caller_of(const struct rdma_cm_id *id)
{
	unsigned int i;

	for (i = 0; i < CALLERS; i++)
		if (callers[i] && callers[i]->id == id)
			return &callers[i];
	return NULL;
}

static void take_event(void)
{
	struct rdma_cm_event *event;
	struct attack **caller;
	struct rdma_cm_id *id;
	int type;

	if (rdma_get_cm_event(channel, &event))
		return;
	id = event->id;
	type = event->event;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		meet(id, &event->param.conn);
	rdma_ack_cm_event(event);
	caller = caller_of(id);
	if (!caller)
		return;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		answer(caller);
	} else if (type == RDMA_CM_EVENT_ESTABLISHED) {
		tally.established++;
		if ((*caller)->qp && (*caller)->ready)
			post_anything(*caller);
	} else if (one_in(2)) {
		forget(caller);
	}
}

/* Handles one event, and performs one act on one caller. */
void receive_and_attack(void)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct attack **caller = &callers[below(CALLERS)];

	if (poll(&fd, 1, 1 + below(4)) > 0)
		take_event();
	if (*caller && one_in(2))
		provoke(caller);
}

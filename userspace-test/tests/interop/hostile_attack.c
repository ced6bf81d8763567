// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* One attempt to connect, and its end. */
#include "hostile.h"

#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define RESOLVE_MS	1000
#define PRIVATE_BYTES	56	/* limit of a request over InfiniBand and RoCE */

/* Stores the address of the victim's memory, if the private data contain it. */
void learn(struct attack *attack, const struct rdma_conn_param *param)
{
	if (!param->private_data || param->private_data_len < 16)
		return;
	memcpy(&attack->prey.address, param->private_data, 8);
	memcpy(&attack->prey.rkey, (char *)param->private_data + 8, 4);
	memcpy(&attack->prey.length, (char *)param->private_data + 12, 4);
	attack->prey.address = be64toh(attack->prey.address);
	attack->prey.rkey = ntohl(attack->prey.rkey);
	attack->prey.length = ntohl(attack->prey.length);
}

/* Returns the type of the next event within `ms` and acknowledges it, or returns -1. */
static int next_event(struct attack *attack, unsigned int ms)
{
	struct pollfd fd = { .fd = attack->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	int type;

	if (poll(&fd, 1, ms) <= 0 || rdma_get_cm_event(attack->channel, &event))
		return -1;
	type = event->event;
	if (type == RDMA_CM_EVENT_CONNECT_RESPONSE)
		learn(attack, &event->param.conn);
	rdma_ack_cm_event(event);
	return type;
}

static bool resolve(struct attack *attack, const struct aim *aim)
{
	struct sockaddr_storage to = aim->address;

	/* The port has the same offset in both families. */
	((struct sockaddr_in *)&to)->sin_port = htons(aim->ports[below(aim->count)]);
	return !rdma_resolve_addr(attack->id, NULL, (struct sockaddr *)&to, RESOLVE_MS) &&
	       next_event(attack, RESOLVE_MS) == RDMA_CM_EVENT_ADDR_RESOLVED &&
	       !rdma_resolve_route(attack->id, RESOLVE_MS) &&
	       next_event(attack, RESOLVE_MS) == RDMA_CM_EVENT_ROUTE_RESOLVED;
}

bool modify(struct attack *attack, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(attack->id, &attr, &mask))
		return false;
	return !ibv_modify_qp(attack->qp, &attr, mask);
}

bool make_qp(struct attack *attack)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = QUEUE, .max_recv_wr = QUEUE, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	const int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	/* They stay when the queue pair is destroyed. */
	if (!attack->pd)
		attack->pd = ibv_alloc_pd(attack->id->verbs);
	if (!attack->cq)
		attack->cq = ibv_create_cq(attack->id->verbs, 2 * QUEUE, NULL, NULL, 0);
	if (!attack->pd || !attack->cq)
		return false;
	if (!attack->mr)
		attack->mr = ibv_reg_mr(attack->pd, memory, sizeof(memory), access);
	if (!attack->mr)
		return false;
	attr.send_cq = attr.recv_cq = attack->cq;
	attack->qp = ibv_create_qp(attack->pd, &attr);
	return attack->qp && modify(attack, IBV_QPS_INIT);
}

/* Writes a header of a wide connection qualifier, valid or invalid. */
static void frame(uint8_t *data, unsigned int length)
{
	static const uint64_t quals[] = { 0, 1, 7, 0xffff, 0x10000, 1ull << 33, (1ull << 33) + 1,
					  ~0ull };
	uint64_t qual = htobe64(one_in(2) ? quals[below(8)] : chance());

	data[0] = 'K';
	data[1] = one_in(16) ? below(256) : 'D';
	data[2] = one_in(8) ? below(256) : 1;
	data[3] = one_in(2) ? below(256) : length > 12 ? length - 12 : 0;
	memcpy(data + 4, &qual, 8);
}

unsigned int private_data(uint8_t *data, unsigned int most)
{
	unsigned int i, length = one_in(4) ? most : below(most + 1);

	for (i = 0; i < 256; i++)
		data[i] = one_in(4) ? 0 : below(256);
	if (one_in(2))
		frame(data, length);
	/* The local kernel must refuse more bytes than the limit. */
	return one_in(32) ? below(256) : length;
}

/*
 * Returns random parameters of a request or an accept. `data` has 256 bytes; the private data use
 * at most `most` of them.
 */
struct rdma_conn_param some_parameters(const struct attack *attack, uint8_t *data,
				       unsigned int most)
{
	return (struct rdma_conn_param){
		.private_data_len = private_data(data, most),
		.private_data = data,
		/* The local kernel must refuse more than the device supports. */
		.responder_resources = one_in(2) ? 1 : below(one_in(16) ? 256 : 17),
		.initiator_depth = one_in(2) ? 1 : below(one_in(16) ? 256 : 17),
		.flow_control = below(2),
		.retry_count = one_in(2) ? 7 : below(8),
		.rnr_retry_count = one_in(2) ? 0 : below(8),
		.srq = one_in(8),
		.qp_num = one_in(16) ? chance() & 0xffffff : attack->qp->qp_num,
	};
}

static bool request(struct attack *attack)
{
	uint8_t data[256];
	struct rdma_conn_param param = some_parameters(attack, data, PRIVATE_BYTES);

	return !rdma_connect(attack->id, &param);
}

/* Answers the victim's accept. */
static void answer(struct attack *attack)
{
	uint8_t data[256];

	tally.answered++;
	switch (below(8)) {
	case 0:
		/*
		 * The victim waits for the confirmation. It gets a reject, or no message if that is
		 * lost.
		 */
		rdma_reject(attack->id, data, private_data(data, PRIVATE_BYTES));
		return;
	case 1:
		dawdle(50);
		return;
	default:
		attack->ready = modify(attack, IBV_QPS_RTR) && modify(attack, IBV_QPS_RTS);
	}
	/* The post may precede the confirmation, replace it or follow it. */
	if (attack->ready && one_in(3))
		post_anything(attack);
	if (!one_in(8) && !rdma_establish(attack->id))
		tally.established++;
}

static void misbehave(struct attack *attack)
{
	unsigned int rounds = below(6);

	while (rounds--) {
		post_anything(attack);
		drain(attack, below(10));
		if (one_in(4))
			dawdle(10);
	}
	if (one_in(3))
		rdma_disconnect(attack->id);
	if (one_in(4))
		rdma_disconnect(attack->id);
	if (one_in(4))
		post_anything(attack);
	if (one_in(4))
		next_event(attack, 20);
}

static void converse(struct attack *attack)
{
	switch (next_event(attack, one_in(8) ? 0 : 500)) {
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		answer(attack);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* iWARP has no confirmation. */
		tally.established++;
		attack->ready = modify(attack, IBV_QPS_RTS);
		break;
	case RDMA_CM_EVENT_REJECTED:
		tally.refused++;
		return;
	default:
		return;
	}
	if (attack->ready)
		misbehave(attack);
}

void drop_id(struct attack *attack)
{
	if (attack->id)
		rdma_destroy_id(attack->id);
	attack->id = NULL;
}

void drop_qp(struct attack *attack)
{
	if (attack->qp)
		ibv_destroy_qp(attack->qp);
	attack->qp = NULL;
	attack->ready = false;
}

/* Destroys the queue pair before the id, or the id before the queue pair. */
void end(struct attack *attack)
{
	if (one_in(2)) {
		drop_id(attack);
		drop_qp(attack);
	} else {
		drop_qp(attack);
		drop_id(attack);
	}
	if (attack->mr)
		ibv_dereg_mr(attack->mr);
	if (attack->cq)
		ibv_destroy_cq(attack->cq);
	if (attack->pd)
		ibv_dealloc_pd(attack->pd);
	if (attack->channel)
		rdma_destroy_event_channel(attack->channel);
}

void attack(const struct aim *aim)
{
	struct attack attack = { .channel = rdma_create_event_channel() };

	if (attack.channel && !rdma_create_id(attack.channel, &attack.id, NULL, RDMA_PS_TCP) &&
	    resolve(&attack, aim) && make_qp(&attack) && request(&attack)) {
		tally.requests++;
		/* Otherwise the requester ends before the answer. */
		if (!one_in(8))
			converse(&attack);
	}
	end(&attack);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The ping-pong over raw verbs, the baseline for the one over DAT. */
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "ping.h"

#define PATIENCE	(10 * HZ)
#define PATIENCE_MS	10000

static bool inline_data;
module_param(inline_data, bool, 0444);
MODULE_PARM_DESC(inline_data, "post sends with their data, to measure what it saves");

struct ping_side {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *receives, *requests;
	struct ib_qp *qp;
	u64 dma;
	/* Set by the completion queue's callback. */
	bool rung;
	wait_queue_head_t waiter;
	/* Completed by each event of the connection. */
	struct completion happened;
	enum rdma_cm_event_type event;
	u8 memory[PING_DEPTH + 1][PING_SIZE];
};

static struct rdma_cm_id *listener;

void *ping_receive_buffer(struct ping_side *side, unsigned int slot)
{
	return side->memory[slot];
}

void *ping_send_buffer(struct ping_side *side)
{
	return side->memory[PING_DEPTH];
}

static struct ib_sge place(struct ping_side *side, unsigned int slot)
{
	return (struct ib_sge){
		.addr = side->dma + slot * PING_SIZE,
		.length = PING_SIZE,
		.lkey = side->pd->local_dma_lkey,
	};
}

int ping_post_receive(struct ping_side *side, unsigned int slot)
{
	struct ib_sge sge = place(side, slot);
	struct ib_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(side->qp, &wr, NULL);
}

int ping_post_send(struct ping_side *side)
{
	struct ib_sge sge = place(side, PING_DEPTH);
	struct ib_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	if (inline_data) {
		/* The driver copies the data from the address of the processor. */
		sge.addr = (uintptr_t)ping_send_buffer(side);
		wr.send_flags |= IB_SEND_INLINE;
	}
	return ib_post_send(side->qp, &wr, NULL);
}

static void completed(struct ib_cq *cq, void *context)
{
	struct ping_side *side = context;

	WRITE_ONCE(side->rung, true);
	wake_up(&side->waiter);
}

/* Waits for the next completion. */
static int next(struct ping_side *side, struct ib_cq *cq, struct ib_wc *wc)
{
	while (ib_poll_cq(cq, 1, wc) < 1) {
		WRITE_ONCE(side->rung, false);
		ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
		/* Takes completions that preceded the request for notification. */
		if (ib_poll_cq(cq, 1, wc) > 0)
			break;
		if (wait_event_interruptible_timeout(side->waiter, READ_ONCE(side->rung),
						     PATIENCE) <= 0)
			return -ETIMEDOUT;
	}
	return wc->status == IB_WC_SUCCESS ? 0 : -EIO;
}

int ping_wait(struct ping_side *side)
{
	struct ib_wc wc;

	return next(side, side->receives, &wc) ?: (int)wc.wr_id;
}

int ping_take_sent(struct ping_side *side, unsigned int count)
{
	struct ib_wc wc;
	int error = 0;

	while (!error && count-- > 0)
		error = next(side, side->requests, &wc);
	return error;
}

static int make(struct ping_side *side)
{
	struct ib_cq_init_attr size = { .cqe = 128 };
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = 2 * PING_BATCH,
			.max_recv_wr = 2 * PING_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = inline_data ? PING_SIZE : 0,
		},
	};
	struct ib_device *device = side->id->device;
	int error;

	side->pd = ib_alloc_pd(device, 0);
	if (IS_ERR(side->pd))
		return PTR_ERR(side->pd);
	side->receives = ib_create_cq(device, completed, NULL, side, &size);
	if (IS_ERR(side->receives))
		return PTR_ERR(side->receives);
	side->requests = ib_create_cq(device, completed, NULL, side, &size);
	if (IS_ERR(side->requests))
		return PTR_ERR(side->requests);
	attr.recv_cq = side->receives;
	attr.send_cq = side->requests;
	error = rdma_create_qp(side->id, side->pd, &attr);
	if (error)
		return error;
	side->qp = side->id->qp;
	side->dma = ib_dma_map_single(device, side->memory, sizeof(side->memory),
				      DMA_BIDIRECTIONAL);
	return ib_dma_mapping_error(device, side->dma) ? -EIO : 0;
}

static int hear(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct ping_side *side = id->context;

	/* A request carries the listener's context. Its id belongs to the side from then on. */
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		side->id = id;
	side->event = event->event;
	complete(&side->happened);
	return 0;
}

static int expect(struct ping_side *side, enum rdma_cm_event_type event)
{
	if (!wait_for_completion_timeout(&side->happened, PATIENCE))
		return -ETIMEDOUT;
	return side->event == event ? 0 : -ECONNREFUSED;
}

/* Returns the first address of the network device of an RDMA device. */
static int address_of(const char *name, struct sockaddr_in *address)
{
	struct net_device *netdev;
	int error = -ENODEV;

	rtnl_lock();
	for_each_netdev(&init_net, netdev) {
		struct ib_device *device = ib_device_get_by_netdev(netdev, RDMA_DRIVER_UNKNOWN);
		const struct in_device *in_dev = __in_dev_get_rtnl(netdev);

		if (!device)
			continue;
		if (!strcmp(dev_name(&device->dev), name) && in_dev && in_dev->ifa_list) {
			address->sin_family = AF_INET;
			address->sin_addr.s_addr = rtnl_dereference(in_dev->ifa_list)->ifa_local;
			error = 0;
		}
		ib_device_put(device);
		if (!error)
			break;
	}
	rtnl_unlock();
	return error;
}

static int join(struct ping_side *side[2], struct sockaddr_in *address)
{
	struct rdma_conn_param parameters = { .retry_count = 7, .rnr_retry_count = 7 };
	struct sockaddr *sa = (struct sockaddr *)address;
	int error;

	listener = rdma_create_id(&init_net, hear, side[1], RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	side[0]->id = rdma_create_id(&init_net, hear, side[0], RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(side[0]->id))
		return PTR_ERR(side[0]->id);
	error = rdma_bind_addr(listener, sa) ?: rdma_listen(listener, 1);
	if (error)
		return error;
	address->sin_port = ((struct sockaddr_in *)&listener->route.addr.src_addr)->sin_port;
	error = rdma_resolve_addr(side[0]->id, NULL, sa, PATIENCE_MS) ?:
		expect(side[0], RDMA_CM_EVENT_ADDR_RESOLVED) ?:
		rdma_resolve_route(side[0]->id, PATIENCE_MS) ?:
		expect(side[0], RDMA_CM_EVENT_ROUTE_RESOLVED) ?:
		make(side[0]) ?:
		rdma_connect(side[0]->id, &parameters) ?:
		expect(side[1], RDMA_CM_EVENT_CONNECT_REQUEST) ?:
		make(side[1]);
	if (error)
		return error;
	rdma_lock_handler(side[1]->id);
	error = rdma_accept(side[1]->id, &parameters);
	rdma_unlock_handler(side[1]->id);
	return error ?: expect(side[0], RDMA_CM_EVENT_ESTABLISHED) ?:
			expect(side[1], RDMA_CM_EVENT_ESTABLISHED);
}

int ping_connect(const char *device, struct ping_side *side[2])
{
	struct sockaddr_in address = {};
	unsigned int number;
	int error = address_of(device, &address);

	if (error)
		return error;
	for (number = 0; number < 2; number++) {
		side[number] = kzalloc(sizeof(**side), GFP_KERNEL);
		if (!side[number])
			return -ENOMEM;
		init_waitqueue_head(&side[number]->waiter);
		init_completion(&side[number]->happened);
	}
	return join(side, &address);
}

static void destroy(struct ping_side *side)
{
	if (!side)
		return;
	if (!IS_ERR_OR_NULL(side->id)) {
		rdma_disconnect(side->id);
		if (side->dma)
			ib_dma_unmap_single(side->id->device, side->dma, sizeof(side->memory),
					    DMA_BIDIRECTIONAL);
		if (side->qp)
			rdma_destroy_qp(side->id);
	}
	if (!IS_ERR_OR_NULL(side->requests))
		ib_destroy_cq(side->requests);
	if (!IS_ERR_OR_NULL(side->receives))
		ib_destroy_cq(side->receives);
	if (!IS_ERR_OR_NULL(side->pd))
		ib_dealloc_pd(side->pd);
	if (!IS_ERR_OR_NULL(side->id))
		rdma_destroy_id(side->id);
	kfree(side);
}

void ping_disconnect(struct ping_side *side[2])
{
	if (!IS_ERR_OR_NULL(listener))
		rdma_destroy_id(listener);
	listener = NULL;
	destroy(side[0]);
	destroy(side[1]);
}

MODULE_DESCRIPTION("kDAPL benchmark: ping-pong over raw verbs");
MODULE_LICENSE("Dual BSD/GPL");

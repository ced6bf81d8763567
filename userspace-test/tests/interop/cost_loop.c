// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Two connected queue pairs of one device. */
#include "cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **device;
	struct ibv_context *context = NULL;

	for (device = list; device && *device; device++)
		if (!strcmp(ibv_get_device_name(*device), name))
			context = ibv_open_device(*device);
	ibv_free_device_list(list);
	if (!context)
		fail("ibv_open_device");
	return context;
}

/* Returns the index of the first address of RoCE v2 that is an IPv4 address. */
static int find_gid(struct ibv_context *context, union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entry;

	for (int index = 0; !ibv_query_gid_ex(context, 1, index, &entry, 0); index++) {
		if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(entry.gid.raw, mapped, sizeof(mapped)))
			continue;
		*gid = entry.gid;
		return index;
	}
	fail("no address of RoCE v2");
}

static struct ibv_qp *make_qp(struct loop *loop)
{
	struct ibv_qp_init_attr init = {
		.send_cq = loop->cq,
		.recv_cq = loop->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = COST_DEPTH, .max_recv_wr = COST_DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp *qp = ibv_create_qp(loop->pd, &init);

	if (!qp ||
	    ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		fail("ibv_create_qp");
	return qp;
}

static void connect_qp(struct loop *loop, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = COST_WINDOW,
		.max_rd_atomic = COST_WINDOW,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 1 },
	};

	if (ibv_query_port(loop->context, 1, &port))
		fail("ibv_query_port");
	attr.path_mtu = port.active_mtu;
	attr.ah_attr.grh.sgid_index = find_gid(loop->context, &attr.ah_attr.grh.dgid);
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		fail("ibv_modify_qp(RTR)");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		fail("ibv_modify_qp(RTS)");
}

struct loop *loop_make(const char *device)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_MW_BIND;
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		fail("no memory");
	loop->context = open_device(device);
	loop->memory = aligned_alloc(4096, 2 * COST_LONG);
	if (!loop->memory)
		fail("no memory");
	memset(loop->memory, 1, 2 * COST_LONG);
	loop->pd = ibv_alloc_pd(loop->context);
	loop->channel = ibv_create_comp_channel(loop->context);
	if (!loop->pd || !loop->channel)
		fail("ibv_alloc_pd");
	loop->cq = ibv_create_cq(loop->context, 4 * COST_DEPTH, NULL, loop->channel, 0);
	loop->mr = ibv_reg_mr(loop->pd, loop->memory, 2 * COST_LONG, access);
	if (!loop->cq || !loop->mr)
		fail("ibv_reg_mr");
	loop->from = make_qp(loop);
	loop->to = make_qp(loop);
	connect_qp(loop, loop->from, loop->to->qp_num);
	connect_qp(loop, loop->to, loop->from->qp_num);
	return loop;
}

static unsigned int poll(struct loop *loop, unsigned int count)
{
	struct ibv_wc wcs[COST_DEPTH];
	int found = ibv_poll_cq(loop->cq, count < COST_DEPTH ? count : COST_DEPTH, wcs);

	if (found < 0)
		fail("ibv_poll_cq");
	for (int index = 0; index < found; index++)
		if (wcs[index].status != IBV_WC_SUCCESS)
			fail(ibv_wc_status_str(wcs[index].status));
	return found;
}

void loop_wait(struct loop *loop, unsigned int count)
{
	struct ibv_cq *cq;
	void *context;

	count -= poll(loop, count);
	while (count) {
		unsigned int found;

		if (ibv_req_notify_cq(loop->cq, 0))
			fail("ibv_req_notify_cq");
		found = poll(loop, count);
		count -= found;
		if (!count || found)
			continue;
		if (ibv_get_cq_event(loop->channel, &cq, &context))
			fail("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		count -= poll(loop, count);
	}
}

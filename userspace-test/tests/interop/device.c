// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Protection domain, completion queue, memory, and posts. */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#define PAGE 4096

struct device *device_make(struct ibv_context *context, size_t memory, int cq_entries)
{
	struct device *device = calloc(1, sizeof(*device));
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	if (!device)
		fail("no memory");
	memory = (memory + PAGE) / PAGE * PAGE;
	device->memory = aligned_alloc(PAGE, memory);
	if (!device->memory)
		fail("no memory for %zu bytes", memory);
	device->pd = ibv_alloc_pd(context);
	if (!device->pd)
		fail_errno("ibv_alloc_pd");
	device->channel = ibv_create_comp_channel(context);
	if (!device->channel)
		fail_errno("ibv_create_comp_channel");
	device->cq = ibv_create_cq(context, cq_entries, NULL, device->channel, 0);
	if (!device->cq)
		fail_errno("ibv_create_cq");
	if (ibv_req_notify_cq(device->cq, 0))
		fail_errno("ibv_req_notify_cq");
	device->mr = ibv_reg_mr(device->pd, device->memory, memory, access);
	if (!device->mr)
		fail_errno("ibv_reg_mr (see ulimit -l)");
	return device;
}

void device_drop(struct device *device)
{
	if (!device)
		return;
	ibv_dereg_mr(device->mr);
	ibv_destroy_cq(device->cq);
	ibv_destroy_comp_channel(device->channel);
	ibv_dealloc_pd(device->pd);
	free(device->memory);
	free(device);
}

void qp_make(struct rdma_cm_id *id, struct device *device)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = device->cq,
		.recv_cq = device->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (rdma_create_qp(id, device->pd, &attr))
		fail_errno("rdma_create_qp");
}

static struct ibv_sge piece(struct device *device, size_t offset, size_t length)
{
	return (struct ibv_sge){ .addr = (uintptr_t)device->memory + offset, .length = length,
				 .lkey = device->mr->lkey };
}

void post_receive(struct rdma_cm_id *id, struct device *device, uint64_t wr_id, size_t offset,
		  size_t length)
{
	struct ibv_sge sge = piece(device, offset, length);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;
	int error = ibv_post_recv(id->qp, &wr, &bad);

	if (error) {
		errno = error;
		fail_errno("ibv_post_recv");
	}
}

static void post_message(struct rdma_cm_id *id, struct ibv_sge sge, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;
	int error;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	error = ibv_post_send(id->qp, &wr, &bad);
	if (error) {
		errno = error;
		fail_errno("ibv_post_send");
	}
}

void post_send(struct rdma_cm_id *id, struct device *device, uint64_t wr_id, size_t offset,
	       size_t length)
{
	post_message(id, piece(device, offset, length),
		     (struct ibv_send_wr){ .wr_id = wr_id, .opcode = IBV_WR_SEND });
}

void post_send_immediate(struct rdma_cm_id *id, struct device *device, size_t offset, size_t length,
			 uint32_t data)
{
	post_message(id, piece(device, offset, length),
		     (struct ibv_send_wr){ .opcode = IBV_WR_SEND_WITH_IMM,
					   .imm_data = htonl(data) });
}

bool poll_completion(struct device *device, struct ibv_wc *wc)
{
	int found = ibv_poll_cq(device->cq, 1, wc);

	if (found < 0)
		fail("ibv_poll_cq failed");
	return found == 1;
}

/* Waits for the next completion. */
struct ibv_wc next_completion(struct device *device)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	while (!poll_completion(device, &wc)) {
		if (ibv_get_cq_event(device->channel, &cq, &context))
			fail_errno("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		/* Later completions notify again. Earlier ones are polled next. */
		if (ibv_req_notify_cq(device->cq, 0))
			fail_errno("ibv_req_notify_cq");
	}
	something_happened();
	return wc;
}

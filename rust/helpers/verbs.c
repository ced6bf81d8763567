// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The verbs that are static inline functions, and accessors for large driver structures. */
#include <rdma/ib_verbs.h>

#include "helpers.h"

int kdapl_helper_ib_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	return ib_poll_cq(cq, num_entries, wc);
}

int kdapl_helper_ib_req_notify_cq(struct ib_cq *cq, unsigned int flags)
{
	return ib_req_notify_cq(cq, (enum ib_cq_notify_flags)flags);
}

int kdapl_helper_ib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	return ib_post_send(qp, wr, NULL);
}

int kdapl_helper_ib_post_send_chain(struct ib_qp *qp, const struct ib_send_wr *wr,
				    const struct ib_send_wr **bad_wr)
{
	return ib_post_send(qp, wr, bad_wr);
}

int kdapl_helper_ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr)
{
	return ib_post_recv(qp, wr, NULL);
}

int kdapl_helper_ib_post_recv_chain(struct ib_qp *qp, const struct ib_recv_wr *wr,
				    const struct ib_recv_wr **bad_wr)
{
	return ib_post_recv(qp, wr, bad_wr);
}

int kdapl_helper_ib_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr)
{
	return ib_post_srq_recv(srq, wr, NULL);
}

bool kdapl_helper_has_srqs(const struct ib_device *dev)
{
	return dev->ops.create_srq && dev->ops.modify_srq && dev->ops.post_srq_recv;
}

bool kdapl_helper_pd_is_used(const struct ib_pd *pd)
{
	return atomic_read(&pd->usecnt);
}

u32 kdapl_helper_device_transport(const struct ib_device *dev, u32 port)
{
	if (!rdma_is_port_valid(dev, port))
		return KDAPL_TRANSPORT_IB;
	if (rdma_protocol_iwarp(dev, port))
		return KDAPL_TRANSPORT_IWARP;
	return rdma_protocol_roce(dev, port) ? KDAPL_TRANSPORT_ROCE : KDAPL_TRANSPORT_IB;
}

u64 kdapl_helper_device_guid(const struct ib_device *dev)
{
	return be64_to_cpu(dev->node_guid);
}

void kdapl_helper_warn_port_taken(struct ib_device *dev, u16 port)
{
	dev_warn_ratelimited(&dev->dev,
			     "kdapl: another program listens at port %u: connection qualifiers above 65535 are not available\n",
			     port);
}

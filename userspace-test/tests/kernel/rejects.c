// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A listener that rejects each request as its private data ask: the first byte is the reason, the
 * second one the length of the reject's private data. A program in user space can give two reasons
 * only.
 */
#include <linux/err.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <net/ipv6.h>
#include <rdma/rdma_cm.h>

static ushort port;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "port to listen at");

static struct rdma_cm_id *listener;

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	static const u8 data[255] = { [0 ... 254] = 0x5a };
	const u8 *asked = event->param.conn.private_data;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	if (event->param.conn.private_data_len >= 2)
		rdma_reject(id, data, asked[1], asked[0]);
	/* Lets rdma_cm destroy the id. */
	return 1;
}

static int __init rejects_init(void)
{
	/* Listens for both address families. */
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int error;

	listener = rdma_create_id(current->nsproxy->net_ns, handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	error = rdma_bind_addr(listener, (struct sockaddr *)&any);
	if (!error)
		error = rdma_listen(listener, 16);
	if (error)
		rdma_destroy_id(listener);
	return error;
}

static void __exit rejects_exit(void)
{
	rdma_destroy_id(listener);
}

module_init(rejects_init);
module_exit(rejects_exit);
MODULE_DESCRIPTION("Rejects requests of rdma_cm with any reason");
MODULE_LICENSE("Dual BSD/GPL");

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The verbs that are static inline functions, and accessors for large driver structures. */
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>
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
	if (rdma_protocol_iwarp(dev, port))
		return KDAPL_TRANSPORT_IWARP;
	return rdma_protocol_roce(dev, port) ? KDAPL_TRANSPORT_ROCE : KDAPL_TRANSPORT_IB;
}

u64 kdapl_helper_device_guid(const struct ib_device *dev)
{
	return be64_to_cpu(dev->node_guid);
}

/* Stores the first address of @ndev that other hosts can use, IPv4 before IPv6. */
static void first_address(struct net_device *ndev, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *sin = (struct sockaddr_in *)addr;
	const struct in_ifaddr *ifa;
	struct in_device *in_dev;

	rcu_read_lock();
	in_dev = __in_dev_get_rcu(ndev);
	if (in_dev) {
		in_dev_for_each_ifa_rcu(ifa, in_dev) {
			sin->sin_family = AF_INET;
			sin->sin_addr.s_addr = ifa->ifa_local;
			break;
		}
	}
#if IS_ENABLED(CONFIG_IPV6)
	if (addr->ss_family == AF_UNSPEC) {
		struct inet6_dev *in6_dev = __in6_dev_get(ndev);
		struct inet6_ifaddr *ifp;

		if (in6_dev) {
			read_lock_bh(&in6_dev->lock);
			list_for_each_entry(ifp, &in6_dev->addr_list, if_list) {
				if (ifp->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED))
					continue;
				sin6->sin6_family = AF_INET6;
				sin6->sin6_addr = ifp->addr;
				if (ipv6_addr_type(&ifp->addr) & IPV6_ADDR_LINKLOCAL)
					sin6->sin6_scope_id = ndev->ifindex;
				else
					break;
			}
			read_unlock_bh(&in6_dev->lock);
		}
	}
#endif
	rcu_read_unlock();
}

/*
 * Stores the name and the address of the network device of @port. Returns false if the port has no
 * network device in @net. The caller clears @addr, which stays clear if there is no address.
 */
bool kdapl_helper_device_netdev(struct ib_device *dev, u32 port, struct net *net,
				char *name, size_t size, struct sockaddr_storage *addr)
{
	struct net_device *ndev = ib_device_get_netdev(dev, port);
	bool visible;

	if (!ndev)
		return false;
	visible = net_eq(dev_net(ndev), net);
	if (visible) {
		strscpy(name, ndev->name, size);
		first_address(ndev, addr);
	}
	dev_put(ndev);
	return visible;
}

void kdapl_helper_warn_port_taken(struct ib_device *dev, u16 port)
{
	dev_warn_ratelimited(&dev->dev,
			     "kdapl: another program listens at port %u: connection qualifiers above 65535 are not available\n",
			     port);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The IP addresses through which a port of an RDMA device can be reached. */
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"

/* The addresses that were found, and where they are stored. */
struct search {
	struct ib_device *dev;
	u32 port;
	/* The network device of the port; NULL for InfiniBand. */
	struct net_device *base;
	struct kdapl_port_address *to;
	size_t room;
	size_t count;
};

static bool has_gid(const struct search *search, const union ib_gid *gid, enum ib_gid_type type,
		    struct net_device *ndev)
{
	const struct ib_gid_attr *attr =
		rdma_find_gid_by_port(search->dev, gid, type, search->port, ndev);

	if (IS_ERR(attr))
		return false;
	rdma_put_gid_attr(attr);
	return true;
}

/* Whether rdma_cm finds the port by an address of @ndev: the rules of cma_validate_port(). */
static bool leads_to_port(const struct search *search, struct net_device *ndev)
{
	union ib_gid gid;

	if (ndev == search->base)
		return true;
	if (rdma_protocol_ib(search->dev, search->port)) {
		if (ndev->type != ARPHRD_INFINIBAND)
			return false;
		/* The GID follows the number of the queue pair. */
		memcpy(&gid, ndev->dev_addr + 4, sizeof(gid));
		return has_gid(search, &gid, IB_GID_TYPE_IB, NULL);
	}
	if (!search->base)
		return false;
	if (rdma_protocol_iwarp(search->dev, search->port))
		return is_vlan_dev(ndev) && vlan_dev_real_dev(ndev) == search->base;
	return netdev_has_upper_dev_all_rcu(search->base, ndev);
}

/* An address of a network device above that of a RoCE port needs an entry in the table of GIDs. */
static bool has_entry(const struct search *search, struct net_device *ndev, struct sockaddr *addr)
{
	union ib_gid gid;

	if (ndev == search->base || !rdma_protocol_roce(search->dev, search->port))
		return true;
	rdma_ip2gid(addr, &gid);
	return has_gid(search, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev) ||
	       has_gid(search, &gid, IB_GID_TYPE_ROCE, ndev);
}

static void add(struct search *search, struct net_device *ndev, const void *addr, size_t len,
		u32 prefix)
{
	struct kdapl_port_address found = {
		.ifindex = ndev->ifindex,
		.prefix = prefix,
		.is_upper = search->base && ndev != search->base,
	};

	memcpy(found.addr.sa, addr, len);
	if (!has_entry(search, ndev, (struct sockaddr *)found.addr.sa))
		return;
	memcpy(found.netdev, ndev->name, sizeof(found.netdev));
	if (search->count < search->room)
		search->to[search->count] = found;
	search->count++;
}

static void add_ipv4(struct search *search, struct net_device *ndev)
{
	struct in_device *in_dev = __in_dev_get_rcu(ndev);
	const struct in_ifaddr *ifa;

	if (!in_dev)
		return;
	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		struct sockaddr_in sin = {
			.sin_family = AF_INET,
			.sin_addr.s_addr = ifa->ifa_local,
		};

		add(search, ndev, &sin, sizeof(sin), ifa->ifa_prefixlen);
	}
}

static void add_ipv6(struct search *search, struct net_device *ndev)
{
#if IS_ENABLED(CONFIG_IPV6)
	struct inet6_dev *in6_dev = __in6_dev_get(ndev);
	struct inet6_ifaddr *ifp;

	if (!in6_dev)
		return;
	read_lock_bh(&in6_dev->lock);
	list_for_each_entry(ifp, &in6_dev->addr_list, if_list) {
		struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6, .sin6_addr = ifp->addr };

		if (ifp->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED))
			continue;
		if (ipv6_addr_type(&ifp->addr) & IPV6_ADDR_LINKLOCAL)
			sin6.sin6_scope_id = ndev->ifindex;
		add(search, ndev, &sin6, sizeof(sin6), ifp->prefix_len);
	}
	read_unlock_bh(&in6_dev->lock);
#endif
}

/*
 * Stores up to @room addresses of @net through which @port can be reached: those of its network
 * device, of VLANs and other devices above it, and of IPoIB devices. Returns the number of them.
 */
size_t kdapl_helper_port_addresses(struct ib_device *dev, u32 port, struct net *net,
				   struct kdapl_port_address *to, size_t room)
{
	struct search search = {
		.dev = dev,
		.port = port,
		.to = to,
		.room = room,
	};
	struct net_device *ndev;

	if (!rdma_is_port_valid(dev, port))
		return 0;
	search.base = ib_device_get_netdev(dev, port);
	rcu_read_lock();
	for_each_netdev_rcu(net, ndev) {
		if (leads_to_port(&search, ndev)) {
			add_ipv4(&search, ndev);
			add_ipv6(&search, ndev);
		}
	}
	rcu_read_unlock();
	dev_put(search.base);
	return search.count;
}

/*
 * Stores the name of the network device of @port. Returns false if the port has none in @net.
 */
bool kdapl_helper_port_netdev(struct ib_device *dev, u32 port, struct net *net, char *name,
			      size_t size)
{
	struct net_device *ndev = ib_device_get_netdev(dev, port);
	bool visible;

	if (!ndev)
		return false;
	visible = net_eq(dev_net(ndev), net);
	if (visible)
		strscpy(name, ndev->name, size);
	dev_put(ndev);
	return visible;
}

/* Stores the first and the last number of the ports. */
void kdapl_helper_ports(const struct ib_device *dev, u32 *first, u32 *last)
{
	*first = rdma_start_port(dev);
	*last = rdma_end_port(dev);
}

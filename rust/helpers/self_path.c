// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The path from a port to itself. */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"

/* Returns the first GID of a port that has this type, for rdma_put_gid_attr(); or NULL. */
static const struct ib_gid_attr *first_gid(struct ib_device *dev, u32 port, int length,
					   enum ib_gid_type type)
{
	int i;

	for (i = 0; i < length; i++) {
		const struct ib_gid_attr *gid = rdma_get_gid_attr(dev, port, i);

		if (IS_ERR(gid))
			continue;
		if (gid->gid_type == type)
			return gid;
		rdma_put_gid_attr(gid);
	}
	return NULL;
}

/* Sets the GID of a port as source and destination. Takes over the reference. */
static void set_gid(struct rdma_ah_attr *path, const struct ib_gid_attr *gid)
{
	union ib_gid own = gid->gid;

	rdma_move_grh_sgid_attr(path, &own, 0, 1, 0, gid);
}

/* Sets the address of the port's network device, as rdma_cm does for a path. */
static void set_mac(struct rdma_ah_attr *path, const struct ib_gid_attr *gid)
{
	const struct net_device *ndev;

	rcu_read_lock();
	ndev = rcu_dereference(gid->ndev);
	if (ndev)
		ether_addr_copy(path->roce.dmac, ndev->dev_addr);
	rcu_read_unlock();
}

static int roce_to_self(struct ib_device *dev, u32 port, int length, struct rdma_ah_attr *path)
{
	const struct ib_gid_attr *gid;

	gid = first_gid(dev, port, length, IB_GID_TYPE_ROCE_UDP_ENCAP) ?:
	      first_gid(dev, port, length, IB_GID_TYPE_ROCE);
	if (!gid)
		return -ENODEV;
	set_mac(path, gid);
	set_gid(path, gid);
	return 0;
}

static int ib_to_self(struct ib_device *dev, u32 port, const struct ib_port_attr *attr,
		      struct rdma_ah_attr *path)
{
	const struct ib_gid_attr *gid;

	rdma_ah_set_dlid(path, attr->lid);
	if (!rdma_is_grh_required(dev, port))
		return 0;
	gid = rdma_get_gid_attr(dev, port, 0);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	set_gid(path, gid);
	return 0;
}

/*
 * Stores the address vector and the MTU of the path from a port to itself. rdma_destroy_ah_attr()
 * releases the address vector.
 *
 * Errors: -ENODEV if the port has no address, -EOPNOTSUPP over iWARP.
 */
int kdapl_helper_path_to_self(struct ib_device *dev, u32 port, struct ib_qp_attr *attr)
{
	struct rdma_ah_attr *path = &attr->ah_attr;
	struct ib_port_attr port_attr;
	int ret;

	if (!rdma_ib_or_roce(dev, port))
		return -EOPNOTSUPP;
	ret = ib_query_port(dev, port, &port_attr);
	if (ret)
		return ret;
	attr->path_mtu = port_attr.active_mtu;
	path->type = rdma_ah_find_type(dev, port);
	rdma_ah_set_port_num(path, port);
	if (path->type == RDMA_AH_ATTR_TYPE_ROCE)
		return roce_to_self(dev, port, port_attr.gid_tbl_len, path);
	return ib_to_self(dev, port, &port_attr, path);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Adds an RDMA device with two ports, each with a network device of its own. A device with one
 * port, of siw or soft-RoCE, makes its objects.
 *
 * Over iWARP the ports connect and carry data: connects, listeners and requests are passed to the
 * driver of the other device, which finds the way by IP addresses. Its queue pairs count as those
 * of the device with two ports, so that they may have port 2. No other user may make queue pairs
 * of the other device meanwhile.
 *
 * Over RoCE the ports have names and addresses only. Connections need management datagrams, which
 * soft-RoCE exchanges for one port. The network devices of the ports must stay as they are
 * meanwhile: at a change soft-RoCE takes the device for one of its own.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

#define PORTS	2

static char *device = "siw0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "RDMA device that makes the objects");

static char *name = "kdapl_two";
module_param(name, charp, 0444);
MODULE_PARM_DESC(name, "name of the new device");

static char *netdevs[PORTS];
module_param_array(netdevs, charp, NULL, 0444);
MODULE_PARM_DESC(netdevs, "network devices of the ports, in the namespace of the caller");

/* The device that makes the objects, and the operations of its driver. */
static struct ib_device *maker;
static struct ib_device_ops made_by;

struct two_ports {
	struct ib_device dev;
};

static struct two_ports *ports;

static int query_device(struct ib_device *dev, struct ib_device_attr *attr, struct ib_udata *udata)
{
	return made_by.query_device(maker, attr, udata);
}

static int query_port(struct ib_device *dev, u32 port, struct ib_port_attr *attr)
{
	struct net_device *ndev = ib_device_get_netdev(dev, port);
	int error;

	if (!ndev)
		return -ENODEV;
	error = made_by.query_port(maker, 1, attr);
	attr->state = ib_get_curr_port_state(ndev);
	attr->phys_state = attr->state == IB_PORT_ACTIVE ? IB_PORT_PHYS_STATE_LINK_UP :
							   IB_PORT_PHYS_STATE_DISABLED;
	dev_put(ndev);
	return error;
}

static int query_pkey(struct ib_device *dev, u32 port, u16 index, u16 *pkey)
{
	return made_by.query_pkey(maker, 1, index, pkey);
}

/* Over iWARP a port has one GID, the address of its network device. */
static int query_gid(struct ib_device *dev, u32 port, int index, union ib_gid *gid)
{
	struct net_device *ndev = ib_device_get_netdev(dev, port);

	if (!ndev)
		return -ENODEV;
	memset(gid, 0, sizeof(*gid));
	memcpy(gid->raw, ndev->dev_addr, ETH_ALEN);
	dev_put(ndev);
	return 0;
}

static int get_port_immutable(struct ib_device *dev, u32 port, struct ib_port_immutable *immutable)
{
	struct ib_port_attr attr = {};
	int error = query_port(dev, port, &attr);

	immutable->gid_tbl_len = attr.gid_tbl_len;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	immutable->core_cap_flags = rdma_protocol_iwarp(maker, 1) ?
		RDMA_CORE_PORT_IWARP : RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP;
	return error;
}

/* Objects belong to the device that makes them, so all later calls reach its driver. */
static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	pd->device = maker;
	return made_by.alloc_pd(pd, udata);
}

static int create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
		     struct uverbs_attr_bundle *attrs)
{
	cq->device = maker;
	return made_by.create_cq(cq, attr, attrs);
}

/* ib_core checks the port of a queue pair by the queue pair's device. siw ignores that device. */
static int create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	int error = made_by.create_qp(qp, attr, udata);

	if (!error)
		qp->device = &ports->dev;
	return error;
}

static struct ib_qp *iw_get_qp(struct ib_device *dev, int number)
{
	return made_by.iw_get_qp(maker, number);
}

static int iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	int error;

	id->device = maker;
	error = made_by.iw_connect(id, param);
	id->device = &ports->dev;
	return error;
}

static int iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	int error;

	id->device = maker;
	error = made_by.iw_accept(id, param);
	id->device = &ports->dev;
	return error;
}

static int iw_create_listen(struct iw_cm_id *id, int backlog)
{
	int error;

	id->device = maker;
	error = made_by.iw_create_listen(id, backlog);
	id->device = &ports->dev;
	return error;
}

static void wrap(struct ib_device *dev)
{
	dev->ops = made_by;
	dev->ops.owner = THIS_MODULE;
	dev->ops.query_device = query_device;
	dev->ops.query_port = query_port;
	dev->ops.get_port_immutable = get_port_immutable;
	dev->ops.alloc_pd = alloc_pd;
	dev->ops.create_cq = create_cq;
	if (made_by.query_pkey)
		dev->ops.query_pkey = query_pkey;
	/* Only consumers in the kernel use the device. */
	dev->ops.alloc_ucontext = NULL;
	dev->ops.enable_driver = NULL;
	dev->ops.dealloc_driver = NULL;
	dev->ops.device_group = NULL;
	dev->ops.alloc_hw_port_stats = NULL;
	dev->ops.get_hw_stats = NULL;
	dev->ops.process_mad = NULL;
	if (!rdma_protocol_iwarp(maker, 1))
		return;
	dev->ops.query_gid = query_gid;
	dev->ops.iw_get_qp = iw_get_qp;
	dev->ops.iw_connect = iw_connect;
	dev->ops.iw_accept = iw_accept;
	dev->ops.iw_create_listen = iw_create_listen;
}

static int set_netdevs(struct ib_device *dev)
{
	struct net_device *ndev;
	int error = 0;
	u32 port;

	for (port = 1; port <= PORTS && !error; port++) {
		if (!netdevs[port - 1])
			return -EINVAL;
		ndev = dev_get_by_name(current->nsproxy->net_ns, netdevs[port - 1]);
		if (!ndev)
			return -ENODEV;
		error = ib_device_set_netdev(dev, ndev, port);
		dev_put(ndev);
	}
	return error;
}

static int add_device(void)
{
	struct ib_device *dev;
	int error;

	ports = ib_alloc_device(two_ports, dev);
	if (!ports)
		return -ENOMEM;
	dev = &ports->dev;
	wrap(dev);
	dev->phys_port_cnt = PORTS;
	dev->node_type = maker->node_type;
	dev->node_guid = ~maker->node_guid;
	dev->num_comp_vectors = maker->num_comp_vectors;
	dev->local_dma_lkey = maker->local_dma_lkey;
	/* No TCP port mapper. */
	dev->iw_driver_flags = maker->iw_driver_flags;
	memcpy(dev->iw_ifname, maker->iw_ifname, sizeof(dev->iw_ifname));
	error = set_netdevs(dev);
	if (!error)
		error = ib_register_device(dev, name, NULL);
	if (error)
		ib_dealloc_device(dev);
	return error;
}

/* Finds the device, and keeps it. */
static int find(struct ib_device *dev)
{
	if (!maker && !strcmp(dev_name(&dev->dev), device) && ib_device_try_get(dev))
		maker = dev;
	return 0;
}

static struct ib_client finder = { .name = "kdapl_two_ports", .add = find };

static int __init two_ports_init(void)
{
	int error = ib_register_client(&finder);

	if (error)
		return error;
	ib_unregister_client(&finder);
	if (!maker)
		return -ENODEV;
	made_by = maker->ops;
	error = add_device();
	if (error)
		ib_device_put(maker);
	else if (rdma_protocol_iwarp(maker, 1))
		maker->ops.create_qp = create_qp;
	return error;
}

static void __exit two_ports_exit(void)
{
	ib_unregister_device(&ports->dev);
	ib_dealloc_device(&ports->dev);
	maker->ops.create_qp = made_by.create_qp;
	ib_device_put(maker);
}

module_init(two_ports_init);
module_exit(two_ports_exit);
MODULE_DESCRIPTION("Adds an RDMA device with two ports");
MODULE_LICENSE("Dual BSD/GPL");

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Charges to the rdma cgroup controller. Without CONFIG_CGROUP_RDMA nothing is charged. */
#include <linux/cgroup_rdma.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"

#ifdef CONFIG_CGROUP_RDMA

static enum rdmacg_resource_type resource(bool handle)
{
	return handle ? RDMACG_RESOURCE_HCA_HANDLE : RDMACG_RESOURCE_HCA_OBJECT;
}

int kdapl_helper_rdmacg_charge(struct ib_device *dev, bool handle, struct rdma_cgroup **cg)
{
	return rdmacg_try_charge(cg, &dev->cg_device, resource(handle));
}

void kdapl_helper_rdmacg_uncharge(struct ib_device *dev, bool handle, struct rdma_cgroup *cg)
{
	if (cg)
		rdmacg_uncharge(cg, &dev->cg_device, resource(handle));
}

#else

int kdapl_helper_rdmacg_charge(struct ib_device *dev, bool handle, struct rdma_cgroup **cg)
{
	*cg = NULL;
	return 0;
}

void kdapl_helper_rdmacg_uncharge(struct ib_device *dev, bool handle, struct rdma_cgroup *cg)
{
}

#endif

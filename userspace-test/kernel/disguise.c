// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Lets a device pass for one of another driver, and counts what reaches its own
 * driver from a module in the kernel. Everything is put back at rmmod, when
 * nobody may be registering memory.
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

static char *device = "rxe0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "RDMA device");

static int driver_id = -1;
module_param(driver_id, int, 0444);
MODULE_PARM_DESC(driver_id, "an enum rdma_driver_id that it shows, -1 for its own");

/* Set by the client, read by the wrappers. */
static struct ib_device *disguised;
static struct ib_device_ops own;

static atomic_t registered = ATOMIC_INIT(0);
static atomic_t key = ATOMIC_INIT(0);

/* What no peer may ever see. */
static char *words;
static ulong secret;
module_param(secret, ulong, 0444);
MODULE_PARM_DESC(secret, "address of 'the kernel keeps this to itself'");

static int get_atomic(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%u\n", atomic_read(param->arg));
}

static const struct kernel_param_ops atomic_ops = { .get = get_atomic };

module_param_cb(null_udata, &atomic_ops, &registered, 0444);
MODULE_PARM_DESC(null_udata, "registrations of a process's memory without user data");
module_param_cb(dma_key, &atomic_ops, &key, 0444);
MODULE_PARM_DESC(dma_key, "key of the latest region over all memory");

static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 address, int access,
				 struct ib_dmah *dmah, struct ib_udata *udata)
{
	if (!udata)
		atomic_inc(&registered);
	return own.reg_user_mr(pd, start, length, address, access, dmah, udata);
}

static struct ib_mr *get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *mr = own.get_dma_mr(pd, access);

	if (!IS_ERR(mr))
		atomic_set(&key, mr->lkey);
	return mr;
}

static int add(struct ib_device *dev)
{
	if (strcmp(dev_name(&dev->dev), device))
		return 0;
	own = dev->ops;
	disguised = dev;
	if (driver_id >= 0)
		dev->ops.driver_id = driver_id;
	dev->ops.reg_user_mr = reg_user_mr;
	dev->ops.get_dma_mr = get_dma_mr;
	return 0;
}

static void remove(struct ib_device *dev, void *data)
{
	if (dev != disguised)
		return;
	disguised = NULL;
	dev->ops.driver_id = own.driver_id;
	dev->ops.reg_user_mr = own.reg_user_mr;
	dev->ops.get_dma_mr = own.get_dma_mr;
}

static struct ib_client client = { .name = "kdapl_disguise", .add = add, .remove = remove };

static int __init disguise_init(void)
{
	int error;

	words = kstrdup("the kernel keeps this to itself", GFP_KERNEL);
	if (!words)
		return -ENOMEM;
	secret = (ulong)words;
	error = ib_register_client(&client);
	if (!error && !disguised) {
		ib_unregister_client(&client);
		error = -ENODEV;
	}
	if (error)
		kfree(words);
	return error;
}

static void __exit disguise_exit(void)
{
	ib_unregister_client(&client);
	kfree(words);
}

module_init(disguise_init);
module_exit(disguise_exit);
MODULE_DESCRIPTION("Lets an RDMA device pass for one of another driver");
MODULE_LICENSE("Dual BSD/GPL");

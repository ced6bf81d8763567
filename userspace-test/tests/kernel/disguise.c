// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Disguises a device as one of another driver, counts registrations that reach
 * its own driver from a kernel module, and delays the lookup of queue pairs.
 * rmmod restores the device. No registration or connect may be in progress
 * then. It also makes queue pairs fail, holds their creation, keeps them from
 * becoming ready to send, counts posts and refuses them for a while, counts
 * the completions of destroyed queue pairs that are polled, counts calls whose
 * driver may discard the signals of a process, refuses to destroy objects, and
 * watches connects over iWARP.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

#include "disguise.h"

static char *device = "rxe0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "RDMA device");

static int driver_id = -1;
module_param(driver_id, int, 0444);
MODULE_PARM_DESC(driver_id, "the enum rdma_driver_id to show, -1 for its own");

/* Set by the client, read by the wrappers. */
static struct ib_device *disguised;
struct ib_device_ops disguise_own;

static atomic_t registered = ATOMIC_INIT(0);
static atomic_t key = ATOMIC_INIT(0);

/* Memory that no peer may ever read. */
static char *words;
static ulong secret;
module_param(secret, ulong, 0444);
MODULE_PARM_DESC(secret, "address of 'the kernel keeps this to itself'");

static int get_atomic(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%u\n", atomic_read(param->arg));
}

const struct kernel_param_ops disguise_atomic_ops = { .get = get_atomic };

module_param_cb(null_udata, &disguise_atomic_ops, &registered, 0444);
MODULE_PARM_DESC(null_udata, "registrations of a process's memory without user data");
module_param_cb(dma_key, &disguise_atomic_ops, &key, 0444);
MODULE_PARM_DESC(dma_key, "key of the latest region of all memory");

/*
 * Delays of the next lookup: before it, and between lookup and reference. iw_cm looks up a queue
 * pair by its number, and then takes a reference. It holds a spinlock meanwhile.
 */
static atomic_t before_us = ATOMIC_INIT(0);
static atomic_t between_us = ATOMIC_INIT(0);
static atomic_t lookups = ATOMIC_INIT(0);

static int set_atomic(const char *text, const struct kernel_param *param)
{
	unsigned int value;
	int error = kstrtouint(text, 0, &value);

	if (!error)
		atomic_set(param->arg, value);
	return error;
}

const struct kernel_param_ops disguise_once_ops = { .get = get_atomic, .set = set_atomic };

module_param_cb(before_us, &disguise_once_ops, &before_us, 0644);
MODULE_PARM_DESC(before_us, "microseconds before the next lookup of a queue pair");
module_param_cb(between_us, &disguise_once_ops, &between_us, 0644);
MODULE_PARM_DESC(between_us, "microseconds from the lookup to the reference");
module_param_cb(lookups, &disguise_atomic_ops, &lookups, 0444);
MODULE_PARM_DESC(lookups, "lookups of queue pairs, including those in progress");

static void pause(atomic_t *us)
{
	unsigned int time = atomic_xchg(us, 0);

	mdelay(time / 1000);
	udelay(time % 1000);
}

atomic_t disguise_inside = ATOMIC_INIT(0);

/* siw and erdma discard the signals of such a thread. */
static atomic_t by_processes = ATOMIC_INIT(0);
module_param_cb(by_processes, &disguise_atomic_ops, &by_processes, 0444);
MODULE_PARM_DESC(by_processes, "calls of processes that end, accept or reject a connection");

void disguise_note_caller(void)
{
	if (!(current->flags & PF_KTHREAD))
		atomic_inc(&by_processes);
}

/*
 * The number of the lookup in progress, and the count of queue pairs that were destroyed during
 * their lookup.
 */
static atomic_t looked_up = ATOMIC_INIT(-1);
static atomic_t pulled = ATOMIC_INIT(0);
module_param_cb(pulled, &disguise_atomic_ops, &pulled, 0444);
MODULE_PARM_DESC(pulled, "queue pairs that were destroyed during their lookup");

static atomic_t destroyed = ATOMIC_INIT(0);
module_param_cb(destroyed, &disguise_atomic_ops, &destroyed, 0444);
MODULE_PARM_DESC(destroyed, "queue pairs that were destroyed");

/* The latest queue pair. It can be made to fail, as its driver would report it. */
static DEFINE_MUTEX(latest_lock);
static struct ib_qp *latest;

/* The creation of a queue pair of a module: 1 asks to hold the next one, 2 says that it is held. */
static atomic_t hold_creation = ATOMIC_INIT(0);
module_param_cb(hold_creation, &disguise_once_ops, &hold_creation, 0644);
MODULE_PARM_DESC(hold_creation, "1 holds the next creation of a queue pair of a module, and becomes 2 then; 0 releases it");

/* Longest time to hold a call: a program that has died does not release it. */
#define LONGEST_HOLD (120 * HZ)

void disguise_hold_until_zero(const atomic_t *hold)
{
	unsigned long end = jiffies + LONGEST_HOLD;

	while (atomic_read(hold) && time_before(jiffies, end))
		msleep(1);
}

static void hold_if_asked(const struct ib_udata *udata)
{
	if (udata || atomic_cmpxchg(&hold_creation, 1, 2) != 1)
		return;
	atomic_inc(&disguise_inside);
	disguise_hold_until_zero(&hold_creation);
	atomic_dec(&disguise_inside);
}

static int create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	int error;

	/* As mlx4: such a queue pair has no receives of its own. */
	if (attr->srq && (attr->cap.max_recv_wr || attr->cap.max_recv_sge))
		return -EINVAL;
	disguise_replace_gone(qp, NULL);
	hold_if_asked(udata);
	error = disguise_own.create_qp(qp, attr, udata);
	if (!error) {
		mutex_lock(&latest_lock);
		latest = qp;
		mutex_unlock(&latest_lock);
	}
	return error;
}

static int fail_qp(const char *text, const struct kernel_param *param)
{
	struct ib_event event = { .event = IB_EVENT_QP_FATAL };
	int error = -ENOENT;

	mutex_lock(&latest_lock);
	if (latest) {
		event.device = latest->device;
		event.element.qp = latest;
		latest->event_handler(&event, latest->qp_context);
		error = 0;
	}
	mutex_unlock(&latest_lock);
	return error;
}

static const struct kernel_param_ops fail_ops = { .set = fail_qp };

module_param_cb(fail_qp, &fail_ops, NULL, 0200);
MODULE_PARM_DESC(fail_qp, "anything reports a failure of the latest queue pair");

static int destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	if (disguise_refuses_qp(qp))
		return -EBUSY;
	disguise_note_caller();
	mutex_lock(&latest_lock);
	if (latest == qp)
		latest = NULL;
	mutex_unlock(&latest_lock);
	if (atomic_read(&looked_up) == qp->qp_num)
		atomic_inc(&pulled);
	disguise_replace_gone(NULL, qp);
	atomic_inc(&destroyed);
	return disguise_own.destroy_qp(qp, udata);
}

static struct ib_qp *iw_get_qp(struct ib_device *dev, int number)
{
	struct ib_qp *qp;

	atomic_inc(&disguise_inside);
	atomic_set(&looked_up, number);
	atomic_inc(&lookups);
	pause(&before_us);
	qp = disguise_own.iw_get_qp(dev, number);
	pause(&between_us);
	atomic_set(&looked_up, -1);
	atomic_dec(&disguise_inside);
	return qp;
}

/*
 * A queue pair receives from RTR (ready to receive) on, and sends from RTS on. Those of kernel
 * modules are held in between.
 */
static atomic_t hold_in_rtr = ATOMIC_INIT(0);
static atomic_t in_rtr = ATOMIC_INIT(0);
module_param_cb(hold_in_rtr, &disguise_once_ops, &hold_in_rtr, 0644);
MODULE_PARM_DESC(hold_in_rtr, "1 holds queue pairs of modules in RTR from now on, 0 releases them");
module_param_cb(in_rtr, &disguise_atomic_ops, &in_rtr, 0444);
MODULE_PARM_DESC(in_rtr, "queue pairs that were held in RTR");

static atomic_t early_posts = ATOMIC_INIT(0);
module_param_cb(early_posts, &disguise_atomic_ops, &early_posts, 0444);
MODULE_PARM_DESC(early_posts, "requests that modules have posted while a queue pair was held in RTR");

/* As siw while it changes the state of a queue pair. */
static atomic_t busy_posts = ATOMIC_INIT(0);
module_param_cb(busy_posts, &disguise_once_ops, &busy_posts, 0644);
MODULE_PARM_DESC(busy_posts, "number of the next posts of modules that are refused with ENOTCONN");

static bool is_of_module(const struct ib_qp *qp)
{
	return qp->qp_type == IB_QPT_RC && !qp->uobject;
}

static bool is_busy(const struct ib_qp *qp)
{
	return is_of_module(qp) && atomic_dec_if_positive(&busy_posts) >= 0;
}

/* A call may post several requests. */
static atomic_t send_posts = ATOMIC_INIT(0);
static atomic_t recv_posts = ATOMIC_INIT(0);
module_param_cb(send_posts, &disguise_atomic_ops, &send_posts, 0444);
MODULE_PARM_DESC(send_posts, "calls by which modules have posted requests to send queues");
module_param_cb(recv_posts, &disguise_atomic_ops, &recv_posts, 0444);
MODULE_PARM_DESC(recv_posts, "calls by which modules have posted receives");

static int post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	if (is_of_module(qp) && atomic_read(&hold_in_rtr))
		atomic_inc(&early_posts);
	if (is_of_module(qp))
		atomic_inc(&send_posts);
	if (is_busy(qp)) {
		*bad = wr;
		return -ENOTCONN;
	}
	return disguise_own.post_send(qp, wr, bad);
}

static int post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	if (is_of_module(qp))
		atomic_inc(&recv_posts);
	if (is_busy(qp)) {
		*bad = wr;
		return -ENOTCONN;
	}
	return disguise_own.post_recv(qp, wr, bad);
}

static int modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	int error;

	atomic_inc(&disguise_inside);
	if (!udata && (mask & IB_QP_STATE) && attr->qp_state == IB_QPS_ERR) {
		disguise_note_caller();
		disguise_note_failure(qp);
	}
	error = disguise_own.modify_qp(qp, attr, mask, udata);
	if (!error && !udata && (mask & IB_QP_STATE) && attr->qp_state == IB_QPS_RTR &&
	    atomic_read(&hold_in_rtr)) {
		atomic_inc(&in_rtr);
		disguise_hold_until_zero(&hold_in_rtr);
	}
	atomic_dec(&disguise_inside);
	return error;
}

static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 address, int access,
				 struct ib_dmah *dmah, struct ib_udata *udata)
{
	if (!udata)
		atomic_inc(&registered);
	return disguise_own.reg_user_mr(pd, start, length, address, access, dmah, udata);
}

static struct ib_mr *get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *mr = disguise_own.get_dma_mr(pd, access);

	if (!IS_ERR(mr))
		atomic_set(&key, mr->lkey);
	return mr;
}

static int add(struct ib_device *dev)
{
	if (strcmp(dev_name(&dev->dev), device))
		return 0;
	disguise_own = dev->ops;
	disguised = dev;
	if (driver_id >= 0)
		dev->ops.driver_id = driver_id;
	dev->ops.reg_user_mr = reg_user_mr;
	dev->ops.get_dma_mr = get_dma_mr;
	dev->ops.create_qp = create_qp;
	dev->ops.destroy_qp = destroy_qp;
	dev->ops.poll_cq = disguise_poll_cq;
	dev->ops.modify_qp = modify_qp;
	dev->ops.post_send = post_send;
	dev->ops.post_recv = post_recv;
	disguise_add_refusals(dev);
	if (disguise_own.iw_get_qp)
		dev->ops.iw_get_qp = iw_get_qp;
	disguise_add_iwarp(dev);
	return 0;
}

static void remove(struct ib_device *dev, void *data)
{
	if (dev != disguised)
		return;
	disguised = NULL;
	dev->ops.driver_id = disguise_own.driver_id;
	dev->ops.reg_user_mr = disguise_own.reg_user_mr;
	dev->ops.get_dma_mr = disguise_own.get_dma_mr;
	dev->ops.create_qp = disguise_own.create_qp;
	dev->ops.destroy_qp = disguise_own.destroy_qp;
	dev->ops.poll_cq = disguise_own.poll_cq;
	dev->ops.modify_qp = disguise_own.modify_qp;
	dev->ops.post_send = disguise_own.post_send;
	dev->ops.post_recv = disguise_own.post_recv;
	disguise_remove_refusals(dev);
	dev->ops.iw_get_qp = disguise_own.iw_get_qp;
	disguise_remove_iwarp(dev);
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
	disguise_release_iwarp();
	atomic_set(&hold_in_rtr, 0);
	atomic_set(&hold_creation, 0);
	do {
		msleep(20);
	} while (atomic_read(&disguise_inside));
	kfree(words);
}

module_init(disguise_init);
module_exit(disguise_exit);
MODULE_DESCRIPTION("Disguises an RDMA device as one of another driver");
MODULE_LICENSE("Dual BSD/GPL");

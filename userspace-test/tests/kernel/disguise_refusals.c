// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Refuses to destroy objects of kernel modules, and then calls the modules back
 * for those objects, as a driver may that still uses them. rmmod leaves the
 * objects as they are.
 */
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/mutex.h>

#include "disguise.h"

/* Bits of refuse. */
#define REFUSE_QP	0x1
#define REFUSE_CQ	0x2
#define REFUSE_MR	0x4
#define REFUSE_SRQ	0x8
#define REFUSE_PD	0x10

static atomic_t refuse = ATOMIC_INIT(0);
static atomic_t refused = ATOMIC_INIT(0);
module_param_cb(refuse, &disguise_once_ops, &refuse, 0644);
MODULE_PARM_DESC(refuse, "kinds of objects whose destruction fails: 1 queue pairs, 2 completion queues, 4 memory regions, 8 shared receive queues, 16 protection domains");
module_param_cb(refused, &disguise_atomic_ops, &refused, 0444);
MODULE_PARM_DESC(refused, "objects that were not destroyed");

/* The latest refused object of each kind that has callbacks. */
static DEFINE_MUTEX(refused_lock);
static void *refused_qp, *refused_cq, *refused_srq;

static bool refuses(int kind, const void *uobject)
{
	if (uobject || !(atomic_read(&refuse) & kind))
		return false;
	atomic_inc(&refused);
	return true;
}

static void remember(void **latest, void *object)
{
	mutex_lock(&refused_lock);
	*latest = object;
	mutex_unlock(&refused_lock);
}

bool disguise_refuses_qp(struct ib_qp *qp)
{
	if (qp->qp_type != IB_QPT_RC || !refuses(REFUSE_QP, qp->uobject))
		return false;
	remember(&refused_qp, qp);
	return true;
}

static int destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	if (!refuses(REFUSE_CQ, cq->uobject))
		return disguise_own.destroy_cq(cq, udata);
	remember(&refused_cq, cq);
	return -EBUSY;
}

static int destroy_srq(struct ib_srq *srq, struct ib_udata *udata)
{
	if (!refuses(REFUSE_SRQ, srq->uobject))
		return disguise_own.destroy_srq(srq, udata);
	remember(&refused_srq, srq);
	return -EBUSY;
}

/* ib_core itself destroys the region of all memory, and does not expect an error. */
static int dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	if (mr->type == IB_MR_TYPE_DMA || !refuses(REFUSE_MR, mr->uobject))
		return disguise_own.dereg_mr(mr, udata);
	return -EBUSY;
}

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	if (!refuses(REFUSE_PD, pd->uobject))
		return disguise_own.dealloc_pd(pd, udata);
	return -EBUSY;
}

static void call_back_qp(struct ib_qp *qp)
{
	struct ib_event event = { .event = IB_EVENT_QP_FATAL };

	event.device = qp->device;
	event.element.qp = qp;
	qp->event_handler(&event, qp->qp_context);
}

static void call_back_srq(struct ib_srq *srq)
{
	struct ib_event event = { .event = IB_EVENT_SRQ_LIMIT_REACHED };

	event.device = srq->device;
	event.element.srq = srq;
	srq->event_handler(&event, srq->srq_context);
}

static void call_back_cq(struct ib_cq *cq)
{
	cq->comp_handler(cq, cq->cq_context);
}

static int call_back(const char *text, const struct kernel_param *param)
{
	mutex_lock(&refused_lock);
	if (refused_qp)
		call_back_qp(refused_qp);
	if (refused_srq)
		call_back_srq(refused_srq);
	if (refused_cq)
		call_back_cq(refused_cq);
	mutex_unlock(&refused_lock);
	return 0;
}

static const struct kernel_param_ops call_back_ops = { .set = call_back };

module_param_cb(call_back, &call_back_ops, NULL, 0200);
MODULE_PARM_DESC(call_back, "anything reports events of the latest objects that were not destroyed");

void disguise_add_refusals(struct ib_device *dev)
{
	dev->ops.destroy_cq = destroy_cq;
	dev->ops.dereg_mr = dereg_mr;
	dev->ops.dealloc_pd = dealloc_pd;
	if (disguise_own.destroy_srq)
		dev->ops.destroy_srq = destroy_srq;
}

void disguise_remove_refusals(struct ib_device *dev)
{
	dev->ops.destroy_cq = disguise_own.destroy_cq;
	dev->ops.dereg_mr = disguise_own.dereg_mr;
	dev->ops.dealloc_pd = disguise_own.dealloc_pd;
	dev->ops.destroy_srq = disguise_own.destroy_srq;
}

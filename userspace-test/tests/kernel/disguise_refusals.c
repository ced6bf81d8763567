// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Refuses to destroy objects of kernel modules, and then calls the modules back
 * for those objects, as a driver may that still uses them. rmmod leaves the
 * objects as they are; "let_go" destroys them.
 */
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/lockdep.h>
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

/* Refused objects, and those that these use. Each is here once. */
static struct {
	int kind;
	void *object;
} leaked[256];
static atomic_t leaks = ATOMIC_INIT(0);
module_param_cb(leaked, &disguise_atomic_ops, &leaks, 0444);
MODULE_PARM_DESC(leaked, "objects that were not destroyed, and those that these use");

static void add(int kind, void *object)
{
	int i, count = atomic_read(&leaks);

	lockdep_assert_held(&refused_lock);
	for (i = 0; i < count; i++)
		if (leaked[i].object == object)
			return;
	if (!object || WARN_ON(count == ARRAY_SIZE(leaked)))
		return;
	leaked[count].kind = kind;
	leaked[count].object = object;
	atomic_inc(&leaks);
}

static bool refuses(int kind, const void *uobject)
{
	if (uobject || !(atomic_read(&refuse) & kind))
		return false;
	atomic_inc(&refused);
	return true;
}

bool disguise_refuses_qp(struct ib_qp *qp)
{
	if (qp->qp_type != IB_QPT_RC || !refuses(REFUSE_QP, qp->uobject))
		return false;
	mutex_lock(&refused_lock);
	refused_qp = qp;
	add(REFUSE_QP, qp);
	add(REFUSE_CQ, qp->send_cq);
	add(REFUSE_CQ, qp->recv_cq);
	add(REFUSE_SRQ, qp->srq);
	add(REFUSE_PD, qp->pd);
	mutex_unlock(&refused_lock);
	return true;
}

static int destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	if (!refuses(REFUSE_CQ, cq->uobject))
		return disguise_own.destroy_cq(cq, udata);
	mutex_lock(&refused_lock);
	refused_cq = cq;
	add(REFUSE_CQ, cq);
	mutex_unlock(&refused_lock);
	return -EBUSY;
}

static int destroy_srq(struct ib_srq *srq, struct ib_udata *udata)
{
	if (!refuses(REFUSE_SRQ, srq->uobject))
		return disguise_own.destroy_srq(srq, udata);
	mutex_lock(&refused_lock);
	refused_srq = srq;
	add(REFUSE_SRQ, srq);
	add(REFUSE_PD, srq->pd);
	mutex_unlock(&refused_lock);
	return -EBUSY;
}

/* ib_core itself destroys the region of all memory, and does not expect an error. */
static int dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	if (mr->type == IB_MR_TYPE_DMA || !refuses(REFUSE_MR, mr->uobject))
		return disguise_own.dereg_mr(mr, udata);
	mutex_lock(&refused_lock);
	add(REFUSE_MR, mr);
	add(REFUSE_PD, mr->pd);
	mutex_unlock(&refused_lock);
	return -EBUSY;
}

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	if (!refuses(REFUSE_PD, pd->uobject))
		return disguise_own.dealloc_pd(pd, udata);
	mutex_lock(&refused_lock);
	add(REFUSE_PD, pd);
	mutex_unlock(&refused_lock);
	return -EBUSY;
}

static int destroy(int kind, void *object)
{
	switch (kind) {
	case REFUSE_QP:
		return ib_destroy_qp_user(object, NULL);
	case REFUSE_SRQ:
		return ib_destroy_srq_user(object, NULL);
	case REFUSE_MR:
		return ib_dereg_mr_user(object, NULL);
	case REFUSE_CQ:
		return ib_destroy_cq_user(object, NULL);
	default:
		return ib_dealloc_pd_user(object, NULL);
	}
}

/* In this order no object is in use when it is destroyed. */
static const int order[] = { REFUSE_QP, REFUSE_SRQ, REFUSE_MR, REFUSE_CQ, REFUSE_PD };

/* The destruction calls dealloc_pd and the others again, so it does not hold the lock. */
static int let_go(const char *text, const struct kernel_param *param)
{
	int i, j, error, count;

	atomic_set(&refuse, 0);
	mutex_lock(&refused_lock);
	refused_qp = refused_cq = refused_srq = NULL;
	count = atomic_xchg(&leaks, 0);
	mutex_unlock(&refused_lock);
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		for (j = 0; j < count; j++) {
			if (leaked[j].kind != order[i])
				continue;
			error = destroy(order[i], leaked[j].object);
			if (error)
				return error;
		}
	}
	return 0;
}

static const struct kernel_param_ops let_go_ops = { .set = let_go };

module_param_cb(let_go, &let_go_ops, NULL, 0200);
MODULE_PARM_DESC(let_go, "anything destroys the leaked objects, as the end of their driver does");

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

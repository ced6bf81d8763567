// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connects and listeners over iWARP: holds back the replies of peers, counts queue pairs that fail
 * before the outcome of their connect, holds queue pairs before they fail, and refuses listeners at
 * addresses of IPv6, as erdma does.
 */
#include <linux/atomic.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

#include "disguise.h"

/*
 * An iWARP driver connects the queue pair, and then passes the peer's reply to iw_cm. The queue
 * pair receives meanwhile.
 */
static atomic_t hold_replies = ATOMIC_INIT(0);
static atomic_t held = ATOMIC_INIT(0);
module_param_cb(hold_replies, &disguise_once_ops, &hold_replies, 0644);
MODULE_PARM_DESC(hold_replies, "1 holds back the replies to the connects from now on, 0 passes them on");
module_param_cb(held, &disguise_atomic_ops, &held, 0444);
MODULE_PARM_DESC(held, "replies that were held back");

static atomic_t watches_connects = ATOMIC_INIT(0);
static atomic_t connects = ATOMIC_INIT(0);
static atomic_t outcomes = ATOMIC_INIT(0);
static atomic_t failed_amid_connect = ATOMIC_INIT(0);
module_param_cb(watches_connects, &disguise_once_ops, &watches_connects, 0644);
MODULE_PARM_DESC(watches_connects, "1 counts what happens before the outcome of the connects that begin from now on");
module_param_cb(connects, &disguise_atomic_ops, &connects, 0444);
MODULE_PARM_DESC(connects, "connects that were begun while they were watched");
module_param_cb(outcomes, &disguise_atomic_ops, &outcomes, 0444);
MODULE_PARM_DESC(outcomes, "watched connects whose outcome was reported");
module_param_cb(failed_amid_connect, &disguise_atomic_ops, &failed_amid_connect, 0444);
MODULE_PARM_DESC(failed_amid_connect, "queue pairs that a module has moved to ERR before the outcome of their connect");

/* Connects without an outcome. */
static DEFINE_SPINLOCK(pending_lock);
static struct pending {
	const struct iw_cm_id *id;
	u32 qp_num;
} pending[64];

/* Returns the place of an id, or a free one for NULL. Call with the lock held. */
static struct pending *find(const struct iw_cm_id *id)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pending); i++)
		if (pending[i].id == id)
			return &pending[i];
	return NULL;
}

static void begin(const struct iw_cm_id *id, u32 qp_num)
{
	struct pending *place;

	spin_lock(&pending_lock);
	place = find(NULL);
	if (!WARN_ON(!place))
		*place = (struct pending) { id, qp_num };
	spin_unlock(&pending_lock);
}

static void end(const struct iw_cm_id *id)
{
	struct pending *place;

	spin_lock(&pending_lock);
	place = find(id);
	if (place)
		place->id = NULL;
	spin_unlock(&pending_lock);
}

/* The connection of such a queue pair ends meanwhile, and the queue pair still works. */
static atomic_t hold_failures = ATOMIC_INIT(0);
module_param_cb(hold_failures, &disguise_once_ops, &hold_failures, 0644);
MODULE_PARM_DESC(hold_failures, "1 holds queue pairs that a module moves to ERR from now on, 0 lets them go on");

void disguise_note_failure(const struct ib_qp *qp)
{
	unsigned int i;

	disguise_hold_until_zero(&hold_failures);
	spin_lock(&pending_lock);
	for (i = 0; i < ARRAY_SIZE(pending); i++)
		if (pending[i].id && pending[i].qp_num == qp->qp_num)
			atomic_inc(&failed_amid_connect);
	spin_unlock(&pending_lock);
}

/* Those of iw_cm. All ids have the same one. */
static iw_event_handler of_iw_cm;

/* The outcome of a connect, in a context where the driver may sleep. */
static int outcome(struct iw_cm_id *id, struct iw_cm_event *event)
{
	int error;

	atomic_inc(&disguise_inside);
	id->event_handler = of_iw_cm;
	end(id);
	if (event->event == IW_CM_EVENT_CONNECT_REPLY && !event->status &&
	    atomic_read(&hold_replies)) {
		atomic_inc(&held);
		disguise_hold_until_zero(&hold_replies);
	}
	atomic_inc(&outcomes);
	error = of_iw_cm(id, event);
	atomic_dec(&disguise_inside);
	return error;
}

static int iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	int error;

	if (!atomic_read(&hold_replies) && !atomic_read(&watches_connects))
		return disguise_own.iw_connect(id, param);
	of_iw_cm = id->event_handler;
	id->event_handler = outcome;
	begin(id, param->qpn);
	error = disguise_own.iw_connect(id, param);
	if (error) {
		end(id);
		id->event_handler = of_iw_cm;
	} else {
		atomic_inc(&connects);
	}
	return error;
}

static int iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	disguise_note_caller();
	return disguise_own.iw_accept(id, param);
}

static int iw_reject(struct iw_cm_id *id, const void *data, u8 length)
{
	disguise_note_caller();
	return disguise_own.iw_reject(id, data, length);
}

static atomic_t only_ipv4 = ATOMIC_INIT(0);
module_param_cb(only_ipv4, &disguise_once_ops, &only_ipv4, 0644);
MODULE_PARM_DESC(only_ipv4, "1 refuses to listen at addresses of IPv6, as erdma does");

static int iw_create_listen(struct iw_cm_id *id, int backlog)
{
	if (id->local_addr.ss_family != AF_INET && atomic_read(&only_ipv4))
		return -EAFNOSUPPORT;
	return disguise_own.iw_create_listen(id, backlog);
}

void disguise_add_iwarp(struct ib_device *dev)
{
	if (!disguise_own.iw_connect)
		return;
	dev->ops.iw_connect = iw_connect;
	dev->ops.iw_accept = iw_accept;
	dev->ops.iw_reject = iw_reject;
	dev->ops.iw_create_listen = iw_create_listen;
}

void disguise_remove_iwarp(struct ib_device *dev)
{
	dev->ops.iw_connect = disguise_own.iw_connect;
	dev->ops.iw_accept = disguise_own.iw_accept;
	dev->ops.iw_reject = disguise_own.iw_reject;
	dev->ops.iw_create_listen = disguise_own.iw_create_listen;
}

void disguise_release_iwarp(void)
{
	atomic_set(&hold_replies, 0);
	atomic_set(&hold_failures, 0);
}

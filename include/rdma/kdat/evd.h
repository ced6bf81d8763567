/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Event Dispatchers (EVDs). */
#ifndef _RDMA_KDAT_EVD_H
#define _RDMA_KDAT_EVD_H

#include <rdma/kdat/event.h>
#include <rdma/kdat/types.h>

typedef u32 DAT_EVD_FLAGS;
#define DAT_EVD_SOFTWARE_FLAG		0x001
#define DAT_EVD_CR_FLAG			0x010
#define DAT_EVD_DTO_FLAG		0x020
#define DAT_EVD_CONNECTION_FLAG		0x040
#define DAT_EVD_RMR_BIND_FLAG		0x080
#define DAT_EVD_ASYNC_FLAG		0x100

typedef u32 DAT_EVD_STATE;
#define DAT_EVD_STATE_ENABLED		0x01
#define DAT_EVD_STATE_DISABLED		0x02
#define DAT_EVD_STATE_WAITABLE		0x04
#define DAT_EVD_STATE_UNWAITABLE	0x08

/* Policy for upcalls of an EVD; docs/kernel-api/upcalls.md describes the guarantees of each. */
typedef s32 DAT_UPCALL_POLICY;
#define DAT_UPCALL_DISABLE		0	/* no upcalls */
#define DAT_UPCALL_SINGLE_INSTANCE	1	/* one at a time, each with an event */
#define DAT_UPCALL_NOTIFY		2	/* one at a time, without an event */
#define DAT_UPCALL_NORIFY		DAT_UPCALL_NOTIFY /* spelling of older headers */
#define DAT_UPCALL_MANY			100	/* several at a time, each with an event */
#define DAT_UPCALL_TEARDOWN		(-1)	/* no upcalls; waits for those in progress */

/*
 * Upcall of an EVD. Context: work item, or soft interrupt for kdapl_evd_create_bh(). In a work item
 * it may sleep, and may make any call except those that wait for it to return (see dat_ia_close(),
 * dat_evd_free() and dat_evd_modify_upcall()).
 *
 * @event is valid until the upcall returns. It is NULL under DAT_UPCALL_NOTIFY. @more_events is set
 * if further events are queued.
 */
typedef void (*DAT_UPCALL_FUNC)(void *instance_data, const DAT_EVENT *event,
				DAT_BOOLEAN more_events);

typedef struct dat_upcall_object {
	void *instance_data;
	DAT_UPCALL_FUNC upcall_func;
} DAT_UPCALL_OBJECT;

#define DAT_UPCALL_SAME			((const DAT_UPCALL_OBJECT *)NULL)

typedef u32 DAT_UPCALL_FLAG;
#define DAT_UPCALL_INVOC_NEW		0	/* only for events that arrive from now on */
#define DAT_UPCALL_INVOC_ANY		1	/* also for events that are queued already */

typedef struct dat_evd_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COUNT evd_qlen;
	DAT_EVD_STATE evd_state;
	DAT_CNO_HANDLE cno_handle;
	DAT_EVD_FLAGS evd_flags;
	DAT_UPCALL_POLICY upcall_policy;
} DAT_EVD_PARAM;

/**
 * dat_evd_kcreate() - create an EVD
 * @ia: IA
 * @qlen: minimum queue length, in events
 * @policy: upcalls that the EVD makes
 * @upcall: function for the upcalls; may be NULL with DAT_UPCALL_DISABLE
 * @flags: event streams that may feed the EVD, a mask of DAT_EVD_*_FLAG
 * @evd: out: the EVD
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_kcreate(DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
			   const DAT_UPCALL_OBJECT *upcall, DAT_EVD_FLAGS flags,
			   DAT_EVD_HANDLE *evd);
/* Largest budget of kdapl_evd_create_bh(). */
#define KDAPL_MAX_UPCALL_BUDGET		64

/**
 * kdapl_evd_create_bh() - create an EVD whose upcalls are made in soft interrupts
 * @ia: IA
 * @qlen: as for dat_evd_kcreate()
 * @policy: as for dat_evd_kcreate(), without DAT_UPCALL_MANY
 * @upcall: as for dat_evd_kcreate(). The function must not sleep.
 * @budget: number of upcalls in one run, 1 to KDAPL_MAX_UPCALL_BUDGET. Other EVDs have their turn
 *         before the next run.
 * @flags: as for dat_evd_kcreate()
 * @evd: out: the EVD
 *
 * Not a call of DAT. Saves the switch to a thread for each upcall, if the driver reports
 * completions in interrupts. dat_evd_modify_upcall() changes policy and function, and not where
 * upcalls are made.
 *
 * An upcall may post DTOs and receives, register and invalidate by requests, dequeue from this EVD
 * and others of this kind, and post software events: see docs/kernel-api/upcalls.md. Any other call
 * may sleep, and must not be made. dat_evd_free(), dat_ia_close() and dat_evd_modify_upcall() are
 * DAT_INVALID_STATE in a soft interrupt.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_PARAMETER for DAT_UPCALL_MANY, and for an
 * invalid budget.
 */
DAT_RETURN kdapl_evd_create_bh(DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
			       const DAT_UPCALL_OBJECT *upcall, DAT_COUNT budget,
			       DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd);
/**
 * dat_evd_modify_upcall() - change the upcall policy and the upcall function of an EVD
 * @evd: EVD
 * @policy: upcalls that the EVD makes from now on
 * @upcall: new upcall function, or DAT_UPCALL_SAME to keep the current one
 * @flag: whether events that are queued already cause upcalls (DAT_UPCALL_INVOC_*)
 *
 * Upcalls in progress complete with the function that they began with. Only DAT_UPCALL_TEARDOWN
 * waits for them.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE while a thread waits on the EVD, or if an
 * upcall of the same EVD asks for DAT_UPCALL_TEARDOWN, or in an interrupt.
 */
DAT_RETURN dat_evd_modify_upcall(DAT_EVD_HANDLE evd, DAT_UPCALL_POLICY policy,
				 const DAT_UPCALL_OBJECT *upcall, DAT_UPCALL_FLAG flag);
/**
 * dat_evd_query() - query the parameters of an EVD
 * @evd: EVD
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd, u64 mask, DAT_EVD_PARAM *param);
/**
 * dat_evd_modify_cno() - change the CNO that an EVD triggers
 * @evd: EVD
 * @cno: CNO of the same IA; DAT_HANDLE_NULL for none
 *
 * A trigger that no waiter has taken yet moves to @cno.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno);
/**
 * dat_evd_enable() - let an EVD trigger its CNO
 * @evd: EVD
 *
 * If events are queued, the CNO is triggered at once. EVDs are created enabled.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd);
/**
 * dat_evd_disable() - do not let an EVD trigger its CNO
 * @evd: EVD
 *
 * Events are queued as before. Waits and upcalls are not affected.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd);
/**
 * dat_evd_set_unwaitable() - refuse waits on an EVD
 * @evd: EVD
 *
 * dat_evd_wait() is DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_UNWAITABLE) until
 * dat_evd_clear_unwaitable(). A thread that waits already is woken with that error.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd);
/**
 * dat_evd_clear_unwaitable() - allow waits on an EVD again
 * @evd: EVD
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd);
/**
 * dat_evd_wait() - wait for events and take the oldest
 * @evd: EVD
 * @timeout: time to wait, or DAT_TIMEOUT_INFINITE
 * @threshold: number of events to wait for
 * @event: out: the oldest event
 * @nmore: out: number of events left in the queue. May be NULL, which is cheaper: the call then
 *         need not drain the completion queues.
 *
 * A signal ends the wait if the calling thread accepts signals.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INTERRUPTED_CALL after a signal; DAT_INVALID_STATE for
 * an EVD that makes upcalls.
 */
DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			DAT_EVENT *event, DAT_COUNT *nmore);
/**
 * dat_evd_dequeue() - take the oldest event of an EVD, without waiting
 * @evd: EVD
 * @event: out: the event, which belongs to the caller. Pointers in it are valid as the data of the
 *         event say.
 *
 * Each event is delivered once: to this call, to a wait, or to an upcall. Any number of threads may
 * dequeue. In an interrupt, and under spinlocks, only EVDs of kdapl_evd_create_bh() can be.
 *
 * Return: DAT_SUCCESS or an error code. DAT_QUEUE_EMPTY if there is no event. DAT_INVALID_STATE in
 * an interrupt for an EVD of another kind.
 */
DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event);
/**
 * dat_evd_resize() - change the queue length of an EVD
 * @evd: EVD
 * @qlen: new minimum queue length, in events
 *
 * Queued events stay, in their order.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE if more than @qlen events are queued.
 */
DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT qlen);
/**
 * dat_evd_post_se() - queue a software event
 * @evd: EVD that was created with DAT_EVD_SOFTWARE_FLAG
 * @event: event whose event_number is DAT_SOFTWARE_EVENT. Of its data, software_event_data.pointer
 *         is kept, and never dereferenced.
 *
 * Return: DAT_SUCCESS or an error code. DAT_QUEUE_FULL if the queue has no room for a software
 * event.
 */
DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd, const DAT_EVENT *event);
/**
 * dat_evd_free() - free an EVD
 * @evd: EVD
 *
 * On return, no upcall of the EVD is in progress.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE if a thread waits on the EVD, if another
 * object uses it, if an upcall of the EVD makes the call, or in an interrupt.
 */
DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd);

#endif /* _RDMA_KDAT_EVD_H */

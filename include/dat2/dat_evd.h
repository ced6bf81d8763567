/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Calls on Event Dispatchers. */
#pragma once

#include <dat2/dat_event.h>

/**
 * dat_evd_create() - Create an Event Dispatcher
 * @ia: the IA
 * @min_qlen: length of the queue in events, at least 1; rounded up to a power of two
 * @cno: CNO that events trigger, or DAT_HANDLE_NULL
 * @flags: streams of events that the EVD may get, one or more of DAT_EVD_FLAGS
 * @evd: out: the EVD
 *
 * Any number of Endpoints and service points may report to an EVD, and any streams may share one.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CNO): @cno is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @min_qlen is 0 or above max_evd_qlen of the IA
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG4): @flags has an unknown value
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): no memory, or a limit of the user
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_DEVICE): the device was removed
 *
 * Example: evd.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_evd_create(DAT_IA_HANDLE ia, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
	       DAT_EVD_HANDLE *evd);

/**
 * dat_evd_query() - Query the parameters of an EVD
 * @evd: the EVD
 * @mask: DAT_EVD_FIELD_ALL
 * @param: out: the parameters, with the actual length of the queue
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_REQUEST): @evd is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @mask has unknown bits
 *
 * Example: evd.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_evd_query(DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param);

/**
 * dat_evd_modify_cno() - Change the CNO that an EVD triggers
 * @evd: the EVD
 * @cno: the new CNO, or DAT_HANDLE_NULL
 *
 * Queued events trigger the new CNO at once.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_REQUEST): @evd is stale or another object
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CNO): @cno is stale or another object
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): no memory
 *
 * Example: evd.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno);

/**
 * dat_evd_enable() - Let an EVD trigger its CNO
 * @evd: the EVD
 *
 * A new EVD is enabled. If events are queued, the CNO is triggered at once. Waits on the EVD itself
 * do not depend on this.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_REQUEST): @evd is stale or another object
 *
 * Example: evd.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_evd_enable(DAT_EVD_HANDLE evd);

/**
 * dat_evd_disable() - Keep an EVD from triggering its CNO
 * @evd: the EVD
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_REQUEST): @evd is stale or another object
 *
 * Example: evd.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_evd_disable(DAT_EVD_HANDLE evd);

/**
 * dat_evd_wait() - Wait for events, and take the oldest
 * @evd: the EVD
 * @timeout: microseconds, or DAT_TIMEOUT_INFINITE; 0 does not wait
 * @threshold: number of events to wait for, from 1 to the length of the queue
 * @event: out: the oldest event
 * @nmore: out: number of events that are left in the queue
 *
 * Returns once @threshold events are queued. A call that fails takes no event. One thread at a time
 * may wait on an EVD; others may call dat_evd_dequeue().
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_REQUEST): @evd is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3): @threshold is out of range
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_UNWAITABLE): the EVD is unwaitable, or became so
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_CONFIG_NOTIFY,
 *   DAT_INVALID_STATE_EVD_CONFIG_SOLICITED): @threshold is above 1, and an Endpoint of the EVD
 *   chose which completions wake
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_WAITER): another thread waits on it
 * * DAT_TIMEOUT_EXPIRED: the time is over, with fewer events
 * * DAT_INTERRUPTED_CALL: a signal has called a handler
 * * DAT_ABORT: the IA was closed, or its device was removed and no more events can arrive
 *
 * Example: evd.c
 * See: dat_cno_wait()
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT *event,
	     DAT_COUNT *nmore);

/**
 * dat_evd_dequeue() - Take the oldest event, if there is one
 * @evd: the EVD
 * @event: out: the event
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_REQUEST): @evd is stale or another object
 * * DAT_QUEUE_EMPTY: there is no event; the class as of dat_cno_wait()
 *
 * Example: evd.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event);

/**
 * dat_evd_post_se() - Queue a software event
 * @evd: the EVD, with the stream DAT_EVD_SOFTWARE_FLAG
 * @event: an event with the number DAT_SOFTWARE_EVENT, whose pointer is passed on
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_REQUEST): @evd is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG1): the EVD does not have the stream
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): the event has another number
 * * DAT_QUEUE_FULL: the queue is full
 *
 * Events:
 * * DAT_SOFTWARE_EVENT: with the pointer
 *
 * Example: evd.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_evd_post_se(DAT_EVD_HANDLE evd, const DAT_EVENT *event);

/**
 * dat_evd_resize() - Change the length of an EVD's queue
 * @evd: the EVD
 * @min_qlen: the new length in events; rounded up to a power of two
 *
 * No event is lost, and others may be queued and taken meanwhile.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_REQUEST): @evd is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @min_qlen is out of range
 * * DAT_INVALID_STATE: more events than that are queued
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_WAITER): a thread waits for more events than that
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): no memory
 *
 * Example: evd.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT min_qlen);

/**
 * dat_evd_set_unwaitable() - Forbid waits on an EVD
 * @evd: the EVD
 *
 * A thread that waits gets DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_UNWAITABLE). Events can still
 * be dequeued, and trigger the CNO.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_REQUEST): @evd is stale or another object
 *
 * Example: evd.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_evd_set_unwaitable(DAT_EVD_HANDLE evd);

/**
 * dat_evd_clear_unwaitable() - Allow waits on an EVD
 * @evd: the EVD
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_REQUEST): @evd is stale or another object
 *
 * Example: evd.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd);

/**
 * dat_evd_free() - Free an EVD
 * @evd: the EVD
 *
 * The events in it are lost.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_REQUEST): @evd is stale or another object
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_ASYNC): it is the IA's asynchronous EVD
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_IN_USE): an Endpoint or a service point uses it
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_WAITER): a thread waits on it
 *
 * Example: evd.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_evd_free(DAT_EVD_HANDLE evd);

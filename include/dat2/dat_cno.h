/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Calls on Consumer Notification Objects. */
#pragma once

#include <dat2/dat_event.h>

/**
 * dat_cno_create() - Create a Consumer Notification Object
 * @ia: the IA
 * @agent: function that is called for each trigger, or DAT_OS_WAIT_PROXY_AGENT_NULL
 * @cno: out: the CNO
 *
 * A CNO is one place to wait for events of many EVDs. An enabled EVD triggers its CNO when it gets
 * an event while no thread waits on the EVD itself. The agent is called in a thread of the library,
 * and gets each trigger, also if a thread waits in dat_cno_wait().
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): no memory, or a limit of the user
 *
 * Example: cno.c
 * See: dat_cno_fd_create(), dat_evd_create()
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE *cno);

/**
 * dat_cno_fd_create() - Create a CNO with a file for poll(2)
 * @ia: the IA
 * @fd: out: a file descriptor, with close-on-exec; the program closes it
 * @cno: out: the CNO
 *
 * The file is readable while dat_cno_wait() would return at once. It reports POLLHUP once the CNO
 * was freed or the IA was closed. A read takes triggers, each as struct kdapl_trigger of
 * rdma/kdapl.h. dat_cno_wait() does not return those.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_INSUFFICIENT_RESOURCES: no memory, a limit of the user, or too many open files
 *
 * Example: cno.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_cno_fd_create(DAT_IA_HANDLE ia, DAT_FD *fd, DAT_CNO_HANDLE *cno);

/**
 * dat_cno_modify_agent() - Replace the agent of a CNO
 * @cno: the CNO
 * @agent: the new agent, or DAT_OS_WAIT_PROXY_AGENT_NULL
 *
 * The old agent is not called any more when the call returns. (An agent that replaces itself runs
 * to its end.)
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CNO): @cno is stale or another object
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): no thread or file for the agent
 *
 * Example: cno.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent);

/**
 * dat_cno_query() - Query the parameters of a CNO
 * @cno: the CNO
 * @mask: DAT_CNO_FIELD_ALL
 * @param: out: the parameters
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CNO): @cno is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @mask has unknown bits
 *
 * Example: cno.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_cno_query(DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param);

/**
 * dat_cno_wait() - Wait until an EVD triggers a CNO
 * @cno: the CNO
 * @timeout: microseconds, or DAT_TIMEOUT_INFINITE
 * @evd: out: the EVD; DAT_HANDLE_NULL after dat_cno_trigger() and after an error
 *
 * EVDs are returned in the order in which they triggered. One that still has events triggers again.
 * An EVD may be empty when it is returned, because another thread has taken its events. Any number
 * of threads may wait.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CNO): @cno is stale or another object
 * * DAT_QUEUE_EMPTY: the time is over; without its class of error unless the IA was opened with the
 *   option strict, because programs compare with the bare number
 * * DAT_INTERRUPTED_CALL: a signal has called a handler
 * * DAT_ABORT: the IA was closed, or the CNO has lost its last EVD
 *
 * Example: cno.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd);

/**
 * dat_cno_trigger() - Trigger a CNO without an event
 * @cno: the CNO
 * @evd: out: DAT_HANDLE_NULL; may be NULL
 *
 * Wakes one thread that waits on the CNO, or the next one that does. Without effect while such a
 * trigger is pending.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CNO): @cno is stale or another object
 *
 * Example: cno.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *evd);

/**
 * dat_cno_free() - Free a CNO
 * @cno: the CNO
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CNO): @cno is stale or another object
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_CNO_IN_USE): an EVD uses it, or a thread waits on it
 *
 * Example: cno.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_cno_free(DAT_CNO_HANDLE cno);

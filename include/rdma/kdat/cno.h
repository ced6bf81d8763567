/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Consumer Notification Objects (CNOs). */
#ifndef _RDMA_KDAT_CNO_H
#define _RDMA_KDAT_CNO_H

#include <rdma/kdat/types.h>

/*
 * Proxy agent of a Consumer Notification Object (CNO), called for each trigger. Context: that of
 * the event, possibly hard interrupt with spinlocks held. The agent must not sleep, must not make
 * any DAT call, and must not take a lock under which the consumer posts. It may wake a thread or
 * queue work. @evd is the EVD that triggered the CNO; it is NULL for dat_cno_trigger().
 */
typedef void (*DAT_AGENT_FUNC)(void *instance_data, DAT_EVD_HANDLE evd);

typedef struct dat_os_wait_proxy_agent {
	void *instance_data;
	DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;

#define DAT_OS_WAIT_PROXY_AGENT_NULL	((DAT_OS_WAIT_PROXY_AGENT){ NULL, NULL })

typedef u32 DAT_CNO_PROXY_TYPE;
#define DAT_PROXY_TYPE_NONE		0
#define DAT_PROXY_TYPE_AGENT		1

typedef struct dat_cno_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CNO_PROXY_TYPE proxy_type;
} DAT_CNO_PARAM;

/**
 * dat_cno_create() - create a CNO
 * @ia: IA
 * @agent: agent that is called for each trigger, or DAT_OS_WAIT_PROXY_AGENT_NULL. Its function and
 *         its data must stay valid until dat_cno_free() or dat_cno_modify_agent() has returned.
 * @cno: out: the CNO
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent,
			  DAT_CNO_HANDLE *cno);
/**
 * dat_cno_modify_agent() - replace the proxy agent of a CNO
 * @cno: CNO
 * @agent: new agent, or DAT_OS_WAIT_PROXY_AGENT_NULL for none
 *
 * On return, the old agent is not called any more.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent);
/**
 * dat_cno_query() - query the parameters of a CNO
 * @cno: CNO
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno, u64 mask, DAT_CNO_PARAM *param);
/**
 * dat_cno_wait() - wait for a trigger of a CNO
 * @cno: CNO
 * @timeout: time to wait, or DAT_TIMEOUT_INFINITE
 * @evd: out: EVD that triggered the CNO; DAT_HANDLE_NULL after dat_cno_trigger()
 *
 * Return: DAT_SUCCESS or an error code. DAT_QUEUE_EMPTY if the time-out expires.
 * DAT_ABORT when the CNO or the IA ends, or when no EVD triggers the CNO any more.
 * DAT_INTERRUPTED_CALL after a signal.
 */
DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd);
/**
 * dat_cno_trigger() - trigger a CNO as an EVD does
 * @cno: CNO
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cno_trigger(DAT_CNO_HANDLE cno);
/**
 * dat_cno_free() - free a CNO
 * @cno: CNO
 *
 * On return, the agent is not called any more.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (DAT_INVALID_STATE_CNO_IN_USE) while an
 * EVD triggers the CNO, or a thread waits for it.
 */
DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno);

#endif /* _RDMA_KDAT_CNO_H */

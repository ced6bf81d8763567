/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Event Dispatchers (EVDs). */
#ifndef _UAPI_RDMA_KDAPL_EVD_H
#define _UAPI_RDMA_KDAPL_EVD_H

#include <rdma/kdapl/common.h>
#include <rdma/kdapl/event.h>

/* KDAPL_EVD_CREATE.flags: event streams that may feed the EVD. */
#define KDAPL_EVD_SOFTWARE	0x001
#define KDAPL_EVD_CR		0x010
#define KDAPL_EVD_DTO		0x020
#define KDAPL_EVD_CONNECTION	0x040
#define KDAPL_EVD_RMR_BIND	0x080
#define KDAPL_EVD_ASYNC		0x100
#define KDAPL_EVD_FLAGS_ALL	0x1f1

/**
 * struct kdapl_evd_create - KDAPL_EVD_CREATE: create an EVD
 * @hdr: header
 * @qlen: in: minimum queue length, 1 .. max_evd_qlen; out: actual queue length
 * @flags: in: KDAPL_EVD_*, at least one
 * @cno: in: CNO that the EVD triggers, or 0
 * @vector: in: completion vector for the EVD's completions, below completion_vectors of
 *         KDAPL_IA_QUERY; -1 selects the vector of the caller's CPU
 * @pad: 0
 * @handle: out: handle of the EVD
 */
struct kdapl_evd_create {
	struct kdapl_hdr hdr;
	__s32 qlen;
	__u32 flags;
	__u64 cno;
	__s32 vector;
	__u32 pad;
	__u64 handle;
};

/**
 * struct kdapl_evd_query - KDAPL_EVD_QUERY: query the parameters of an EVD
 * @hdr: header
 * @handle: in: EVD
 * @cno: out: CNO that the EVD triggers, or 0
 * @qlen: out: queue length
 * @state: out: KDAPL_EVD_ENABLED or _DISABLED, KDAPL_EVD_WAITABLE or _UNWAITABLE, and one of
 *         KDAPL_EVD_CONFIG_*
 * @flags: out: KDAPL_EVD_*
 * @queued: out: number of events that can be dequeued, without the completions that are still in
 *         the device's completion queues
 * @vector: out: completion vector of the first completion queue
 * @cqs: out: number of completion queues
 */
struct kdapl_evd_query {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 cno;
	__s32 qlen;
	__u32 state;
	__u32 flags;
	__u32 queued;
	__u32 vector;
	__u32 cqs;
};

/* struct kdapl_evd_query.state */
#define KDAPL_EVD_ENABLED	0x01
#define KDAPL_EVD_DISABLED	0x02
#define KDAPL_EVD_WAITABLE	0x04
#define KDAPL_EVD_UNWAITABLE	0x08
/* Completions that wake a waiter, determined by the completion flags of the EVD's EPs. */
#define KDAPL_EVD_CONFIG_NOTIFY	0x10	/* DTOs without UNSIGNALLED */
#define KDAPL_EVD_CONFIG_SOLICITED 0x20	/* messages with SOLICITED_WAIT */
#define KDAPL_EVD_CONFIG_THRESHOLD 0x30	/* all; the default */

/**
 * struct kdapl_evd_modify_cno - KDAPL_EVD_MODIFY_CNO: change the CNO of an EVD
 * @hdr: header
 * @handle: in: EVD
 * @cno: in: CNO that the EVD triggers from now on, or 0
 */
struct kdapl_evd_modify_cno {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 cno;
};

/**
 * struct kdapl_evd_resize - KDAPL_EVD_RESIZE: change the queue length of an EVD
 * @hdr: header
 * @handle: in: EVD
 * @qlen: in: minimum queue length, 1 .. max_evd_qlen; out: actual queue length
 * @pad: 0
 */
struct kdapl_evd_resize {
	struct kdapl_hdr hdr;
	__u64 handle;
	__s32 qlen;
	__u32 pad;
};

#define KDAPL_EVENTS_MAX	256	/* events taken by one call */

/**
 * struct kdapl_evd_wait - KDAPL_EVD_WAIT and KDAPL_EVD_DEQUEUE: take events from an EVD
 * @hdr: header
 * @taken: out: number of events in @events
 * @nmore: out: number of events left in the queue
 * @handle: in: EVD
 * @timeout_ns: in: time to wait, counted from the entry of the call; with KDAPL_FLAG_ABSOLUTE, the
 *         time at which the wait ends. KDAPL_TIMEOUT_INFINITE waits without a limit. WAIT only.
 * @threshold: in: number of events to wait for, 1 .. qlen; WAIT only
 * @max_events: in: capacity of @events, at least 1. Values above KDAPL_EVENTS_MAX are treated as
 *         KDAPL_EVENTS_MAX.
 * @events: in: address of an array of @max_events struct kdapl_event, which the kernel fills in
 * @event_size: in: size of an element of @events, at least KDAPL_EVENT_SIZE_MIN
 * @pad: 0
 */
struct kdapl_evd_wait {
	struct kdapl_hdr hdr;
	__u32 taken;
	__u32 nmore;
	__u64 handle;
	__u64 timeout_ns;
	__s32 threshold;
	__u32 max_events;
	__u64 events;
	__u32 event_size;
	__u32 pad;
};

/**
 * struct kdapl_evd_fd - KDAPL_EVD_FD: open a file to read and poll the events of an EVD, and to
 * write software events
 * @hdr: header
 * @handle: in: EVD
 * @fd: out: file descriptor with FD_CLOEXEC; -1 after an error
 * @event_size: in: size of a record that is read, at least KDAPL_EVENT_SIZE_MIN. The record is a
 *         struct kdapl_event. A record that is written is a __u64: the pointer of a software event.
 */
struct kdapl_evd_fd {
	struct kdapl_hdr hdr;
	__u64 handle;
	__s32 fd;
	__u32 event_size;
};

/**
 * struct kdapl_evd_post_se - KDAPL_EVD_POST_SE: post a software event
 * @hdr: header
 * @handle: in: EVD with KDAPL_EVD_SOFTWARE
 * @pointer: in: cookie of the event
 */
struct kdapl_evd_post_se {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 pointer;
};

#endif /* _UAPI_RDMA_KDAPL_EVD_H */

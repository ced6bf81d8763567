/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Header of all messages, and types and limits that several messages share. */
#ifndef _UAPI_RDMA_KDAPL_COMMON_H
#define _UAPI_RDMA_KDAPL_COMMON_H

#include <linux/types.h>

#define KDAPL_ABI_VERSION	2
#define KDAPL_DEVICE_NAME	"kdapl"
#define KDAPL_NAME_MAX		64	/* bytes, including the NUL */
#define KDAPL_PRIVATE_DATA_MAX	256	/* bytes; a transport may carry less, see IA_QUERY */
#define KDAPL_IOV_MAX		32	/* segments of one DTO */
#define KDAPL_ELEMENT_MAX	4096	/* bytes of an array element */
#define KDAPL_TIMEOUT_INFINITE	0x7fffffffffffffffULL	/* and all larger values */

/**
 * struct kdapl_hdr - header of every message
 * @size: in: size of the whole message in bytes
 * @flags: in: mask of the KDAPL_FLAG_* that the call supports
 * @ret: out: DAT_RETURN (class, type and subtype)
 * @reserved: 0
 */
struct kdapl_hdr {
	__u32 size;
	__u32 flags;
	__u32 ret;
	__u32 reserved;
};

/*
 * Makes @timeout_ns a time of the caller's CLOCK_MONOTONIC instead of a duration. Supported by
 * EVD_WAIT, EP_SUBMIT, CNO_WAIT, EP_CONNECT, EP_DUP_CONNECT and EP_COMMON_CONNECT.
 */
#define KDAPL_FLAG_ABSOLUTE	0x1
/*
 * Takes a trigger that the eventfd of a CNO has reported, instead of one for waiters. Does not
 * sleep: @timeout_ns is 0. Supported by CNO_WAIT.
 */
#define KDAPL_FLAG_AGENT	0x2
/*
 * Closes the ready gate of the connection: ESTABLISHED and all later events wait for EP_READY.
 * Supported by EP_CONNECT, EP_DUP_CONNECT, EP_COMMON_CONNECT and CR_ACCEPT.
 */
#define KDAPL_FLAG_READY_GATE	0x4
/*
 * Asks for a promise: the caller maps further DTOs of the Endpoint. Supported by EP_POST and
 * EP_SUBMIT.
 */
#define KDAPL_FLAG_PROMISE	0x8

/**
 * struct kdapl_sockaddr - IP address
 * @sa: a struct sockaddr_in or sockaddr_in6 in native layout. The kernel ignores the bytes after it
 *         on input, and fills them with zeros on output. Has the size of struct sockaddr_storage.
 */
struct kdapl_sockaddr {
	__u8 sa[128];
};

#define KDAPL_CLOSE_ABRUPT	0
#define KDAPL_CLOSE_GRACEFUL	1

/**
 * struct kdapl_handle - KDAPL_*_FREE, and other messages that consist of a handle
 * @hdr: header
 * @handle: in: handle of the object; out for KDAPL_PZ_CREATE
 */
struct kdapl_handle {
	struct kdapl_hdr hdr;
	__u64 handle;
};

#endif /* _UAPI_RDMA_KDAPL_COMMON_H */

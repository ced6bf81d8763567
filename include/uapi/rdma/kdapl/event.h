/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Events. */
#ifndef _UAPI_RDMA_KDAPL_EVENT_H
#define _UAPI_RDMA_KDAPL_EVENT_H

#include <rdma/kdapl/common.h>

/* struct kdapl_event.number */
#define KDAPL_EVENT_DTO_COMPLETION		0x00001
#define KDAPL_EVENT_RMR_BIND_COMPLETION		0x01001
#define KDAPL_EVENT_CONNECTION_REQUEST		0x02001
#define KDAPL_EVENT_ESTABLISHED			0x04001
#define KDAPL_EVENT_PEER_REJECTED		0x04002
#define KDAPL_EVENT_NON_PEER_REJECTED		0x04003
#define KDAPL_EVENT_ACCEPT_COMPLETION_ERROR	0x04004
#define KDAPL_EVENT_DISCONNECTED		0x04005
#define KDAPL_EVENT_BROKEN			0x04006
#define KDAPL_EVENT_TIMED_OUT			0x04007
#define KDAPL_EVENT_UNREACHABLE			0x04008
#define KDAPL_EVENT_ASYNC_EVD_OVERFLOW		0x08001
#define KDAPL_EVENT_ASYNC_IA_CATASTROPHIC	0x08002
#define KDAPL_EVENT_ASYNC_EP_BROKEN		0x08003
#define KDAPL_EVENT_SOFTWARE			0x10001
#define KDAPL_EVENT_IB_DTO			0x40000	/* DTO_COMPLETION of a KDAPL_IB_DTO_* */

/**
 * struct kdapl_event - event; element of an array
 * @number: type of the event, KDAPL_EVENT_*
 * @status: DTO and bind: DAT_DTO_COMPLETION_STATUS; asynchronous: reason code
 * @evd: EVD that the event was taken from
 * @object: DTO and connection: EP; bind: RMR; request: CR; asynchronous: object that the error
 *         occurred on
 * @cookie: DTO and bind: cookie of the post; request: service point (PSP, RSP or CSP); software:
 *         pointer
 * @value: DTO: number of bytes transferred; request: connection qualifier
 * @operation: DTO: KDAPL_DTO_* or KDAPL_IB_DTO_*
 * @rmr_context: RECEIVE_WITH_INVALIDATE: RMR context that the peer invalidated
 * @private_data_size: request, ESTABLISHED and PEER_REJECTED: size of the private data
 * @immed_data: KDAPL_IB_DTO_RECV_IMMED and _RECV_MSG_IMMED: immediate data
 * @reserved: 0
 */
struct kdapl_event {
	__u32 number;
	__u32 status;
	__u64 evd;
	__u64 object;
	__u64 cookie;
	__u64 value;
	__u32 operation;
	__u32 rmr_context;
	__u32 private_data_size;
	__u32 immed_data;
	__u64 reserved;
};

#define KDAPL_EVENT_SIZE_MIN	64

#endif /* _UAPI_RDMA_KDAPL_EVENT_H */

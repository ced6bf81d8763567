/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Shared Receive Queues (SRQs). */
#ifndef _UAPI_RDMA_KDAPL_SRQ_H
#define _UAPI_RDMA_KDAPL_SRQ_H

#include <rdma/kdapl/common.h>

/**
 * struct kdapl_srq_create - KDAPL_SRQ_CREATE: create an SRQ
 * @hdr: header
 * @pz: in: PZ, with the memory of the receives
 * @max_recv_dtos: in: number of receives that the SRQ holds, at least 1
 * @max_recv_iov: in: maximum number of segments of a receive, at least 1
 * @low_watermark: in: 0
 * @pad: 0
 * @handle: out: handle of the SRQ
 */
struct kdapl_srq_create {
	struct kdapl_hdr hdr;
	__u64 pz;
	__u32 max_recv_dtos;
	__u32 max_recv_iov;
	__u32 low_watermark;
	__u32 pad;
	__u64 handle;
};

/**
 * struct kdapl_srq_post - KDAPL_SRQ_POST_RECV: post a receive to an SRQ
 * @hdr: header
 * @handle: in: SRQ
 * @cookie: in: returned by the completion
 * @iov: in: address of @iov_count segments, struct kdapl_triplet
 * @iov_count: in: number of segments, at most KDAPL_IOV_MAX
 * @iov_size: in: size of a segment, at least sizeof(struct kdapl_triplet); ignored if @iov_count
 *         is 0
 */
struct kdapl_srq_post {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 cookie;
	__u64 iov;
	__u32 iov_count;
	__u32 iov_size;
};

/**
 * struct kdapl_srq_query - KDAPL_SRQ_QUERY: query the parameters of an SRQ
 * @hdr: header
 * @handle: in: SRQ
 * @ia: out: IA; all following members are out
 * @pz: PZ
 * @state: KDAPL_SRQ_OPERATIONAL
 * @max_recv_dtos: number of receives that the SRQ holds
 * @max_recv_iov: maximum number of segments of a receive
 * @low_watermark: low watermark, or 0
 * @available: number of receives that an EP may take
 * @outstanding: number of receives whose completion the consumer has not taken
 */
struct kdapl_srq_query {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 ia;
	__u64 pz;
	__u32 state;
	__u32 max_recv_dtos;
	__u32 max_recv_iov;
	__u32 low_watermark;
	__u32 available;
	__u32 outstanding;
};

/* DAT_SRQ_STATE. */
#define KDAPL_SRQ_ERROR		0
#define KDAPL_SRQ_OPERATIONAL	1

/**
 * struct kdapl_srq_number - KDAPL_SRQ_RESIZE, KDAPL_SRQ_SET_LW: set a number of receives of an SRQ
 * @hdr: header
 * @handle: in: SRQ
 * @number: in: KDAPL_SRQ_RESIZE: number of receives that the SRQ holds; KDAPL_SRQ_SET_LW: low
 *         watermark, or 0 for none. When fewer receives are available, one
 *         KDAPL_EVENT_ASYNC_EP_BROKEN with the handle of the SRQ and the reason
 *         KDAPL_SRQ_LOW_WATERMARK is reported.
 * @pad: 0
 */
struct kdapl_srq_number {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u32 number;
	__u32 pad;
};

#define KDAPL_SRQ_LOW_WATERMARK	2	/* reason of an asynchronous event of an SRQ */

#endif /* _UAPI_RDMA_KDAPL_SRQ_H */

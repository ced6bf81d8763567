/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Data transfer operations (DTOs). */
#ifndef _UAPI_RDMA_KDAPL_DTO_H
#define _UAPI_RDMA_KDAPL_DTO_H

#include <rdma/kdapl/common.h>

/**
 * struct kdapl_triplet - segment of an LMR or of the peer's RMR
 * @address: virtual address of the first byte
 * @length: number of bytes
 * @context: lmr_context (local) or rmr_context (remote)
 *
 * The first published size is the present one.
 */
struct kdapl_triplet {
	__u64 address;
	__u32 length;
	__u32 context;
};

/* struct kdapl_dto.operation and struct kdapl_event.operation. */
#define KDAPL_DTO_SEND		0
#define KDAPL_DTO_RDMA_WRITE	1
#define KDAPL_DTO_RDMA_READ	2
#define KDAPL_DTO_RECEIVE	3
#define KDAPL_DTO_RECEIVE_WITH_INVALIDATE	4	/* in events only; posted as RECEIVE */
#define KDAPL_DTO_SEND_WITH_INVALIDATE	0x100	/* its event is that of a SEND */
#define KDAPL_DTO_RDMA_READ_TO_RMR	0x101	/* its event is that of an RDMA_READ */

/* InfiniBand extensions. The receives occur in events only; they are posted as RECEIVE. */
#define KDAPL_IB_DTO_RDMA_WRITE_IMMED	8
#define KDAPL_IB_DTO_RECV_IMMED		9	/* consumed by an RDMA Write with immediate data */
#define KDAPL_IB_DTO_FETCH_ADD		10
#define KDAPL_IB_DTO_CMP_SWAP		11
#define KDAPL_IB_DTO_RECV_MSG_IMMED	12	/* consumed by a Send with immediate data */

/* DAT_COMPLETION_FLAGS: struct kdapl_dto.flags and the completion flags of an EP. */
#define KDAPL_COMPLETION_SUPPRESS	0x01	/* DTO: all but receives */
#define KDAPL_COMPLETION_SOLICITED_WAIT	0x02	/* DTO: if it consumes a receive; EP: receives */
#define KDAPL_COMPLETION_UNSIGNALLED	0x04	/* DTO: if its EP has the flag; EP */
#define KDAPL_COMPLETION_BARRIER_FENCE	0x08	/* DTO: all but receives */
#define KDAPL_COMPLETION_EVD_THRESHOLD	0x10	/* EP only */

/**
 * struct kdapl_dto - DTO to post
 * @operation: KDAPL_DTO_* or KDAPL_IB_DTO_*
 * @flags: KDAPL_COMPLETION_*
 * @cookie: cookie of the completion
 * @iov: address of an array of @iov_count struct kdapl_triplet, the local segments
 * @iov_count: number of local segments, 0 .. the EP's limit for @operation; 1 for FETCH_ADD,
 *         CMP_SWAP and RDMA_READ_TO_RMR, whose segment has an RMR context of this side
 * @iov_size: size of an element of @iov; ignored if @iov_count is 0
 * @remote: segment of the peer's memory, for all operations but SEND and RECEIVE. @remote.length is
 *         at least the sum of the local lengths, or 0 to omit the check. SEND_WITH_INVALIDATE:
 *         @remote.context is the RMR context that the peer's device invalidates.
 * @compare_add: FETCH_ADD: value to add; CMP_SWAP: value to compare with
 * @swap: CMP_SWAP: value to store if the comparison succeeds
 * @immed_data: RDMA_WRITE_IMMED: immediate data for the completion of the peer's receive
 * @reserved: 0
 *
 * The kernel ignores the members that an operation does not use. The first published size ends
 * before @remote; it suffices for SEND and RECEIVE.
 */
struct kdapl_dto {
	__u32 operation;
	__u32 flags;
	__u64 cookie;
	__u64 iov;
	__u32 iov_count;
	__u32 iov_size;
	struct kdapl_triplet remote;
	__u64 compare_add;
	__u64 swap;
	__u32 immed_data;
	__u32 reserved;
};

#define KDAPL_DTO_SIZE_MIN	32

/**
 * struct kdapl_ep_post - KDAPL_EP_POST: post a DTO
 * @hdr: header
 * @handle: in: EP
 * @dto: in: DTO; the message is extended when struct kdapl_dto is
 */
struct kdapl_ep_post {
	struct kdapl_hdr hdr;
	__u64 handle;
	struct kdapl_dto dto;
};

#define KDAPL_EP_POST_SIZE_MIN	56

#define KDAPL_SUBMIT_MAX	256	/* DTOs posted by one KDAPL_EP_SUBMIT */

/**
 * struct kdapl_ep_submit - KDAPL_EP_SUBMIT: post DTOs, then wait for events
 * @hdr: header
 * @posted: out: number of DTOs posted: all, or those before the first that is refused
 * @taken: out: as in struct kdapl_evd_wait, like all members without a description
 * @nmore: out
 * @event_size: in
 * @handle: in: EP
 * @dtos: in: address of an array of @count struct kdapl_dto
 * @count: in: number of DTOs, 0 .. KDAPL_SUBMIT_MAX
 * @dto_size: in: size of an element of @dtos, at least KDAPL_DTO_SIZE_MIN; ignored if @count is 0
 * @evd: in: EVD to wait on, or 0 to post only
 * @timeout_ns: in: a duration counts from the last post
 * @threshold: in
 * @max_events: in
 * @events: in
 */
struct kdapl_ep_submit {
	struct kdapl_hdr hdr;
	__u32 posted;
	__u32 taken;
	__u32 nmore;
	__u32 event_size;
	__u64 handle;
	__u64 dtos;
	__u32 count;
	__u32 dto_size;
	__u64 evd;
	__u64 timeout_ns;
	__s32 threshold;
	__u32 max_events;
	__u64 events;
};

#endif /* _UAPI_RDMA_KDAPL_DTO_H */

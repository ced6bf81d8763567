/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Data transfer operations (DTOs) of connected Endpoints. */
#ifndef _RDMA_KDAT_POST_H
#define _RDMA_KDAT_POST_H

#include <rdma/kdat/event.h>
#include <rdma/kdat/lmr.h>
#include <rdma/kdat/types.h>

/*
 * Posts of DTOs. @local may be NULL if @segments is 0. The caller may reuse the array of segments
 * when a call returns.
 *
 * Context: any. A receive on an EP that is not connected yet is DAT_INVALID_STATE if the caller may
 * not sleep. If the caller may not sleep, a post does not look for slots that requests with
 * DAT_COMPLETION_SUPPRESS_FLAG have left: it is DAT_INSUFFICIENT_RESOURCES until completions of the
 * request EVD were taken, by a dequeue, a wait or upcalls.
 */

/**
 * dat_ep_post_send() - send a message to a receive of the peer
 * @ep: connected EP
 * @segments: number of segments; 0 for a message without data
 * @local: segments, of LMRs of the EP's PZ with DAT_MEM_PRIV_LOCAL_READ_FLAG
 * @cookie: cookie of the completion
 * @flags: completion flags
 *
 * The consumer does not change or free the memory before the completion. That one, on the request
 * EVD, says that the peer's device has the message. On an EP that was disconnected by now the DTO
 * is flushed.
 *
 * Return: DAT_SUCCESS or an error code, with which nothing is posted and no event follows.
 * DAT_INSUFFICIENT_RESOURCES if max_request_dtos are outstanding; DAT_INVALID_STATE with the state
 * of an EP that was not connected yet; DAT_PROTECTION_VIOLATION, DAT_PRIVILEGES_VIOLATION or
 * DAT_LENGTH_ERROR for a segment.
 */
DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT segments, const DAT_LMR_TRIPLET *local,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
/**
 * dat_ep_post_send_with_invalidate() - send, and invalidate an RMR context of the peer
 * @ep: EP
 * @segments: number of segments
 * @local: segments
 * @cookie: cookie of the completion
 * @flags: completion flags
 * @invalidate: DAT_FALSE for a send that invalidates nothing
 * @rmr_context: context that the peer has got by binding an RMR
 *
 * The peer's receive completes as DAT_DTO_RECEIVE_WITH_INVALIDATE. An invalid context ends the
 * connection.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT segments,
					    const DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
					    DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					    DAT_RMR_CONTEXT rmr_context);
/**
 * dat_ep_post_recv() - post a receive
 * @ep: EP without an SRQ, also one that is not connected yet
 * @segments: number of segments
 * @local: segments, of LMRs of the EP's PZ with DAT_MEM_PRIV_LOCAL_WRITE_FLAG
 * @cookie: cookie of the completion
 * @flags: completion flags
 *
 * Each message of the peer takes the oldest receive. A message that is longer than it, or finds
 * none, ends the connection. The consumer does not access or free the memory before the
 * completion, on the receive EVD.
 *
 * Return: DAT_SUCCESS or an error code, as of dat_ep_post_send(). DAT_INSUFFICIENT_RESOURCES if
 * max_recv_dtos are outstanding; DAT_INVALID_STATE for an EP with an SRQ.
 */
DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT segments, const DAT_LMR_TRIPLET *local,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
/**
 * dat_ep_post_rdma_write() - write to memory of the peer
 * @ep: connected EP
 * @segments: number of segments
 * @local: segments, with DAT_MEM_PRIV_LOCAL_READ_FLAG
 * @cookie: cookie of the completion
 * @remote: memory of the peer, which it has opened for remote writes. Its length limits the
 *         transfer; 0 is no limit.
 * @flags: completion flags
 *
 * The peer has no event. If it refuses the access, the completion is DAT_DTO_ERR_REMOTE_ACCESS,
 * and the connection ends.
 *
 * Return: DAT_SUCCESS or an error code, as of dat_ep_post_send().
 */
DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT segments,
				  const DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
				  const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);
/**
 * dat_ep_post_rdma_read() - read memory of the peer
 * @ep: connected EP whose max_rdma_read_out is not 0
 * @segments: number of segments
 * @local: segments, with DAT_MEM_PRIV_LOCAL_WRITE_FLAG
 * @cookie: cookie of the completion
 * @remote: memory of the peer, which it has opened for remote reads. Its length limits the
 *         transfer; 0 is no limit.
 * @flags: completion flags
 *
 * The data are in @local when the completion is a success. Over iWARP memory of the kernel is
 * DAT_PRIVILEGES_VIOLATION here: see dat_ep_post_rdma_read_to_rmr().
 *
 * Return: DAT_SUCCESS or an error code, as of dat_ep_post_send().
 */
DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT segments,
				 const DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
				 const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);
/**
 * dat_ep_post_rdma_read_to_rmr() - read the peer's memory into memory that an RMR is bound to
 * @ep: EP
 * @local: segment with the context of an RMR of the EP's PZ, bound with
 *	DAT_MEM_PRIV_REMOTE_WRITE_FLAG
 * @cookie: cookie of the completion, whose operation is DAT_DTO_RDMA_READ
 * @remote: segment of the peer's memory
 * @flags: completion flags
 *
 * It is posted after the bind on the same EP, or after the bind's completion on another EP. Over
 * iWARP this is the way to read into kernel memory: the peer learns a key to @local, and can write
 * there while the RMR is bound.
 *
 * Context: any.
 *
 * Return: DAT_SUCCESS or an error code; DAT_PROTECTION_VIOLATION if no RMR is bound with this
 * context, or @local exceeds what it is bound to; DAT_PRIVILEGES_VIOLATION without the privilege.
 */
DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local,
					DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					DAT_COMPLETION_FLAGS flags);

/**
 * struct dat_list_dto - DTO of a list
 * @operation: DAT_DTO_SEND, KDAPL_DTO_SEND_WITH_INVALIDATE, DAT_DTO_RECEIVE, DAT_DTO_RDMA_WRITE or
 *         DAT_DTO_RDMA_READ
 * @flags: completion flags
 * @segments: number of segments
 * @local: segments; may be NULL if @segments is 0
 * @cookie: cookie of the completion
 * @remote: memory of the peer, for an RDMA operation. Of a send with invalidate, its context is the
 *         one to invalidate.
 */
typedef struct dat_list_dto {
	DAT_DTOS operation;
	DAT_COMPLETION_FLAGS flags;
	DAT_COUNT segments;
	const DAT_LMR_TRIPLET *local;
	DAT_DTO_COOKIE cookie;
	DAT_RMR_TRIPLET remote;
} DAT_LIST_DTO;

/**
 * kdapl_ep_post_list() - post several DTOs
 * @ep: EP
 * @count: number of DTOs
 * @list: DTOs, which are posted in this order
 * @posted: out: number of DTOs that were posted, also if the call fails; may be NULL
 *
 * Stops at the first DTO that is refused, with the error of its own call. If that is
 * DAT_INVALID_PARAMETER, the argument is 3. The device is notified once for several requests
 * or receives, so a list costs less than its DTOs one by one. Not a call of DAT.
 *
 * Context: any, as of a single post.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN kdapl_ep_post_list(DAT_EP_HANDLE ep, DAT_COUNT count, const DAT_LIST_DTO *list,
			      DAT_COUNT *posted);

#endif /* _RDMA_KDAT_POST_H */

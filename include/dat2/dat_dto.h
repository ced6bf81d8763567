/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Calls that post data transfer operations (DTOs). */
#pragma once

#include <dat2/dat_event.h>

/**
 * dat_ep_post_send() - Send a message
 * @ep: a connected Endpoint
 * @segments: number of segments
 * @local: memory of the message, in LMRs of the Endpoint's PZ
 * @cookie: a word that the event returns
 * @flags: a mask of DAT_COMPLETION_FLAGS
 *
 * Does not wait for the transfer. The message fills the peer's next receive. The array of segments
 * may be changed when the call returns, the memory once the event was taken. With
 * DAT_COMPLETION_SUPPRESS_FLAG a success has no event.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): more segments than max_request_iov
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG5): @flags has an unknown value
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): the Endpoint is not connected
 * * DAT_PROTECTION_VIOLATION (DAT_PROTECTION_READ): a segment is not in an LMR of the PZ
 * * DAT_LENGTH_ERROR: longer than max_message_size of the IA
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_TEP): max_request_dtos are outstanding
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_DEVICE): the device was removed
 *
 * Events:
 * * DAT_DTO_COMPLETION_EVENT: on the request EVD, with the cookie and a status; at the peer with
 *   the length
 *
 * Example: transfer.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *local,
		 DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

/**
 * dat_ep_post_send_with_invalidate() - Send a message that invalidates a context of the peer
 * @ep: as of dat_ep_post_send()
 * @segments: as of dat_ep_post_send()
 * @local: as of dat_ep_post_send()
 * @cookie: as of dat_ep_post_send()
 * @flags: as of dat_ep_post_send()
 * @invalidate: DAT_TRUE; with DAT_FALSE the call is dat_ep_post_send()
 * @rmr_context: context of an RMR of the peer, which is invalid from the arrival of the message on
 *
 * Errors:
 * * as dat_ep_post_send()
 *
 * Events:
 * * DAT_DTO_COMPLETION_EVENT: at the peer with the operation DAT_DTO_RECEIVE_WITH_INVALIDATE and
 *   the context
 *
 * Example: rmr.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *local,
				 DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
				 DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT rmr_context);

/**
 * dat_ep_post_recv() - Post memory for a message
 * @ep: an Endpoint, also an unconnected one
 * @segments: number of segments
 * @local: memory for the message, in LMRs with the privilege of local writes
 * @cookie: a word that the event returns
 * @flags: DAT_COMPLETION_DEFAULT_FLAG, or DAT_COMPLETION_UNSIGNALLED_FLAG if the Endpoint allows it
 *
 * Receives are filled in the order of their posts. A message that is longer breaks the connection.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): more segments than max_recv_iov
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG5): @flags has an unknown value
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): the Endpoint is unconfigured, or disconnects
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_SRQ_OPERATIONAL): the Endpoint has an SRQ
 * * DAT_PROTECTION_VIOLATION (DAT_PROTECTION_WRITE): a segment is not in an LMR of the PZ
 * * DAT_PRIVILEGES_VIOLATION (DAT_PRIVILEGES_WRITE): its LMR lacks the privilege
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_TEP): max_recv_dtos are outstanding
 *
 * Events:
 * * DAT_DTO_COMPLETION_EVENT: on the EVD of receives, with the cookie, a status and the length
 *
 * Example: transfer.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *local,
		 DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

/**
 * dat_ep_post_rdma_read() - Read memory of the peer
 * @ep: a connected Endpoint
 * @segments: number of segments
 * @local: memory to read into, in LMRs with the privilege of local writes
 * @cookie: a word that the event returns
 * @remote: address and RMR context at the peer; its length limits the transfer
 * @flags: a mask of DAT_COMPLETION_FLAGS
 *
 * The peer checks its memory: a refusal completes the read with a status other than
 * DAT_DTO_SUCCESS, and breaks the connection.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): more segments than max_rdma_read_iov
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG6): @flags has an unknown value
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): the Endpoint is not connected
 * * DAT_PROTECTION_VIOLATION (DAT_PROTECTION_WRITE): a segment is not in an LMR of the PZ
 * * DAT_PRIVILEGES_VIOLATION (DAT_PRIVILEGES_WRITE): its LMR lacks the privilege
 * * DAT_LENGTH_ERROR: longer than @remote, or than max_rdma_size of the IA
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_TEP): max_request_dtos are outstanding, or
 *   max_rdma_read_out is 0
 *
 * Events:
 * * DAT_DTO_COMPLETION_EVENT: on the request EVD
 *
 * Example: transfer.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *local,
		      DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
		      DAT_COMPLETION_FLAGS flags);

/**
 * dat_ep_post_rdma_read_to_rmr() - Read memory of the peer into memory of an RMR
 * @ep: a connected Endpoint
 * @local: memory that an RMR of the PZ is bound to, with its RMR context
 * @cookie: a word that the event returns
 * @remote: as of dat_ep_post_rdma_read()
 * @flags: a mask of DAT_COMPLETION_FLAGS
 *
 * The bind allows remote writes. Over iWARP the peer learns the context, and can write there.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG5): @flags has an unknown value
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): the Endpoint is not connected
 * * DAT_PROTECTION_VIOLATION (DAT_PROTECTION_WRITE): no RMR of the PZ is bound so
 * * DAT_PRIVILEGES_VIOLATION (DAT_PRIVILEGES_WRITE): the RMR does not allow remote writes
 * * otherwise as dat_ep_post_rdma_read()
 *
 * Events:
 * * DAT_DTO_COMPLETION_EVENT: on the request EVD
 *
 * Example: rmr.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
			     const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);

/**
 * dat_ep_post_rdma_write() - Write to memory of the peer
 * @ep: a connected Endpoint
 * @segments: number of segments
 * @local: memory to write from
 * @cookie: a word that the event returns
 * @remote: address and RMR context at the peer; its length limits the transfer
 * @flags: a mask of DAT_COMPLETION_FLAGS
 *
 * The peer gets no event.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): more segments than max_rdma_write_iov
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG6): @flags has an unknown value
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): the Endpoint is not connected
 * * DAT_PROTECTION_VIOLATION (DAT_PROTECTION_READ): a segment is not in an LMR of the PZ
 * * DAT_LENGTH_ERROR: longer than @remote, or than max_rdma_size of the IA
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_TEP): max_request_dtos are outstanding
 *
 * Events:
 * * DAT_DTO_COMPLETION_EVENT: on the request EVD
 *
 * Example: transfer.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *local,
		       DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
		       DAT_COMPLETION_FLAGS flags);

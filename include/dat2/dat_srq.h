/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Calls on Shared Receive Queues. */
#pragma once

#include <dat2/dat_event.h>

/**
 * dat_srq_create() - Create a Shared Receive Queue
 * @ia: the IA
 * @pz: Protection Zone of the receives and of the Endpoints
 * @attr: number of receives, segments of a receive, and DAT_SRQ_LW_DEFAULT
 * @srq: out: the SRQ
 *
 * An SRQ has receives that any of several Endpoints takes, in the order in which they were posted.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA, DAT_INVALID_HANDLE_PZ): an object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3): an attribute is 0 or above the limit of the IA
 * * DAT_MODEL_NOT_SUPPORTED: the device has no SRQs
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): no memory, or a limit of the user
 *
 * Example: srq.c
 * See: dat_ep_create_with_srq()
 */
DAT_EXPORT DAT_RETURN DAT_API dat_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr,
					     DAT_SRQ_HANDLE *srq);

/**
 * dat_srq_post_recv() - Post memory for a message of any of the Endpoints
 * @srq: the SRQ
 * @segments: number of segments
 * @local: memory for the message, in LMRs with the privilege of local writes
 * @cookie: a word that the event returns
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_SRQ): @srq is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): too many segments
 * * DAT_PROTECTION_VIOLATION (DAT_PROTECTION_WRITE): a segment is not in an LMR of the PZ
 * * DAT_PRIVILEGES_VIOLATION (DAT_PRIVILEGES_WRITE): its LMR lacks the privilege
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_SRQ): the SRQ is full
 *
 * Events:
 * * DAT_DTO_COMPLETION_EVENT: on the EVD of receives of the Endpoint that took it
 *
 * Example: srq.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT segments, DAT_LMR_TRIPLET *local,
		  DAT_DTO_COOKIE cookie);

/**
 * dat_srq_query() - Query the parameters of an SRQ
 * @srq: the SRQ
 * @mask: DAT_SRQ_FIELD_ALL
 * @param: out: the parameters, with the receives that are available and those that are outstanding
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_SRQ): @srq is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @mask has unknown bits
 *
 * Example: srq.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param);

/**
 * dat_srq_resize() - Change the number of receives that an SRQ holds
 * @srq: the SRQ
 * @number: the new number
 *
 * Posted receives stay posted.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_SRQ): @srq is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @number is out of range
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_SRQ_IN_USE): more receives are outstanding, or the low
 *   watermark is above it
 * * DAT_MODEL_NOT_SUPPORTED: the driver cannot lengthen its queue
 *
 * Example: srq.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT number);

/**
 * dat_srq_set_lw() - Set the low watermark of an SRQ
 * @srq: the SRQ
 * @number: number of available receives below which one asynchronous event is reported; 0 for none
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_SRQ): @srq is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): more than the SRQ holds
 *
 * Events:
 * * DAT_ASYNC_ERROR_EP_BROKEN: with the SRQ, and the reason DAT_SRQ_LOW_WATERMARK_EVENT
 *
 * Example: srq.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT number);

/**
 * dat_srq_free() - Free a Shared Receive Queue
 * @srq: the SRQ
 *
 * Receives that no Endpoint has taken are dropped without events.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_SRQ): @srq is stale or another object
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_SRQ_IN_USE): an Endpoint uses it
 *
 * Example: srq.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_srq_free(DAT_SRQ_HANDLE srq);

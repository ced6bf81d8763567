/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Calls on Endpoints. */
#pragma once

#include <dat2/dat_event.h>

/**
 * dat_ep_create() - Create an Endpoint
 * @ia: the IA
 * @pz: Protection Zone of the memory that its DTOs use; DAT_HANDLE_NULL leaves the Endpoint
 *      unconfigured, until dat_ep_modify() supplies it
 * @recv_evd: EVD for completions of receives, with the stream DTO
 * @request_evd: EVD for completions of other DTOs and of binds, with the stream DTO
 * @connect_evd: EVD for connection events, with the stream CONNECTION
 * @attr: requested attributes; NULL requests the default of each
 * @ep: out: the Endpoint, in state UNCONNECTED
 *
 * The three EVDs may be one. With DAT_HANDLE_NULL for an EVD its events are discarded. An attribute
 * of 0 requests a default (256 DTOs, 4 segments), except max_rdma_read_in and max_rdma_read_out,
 * for which 0 allows no RDMA reads. dat_ep_query() returns the actual attributes.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA, DAT_INVALID_HANDLE_PZ, DAT_INVALID_HANDLE_EVD_RECV,
 *   DAT_INVALID_HANDLE_EVD_REQUEST, DAT_INVALID_HANDLE_EVD_CONN): an object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3, DAT_INVALID_ARG4, DAT_INVALID_ARG5): an EVD lacks the
 *   stream, or does not agree with the completion flags
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG6): an attribute is above the limit of the IA
 * * DAT_MODEL_NOT_SUPPORTED: service type or quality of service
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): no memory, or a limit of the user
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_TEVD): completions of freed Endpoints fill an EVD
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_DEVICE): the device was removed
 *
 * Example: endpoint.c
 * See: dat_ep_create_with_srq(), dat_ep_connect(), dat_cr_accept()
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
	      DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd, const DAT_EP_ATTR *attr,
	      DAT_EP_HANDLE *ep);

/**
 * dat_ep_create_with_srq() - Create an Endpoint that takes its receives from a Shared Receive Queue
 * @ia: the IA
 * @pz: Protection Zone, which is that of @srq
 * @recv_evd: as of dat_ep_create()
 * @request_evd: as of dat_ep_create()
 * @connect_evd: as of dat_ep_create()
 * @srq: the Shared Receive Queue
 * @attr: as of dat_ep_create(); those of receives are ignored
 * @ep: out: the Endpoint
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_SRQ): @srq is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @pz is not that of @srq
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG7): an attribute is above the limit of the IA
 * * otherwise as dat_ep_create()
 *
 * Events:
 * * DAT_ASYNC_ERROR_EP_BROKEN: after each DISCONNECTED and BROKEN of @ep: it takes no more
 *   receives, and those that it had taken have completed, if the driver reports the last one (see
 *   docs/drivers.md)
 *
 * Example: srq.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
		       DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq,
		       const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep);

/**
 * dat_ep_query() - Query the parameters of an Endpoint
 * @ep: the Endpoint
 * @mask: fields to return; DAT_EP_FIELD_ALL
 * @param: out: the parameters
 *
 * The addresses that it points to are valid until the next query, or until the Endpoint is freed.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @mask has unknown bits
 *
 * Example: endpoint.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_query(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param);

/**
 * dat_ep_modify() - Change the parameters of an Endpoint before it is connected
 * @ep: the Endpoint
 * @mask: fields to change: the PZ, EVDs and attributes
 * @param: the new values of these fields
 *
 * All changes are made, or none. Posted receives stay posted, in their order.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP, DAT_INVALID_HANDLE_PZ, DAT_INVALID_HANDLE_EVD_RECV,
 *   DAT_INVALID_HANDLE_EVD_REQUEST, DAT_INVALID_HANDLE_EVD_CONN): an object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): a field that cannot be changed
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3): an attribute, or a queue that is too short for the
 *   posted receives
 * * DAT_MODEL_NOT_SUPPORTED: service type or quality of service
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): the Endpoint connects, is connected, or was not
 *   reset after a connection
 * * DAT_PROTECTION_VIOLATION, DAT_PRIVILEGES_VIOLATION: a posted receive is not in the new PZ
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_TEVD): the new EVD has no room
 *
 * Example: endpoint.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param);

/**
 * dat_ep_get_status() - Query the state of an Endpoint, and whether it is idle
 * @ep: the Endpoint
 * @state: out: its state; may be NULL
 * @recv_idle: out: DAT_TRUE if no receive is outstanding; may be NULL
 * @request_idle: out: DAT_TRUE if no other DTO is outstanding; may be NULL
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 *
 * Example: endpoint.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_get_status(DAT_EP_HANDLE ep, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle,
		  DAT_BOOLEAN *request_idle);

/**
 * dat_ep_recv_query() - Query the receive buffers that an Endpoint has
 * @ep: the Endpoint
 * @allocated: out: receives that are posted, or have completed and whose event was not taken
 * @span: out: number of messages from the oldest to the newest of them; may be NULL
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 *
 * Example: endpoint.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_recv_query(DAT_EP_HANDLE ep, DAT_COUNT *allocated, DAT_COUNT *span);

/**
 * dat_ep_set_watermark() - Limit the receive buffers that an Endpoint has
 * @ep: the Endpoint
 * @soft: number above which one asynchronous event is reported, or DAT_WATERMARK_INFINITE
 * @hard: number above which the connection breaks, or DAT_WATERMARK_INFINITE
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2, DAT_INVALID_ARG3): a negative number
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): no memory
 *
 * Events:
 * * DAT_ASYNC_ERROR_EP_BROKEN: with the reason DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT; the connection
 *   stays
 * * DAT_CONNECTION_EVENT_BROKEN: above @hard
 *
 * Example: endpoint.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_set_watermark(DAT_EP_HANDLE ep, DAT_COUNT soft, DAT_COUNT hard);

/**
 * dat_ep_reset() - Make a disconnected Endpoint ready for another connection
 * @ep: the Endpoint
 *
 * Has no effect on an unconnected one.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): it is in another state
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_TEVD): its EVDs are full of earlier connections'
 *   events
 *
 * Example: connect.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_ep_reset(DAT_EP_HANDLE ep);

/**
 * dat_ep_free() - Free an Endpoint
 * @ep: the Endpoint
 *
 * Ends its connection. Outstanding DTOs have no event; events that are queued stay.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): a service point or a request holds it
 *
 * Example: endpoint.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_ep_free(DAT_EP_HANDLE ep);

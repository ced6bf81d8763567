/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Calls that connect and disconnect Endpoints. */
#pragma once

#include <dat2/dat_event.h>

/**
 * dat_ep_connect() - Connect an Endpoint to a service point
 * @ep: an UNCONNECTED Endpoint
 * @remote_address: IPv4 or IPv6 address of the peer; its port is ignored
 * @conn_qual: connection qualifier that the peer listens for, not 0
 * @timeout: microseconds, not 0, or DAT_TIMEOUT_INFINITE: until the peer answers
 * @private_data_size: bytes of private data, at most max_private_data_size of the provider
 * @private_data: what the peer gets with the request; may be NULL if there is none
 * @qos: one of DAT_QOS
 * @flags: DAT_CONNECT_DEFAULT_FLAG, or DAT_CONNECT_MULTIPATH_REQUESTED_FLAG; there is one path
 *
 * Does not wait for the connection: exactly one event on the connect EVD reports the result, unless
 * the Endpoint is freed or disconnected first. After a failure, dat_ep_reset() makes the Endpoint
 * ready for another attempt.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_MODEL_NOT_SUPPORTED: @qos, or several paths are required
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3): @conn_qual is 0
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG4): @timeout is 0
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG5): @private_data_size is out of range
 * * DAT_INVALID_ADDRESS (DAT_INVALID_ADDRESS_MALFORMED): neither an IPv4 nor an IPv6 address, or
 *   one that no single host has: unspecified, multicast or 255.255.255.255
 * * DAT_INVALID_ADDRESS (DAT_INVALID_ADDRESS_UNSUPPORTED): the IA has no address of this family
 * * DAT_INVALID_ADDRESS (DAT_INVALID_ADDRESS_UNREACHABLE): there is no route, or the address is a
 *   loopback address
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): the state of the Endpoint
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_TEP): no local port is free
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY, DAT_RESOURCE_DEVICE): no memory; the device
 *   was removed
 *
 * Events:
 * * DAT_CONNECTION_EVENT_ESTABLISHED: connected; with the private data of the accept
 * * DAT_CONNECTION_EVENT_PEER_REJECTED: the peer's program has rejected; with its private data
 * * DAT_CONNECTION_EVENT_NON_PEER_REJECTED: no service point, a full backlog, or a failure
 * * DAT_CONNECTION_EVENT_TIMED_OUT: the time is over
 * * DAT_CONNECTION_EVENT_UNREACHABLE: the address cannot be resolved, or the peer does not answer
 *
 * Example: connect.c
 * See: dat_psp_create(), dat_cr_accept(), dat_ep_disconnect(), dat_ep_reset()
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR remote_address, DAT_CONN_QUAL conn_qual,
	       DAT_TIMEOUT timeout, DAT_COUNT private_data_size, const DAT_PVOID private_data,
	       DAT_QOS qos, DAT_CONNECT_FLAGS flags);

/**
 * dat_ep_dup_connect() - Connect an Endpoint to the peer of another one
 * @ep: an UNCONNECTED Endpoint
 * @other: a connected Endpoint, whose remote address and connection qualifier are used
 * @timeout: as of dat_ep_connect()
 * @private_data_size: as of dat_ep_connect()
 * @private_data: as of dat_ep_connect()
 * @qos: as of dat_ep_connect()
 *
 * If @other has accepted its connection, the qualifier is that of its service point.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE2): @other is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3, DAT_INVALID_ARG4): @timeout, @private_data_size
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): @other is not connected, or @ep is not
 *   unconnected
 * * otherwise as dat_ep_connect()
 *
 * Events:
 * * as of dat_ep_connect()
 *
 * Example: connect.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE other, DAT_TIMEOUT timeout,
		   DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos);

/**
 * dat_ep_common_connect() - Connect an Endpoint to a Common Service Point
 * @ep: an UNCONNECTED Endpoint
 * @remote_address: address and port of the service point
 * @timeout: as of dat_ep_connect()
 * @private_data_size: as of dat_ep_connect()
 * @private_data: as of dat_ep_connect()
 *
 * Errors:
 * * DAT_INVALID_ADDRESS (DAT_INVALID_ADDRESS_MALFORMED): the port is 0, or the family is unknown
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3, DAT_INVALID_ARG4): @timeout, @private_data_size
 * * otherwise as dat_ep_connect()
 *
 * Events:
 * * as of dat_ep_connect()
 *
 * Example: common.c
 * See: dat_csp_create()
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR remote_address, DAT_TIMEOUT timeout,
		      DAT_COUNT private_data_size, const DAT_PVOID private_data);

/**
 * dat_ep_disconnect() - End the connection of an Endpoint, or its attempt
 * @ep: the Endpoint
 * @flags: DAT_CLOSE_ABRUPT_FLAG flushes outstanding DTOs; DAT_CLOSE_GRACEFUL_FLAG lets those other
 *         than receives complete first
 *
 * Does not wait for the end. The event follows the last event of a DTO. An Endpoint that is not
 * connected has its receives flushed, without a connection event; on one that is disconnected the
 * call has no effect.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @flags has an unknown value
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): it is unconfigured, or a service point or a
 *   request holds it
 *
 * Events:
 * * DAT_CONNECTION_EVENT_DISCONNECTED: at both sides
 *
 * Example: connect.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_ep_disconnect(DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags);

/**
 * dat_cr_query() - Query a Connection Request
 * @cr: the request, of an event DAT_CONNECTION_REQUEST_EVENT
 * @mask: DAT_CR_FIELD_ALL
 * @param: out: address of the sender, its private data, and the Endpoint that is reserved for the
 *         request or came with it
 *
 * Over InfiniBand and RoCE zeros follow the private data up to the length of the field. The
 * pointers are valid until the request is answered.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CR): @cr is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @mask has unknown bits
 *
 * Example: connect.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param);

/**
 * dat_cr_accept() - Accept a Connection Request
 * @cr: the request, which the call frees
 * @ep: an UNCONNECTED Endpoint, or DAT_HANDLE_NULL for the one of the request
 * @private_data_size: bytes of private data
 * @private_data: what the peer gets with its event; may be NULL if there is none
 *
 * Post the first receives of the Endpoint before. After an error the request is still there.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CR): @cr is stale or another object
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep, or no Endpoint came with the request
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): not the Endpoint of the request
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3): @private_data_size is out of range
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): the state of the Endpoint
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY, DAT_RESOURCE_DEVICE): no memory; the device
 *   was removed
 *
 * Events:
 * * DAT_CONNECTION_EVENT_ESTABLISHED: at both sides
 * * DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR: no connection results
 *
 * Example: connect.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT private_data_size,
	      const DAT_PVOID private_data);

/**
 * dat_cr_reject() - Reject a Connection Request
 * @cr: the request, which the call frees
 * @private_data_size: bytes of private data
 * @private_data: what the peer gets with its event; may be NULL if there is none
 *
 * A reserved Endpoint becomes unconnected again, and one that came with the request is freed.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CR): @cr is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @private_data_size is out of range
 *
 * Events:
 * * DAT_CONNECTION_EVENT_PEER_REJECTED: at the peer
 *
 * Example: connect.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_cr_reject(DAT_CR_HANDLE cr, DAT_COUNT private_data_size,
					    const DAT_PVOID private_data);

/**
 * dat_cr_handoff() - Pass a Connection Request on to another service point
 * @cr: the request, which the call frees
 * @conn_qual: connection qualifier of the service point; of a Common Service Point, its port
 *
 * The service point is at the same address of the same device, in any process of the same user. Its
 * owner gets the request with a handle of its own.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CR): @cr, or another thread answers it
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): there is no such service point
 * * DAT_PRIVILEGES_VIOLATION: it belongs to another user
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_CREDITS, DAT_RESOURCE_TEVD): its backlog or its EVD is
 *   full
 *
 * Events:
 * * DAT_CONNECTION_REQUEST_EVENT: at the other service point
 *
 * Example: reserved.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL conn_qual);

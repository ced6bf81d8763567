/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Calls on service points, where Connection Requests arrive. */
#pragma once

#include <dat2/dat_event.h>

/**
 * dat_psp_create() - Listen for Connection Requests
 * @ia: the IA; requests to each of its addresses arrive
 * @conn_qual: connection qualifier, not 0; up to 65535 a port of rdma_cm
 * @evd: EVD for the requests, with the stream CR
 * @flags: DAT_PSP_CONSUMER_FLAG, or DAT_PSP_PROVIDER_FLAG if each request comes with an Endpoint
 * @psp: out: the Public Service Point
 *
 * Up to 128 requests may wait for their answer; more are rejected, as are those for which the EVD
 * has no room. An Endpoint that came with a request has neither PZ nor EVDs until dat_ep_modify()
 * supplies them.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_CR): @evd is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @conn_qual is 0
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3): the EVD lacks the stream
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG4): @flags has an unknown value
 * * DAT_CONN_QUAL_IN_USE: another service point or program listens there
 * * DAT_CONN_QUAL_UNAVAILABLE: the user may not listen there
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): no memory, or a limit of the user
 *
 * Events:
 * * DAT_CONNECTION_REQUEST_EVENT: for each request
 *
 * Example: connect.c
 * See: dat_psp_create_any(), dat_cr_accept(), dat_cr_reject()
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
	       DAT_PSP_HANDLE *psp);

/**
 * dat_psp_create_any() - Listen for Connection Requests for a free connection qualifier
 * @ia: as of dat_psp_create()
 * @conn_qual: out: the qualifier, a free port
 * @evd: as of dat_psp_create()
 * @flags: as of dat_psp_create()
 * @psp: out: the Public Service Point
 *
 * Errors:
 * * DAT_CONN_QUAL_UNAVAILABLE: no port is free
 * * otherwise as dat_psp_create()
 *
 * Events:
 * * DAT_CONNECTION_REQUEST_EVENT: for each request
 *
 * Example: connect.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *conn_qual, DAT_EVD_HANDLE evd,
		   DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp);

/**
 * dat_psp_query() - Query the parameters of a Public Service Point
 * @psp: the service point
 * @mask: DAT_PSP_FIELD_ALL
 * @param: out: the parameters
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_PSP): @psp is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @mask has unknown bits
 *
 * Example: connect.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_psp_query(DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param);

/**
 * dat_psp_free() - Stop listening
 * @psp: the service point
 *
 * Connections stay, and requests that have arrived can still be answered.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_PSP): @psp is stale or another object
 *
 * Example: connect.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_psp_free(DAT_PSP_HANDLE psp);

/**
 * dat_rsp_create() - Listen for one Connection Request, for one Endpoint
 * @ia: the IA
 * @conn_qual: connection qualifier, not 0
 * @ep: an UNCONNECTED Endpoint, which becomes RESERVED; with DAT_HANDLE_NULL the request comes with
 *      one
 * @evd: EVD for the request, with the stream CR
 * @rsp: out: the Reserved Service Point
 *
 * Later requests are rejected, as if there were no service point.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EP): @ep is stale or another object
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_CR): @evd is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @conn_qual is 0
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG4): the EVD lacks the stream
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): the state of the Endpoint
 * * DAT_CONN_QUAL_IN_USE, DAT_CONN_QUAL_UNAVAILABLE: as of dat_psp_create()
 *
 * Events:
 * * DAT_CONNECTION_REQUEST_EVENT: for the request
 *
 * Example: reserved.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
	       DAT_RSP_HANDLE *rsp);

/**
 * dat_rsp_query() - Query the parameters of a Reserved Service Point
 * @rsp: the service point
 * @mask: DAT_RSP_FIELD_ALL
 * @param: out: the parameters
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_RSP): @rsp is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @mask has unknown bits
 *
 * Example: reserved.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_rsp_query(DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param);

/**
 * dat_rsp_free() - Free a Reserved Service Point
 * @rsp: the service point
 *
 * If no request has arrived, its Endpoint becomes UNCONNECTED again.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_RSP): @rsp is stale or another object
 *
 * Example: reserved.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_rsp_free(DAT_RSP_HANDLE rsp);

/**
 * dat_csp_create() - Listen at an address and port, as a socket does
 * @ia: the IA
 * @comm: kind of the connection: SOCK_STREAM, of the family of @address, protocol 0
 * @address: one of the IA's addresses with a port, or port 0 for a free one; NULL is the IA's own
 *           address and a free port
 * @evd: EVD for the requests, with the stream CR
 * @csp: out: the Common Service Point
 *
 * The connection qualifier of its requests is the port, which dat_csp_query() returns.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_EVD_CR): @evd is stale or another object
 * * DAT_INVALID_ADDRESS (DAT_INVALID_ADDRESS_MALFORMED): neither an IPv4 nor an IPv6 address
 * * DAT_INVALID_ADDRESS (DAT_INVALID_ADDRESS_UNSUPPORTED): not one of the IA's addresses
 * * DAT_COMM_NOT_SUPPORTED: @comm
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG4): the EVD lacks the stream
 * * DAT_PORT_IN_USE: another service point or program listens there
 * * DAT_CONN_QUAL_UNAVAILABLE: the user may not listen there
 *
 * Events:
 * * DAT_CONNECTION_REQUEST_EVENT: for each request
 *
 * Example: common.c
 * See: dat_ep_common_connect()
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_csp_create(DAT_IA_HANDLE ia, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd,
	       DAT_CSP_HANDLE *csp);

/**
 * dat_csp_query() - Query the parameters of a Common Service Point
 * @csp: the service point
 * @mask: DAT_CSP_FIELD_ALL
 * @param: out: the parameters; the pointers are valid until the service point is freed
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CSP): @csp is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @mask has unknown bits
 *
 * Example: common.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_csp_query(DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param);

/**
 * dat_csp_free() - Free a Common Service Point
 * @csp: the service point
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_CSP): @csp is stale or another object
 *
 * Example: common.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_csp_free(DAT_CSP_HANDLE csp);

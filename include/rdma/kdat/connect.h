/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Connections of Endpoints. */
#ifndef _RDMA_KDAT_CONNECT_H
#define _RDMA_KDAT_CONNECT_H

#include <rdma/kdat/ep.h>
#include <rdma/kdat/types.h>

typedef u32 DAT_CONNECT_FLAGS;
#define DAT_CONNECT_DEFAULT_FLAG		0
#define DAT_CONNECT_MULTIPATH_REQUESTED_FLAG	1
#define DAT_CONNECT_MULTIPATH_REQUIRED_FLAG	2

/**
 * dat_ep_connect() - connect an EP to a service point
 * @ep: unconnected EP that has a PZ
 * @remote_address: address of the peer. Its port is ignored; see @conn_qual.
 * @conn_qual: connection qualifier that the peer listens for
 * @timeout: time to connect, or DAT_TIMEOUT_INFINITE; not 0
 * @private_data_size: size of @private_data
 * @private_data: private data of the request, copied; may be NULL if there are none
 * @qos: quality of service, a mask of DAT_QOS_*
 * @flags: DAT_CONNECT_DEFAULT_FLAG, or KDAPL_READY_GATE_FLAG (gate.h); several paths are
 *         DAT_MODEL_NOT_SUPPORTED
 *
 * The call does not wait for the connection. One event of the connect EVD reports its outcome:
 * ESTABLISHED, or one of PEER_REJECTED, NON_PEER_REJECTED, TIMED_OUT and UNREACHABLE. Then, and
 * after a disconnect, dat_ep_reset() prepares the EP for the next connection.
 *
 * Return: DAT_SUCCESS or an error code, with which no event follows. DAT_INVALID_STATE with the
 * state of an EP that is not unconnected. DAT_INVALID_ADDRESS for an address to which there is no
 * route, that no single host has, or, unless the IA has one, for a loopback address.
 */
DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR remote_address,
			  DAT_CONN_QUAL conn_qual, DAT_TIMEOUT timeout,
			  DAT_COUNT private_data_size, const void *private_data,
			  DAT_QOS qos, DAT_CONNECT_FLAGS flags);
/**
 * dat_ep_dup_connect() - connect an EP to the peer of another EP
 * @ep: as of dat_ep_connect()
 * @other: connected EP of the same IA, whose remote address and connection qualifier are used
 * @timeout: as of dat_ep_connect()
 * @private_data_size: as of dat_ep_connect()
 * @private_data: as of dat_ep_connect()
 * @qos: as of dat_ep_connect()
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE if @other is not connected.
 */
DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE other, DAT_TIMEOUT timeout,
			      DAT_COUNT private_data_size, const void *private_data,
			      DAT_QOS qos);
/**
 * dat_ep_common_connect() - connect to a Common Service Point (CSP)
 * @ep: EP
 * @remote_address: address of the CSP, including its port
 * @timeout: time to connect; not 0
 * @private_data_size: size of @private_data
 * @private_data: private data of the request; may be NULL if there are none
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR remote_address,
				 DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
				 const void *private_data);
/**
 * dat_ep_disconnect() - end the connection of an EP, or its attempt to connect
 * @ep: EP
 * @flags: DAT_CLOSE_GRACEFUL_FLAG lets requests complete that are outstanding, but not receives;
 *         DAT_CLOSE_ABRUPT_FLAG flushes both
 *
 * The call does not wait for the end. All outstanding DTOs complete, those that were not carried
 * out with DAT_DTO_ERR_FLUSHED. DAT_CONNECTION_EVENT_DISCONNECTED follows the last of their
 * events. Of an unconnected EP the receives are flushed, and no connection event follows. On a
 * disconnected EP the call has no effect.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE for an EP that a service point or a
 * request holds.
 */
DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags);

/**
 * kdapl_ep_private_data() - copy the private data that the peer sent with its accept or reject
 * @ep: EP
 * @private_data_size: in: size of the buffer @private_data; out: size of the private data, also if
 *         that is larger than the buffer
 * @private_data: out: private data, as many as the buffer has room for; may be NULL if that is 0
 *
 * Any thread may free the EP meanwhile: the call then copies them, or returns DAT_INVALID_HANDLE.
 * The EP has private data from DAT_CONNECTION_EVENT_ESTABLISHED or _PEER_REJECTED on, until it
 * connects or accepts again. An EP that has accepted a CR has none. Not a call of DAT.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN kdapl_ep_private_data(DAT_EP_HANDLE ep, DAT_COUNT *private_data_size,
				 void *private_data);
/**
 * kdapl_ep_addresses() - copy the addresses of an EP's connection
 * @ep: EP
 * @local: out: local address, of family 0 if it is not known; may be NULL
 * @remote: out: address of the peer, of family 0 if it is not known; may be NULL
 *
 * Both are addresses of the same connection. Any thread may free the EP meanwhile: the call then
 * copies them, or returns DAT_INVALID_HANDLE. Not a call of DAT.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN kdapl_ep_addresses(DAT_EP_HANDLE ep, struct __kernel_sockaddr_storage *local,
			      struct __kernel_sockaddr_storage *remote);

#endif /* _RDMA_KDAT_CONNECT_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The ready gate, which holds the events of a new connection back. Not part of DAT. */
#ifndef _RDMA_KDAT_GATE_H
#define _RDMA_KDAT_GATE_H

#include <rdma/kdat/connect.h>

/**
 * DOC: ready gate
 *
 * A consumer closes the ready gate of a connection with KDAPL_READY_GATE_FLAG when it connects or
 * accepts, and opens it by kdapl_ep_ready(). While the gate is closed:
 *
 * - The connection is established as any other, and the peer gets its ESTABLISHED. The messages
 *   that it sends take the posted receives.
 * - DAT_CONNECTION_EVENT_ESTABLISHED and the events of these receives are held back: there is no
 *   upcall, no waiter wakes, and no CNO is triggered.
 * - The EP takes receives and no other DTOs. Its state stays ACTIVE_CONNECTION_PENDING or
 *   COMPLETION_PENDING.
 * - An end of the connection is held back, too: the state is DISCONNECT_PENDING.
 *
 * A connect or an accept that fails is reported at once. A disconnect with a closed gate ends the
 * connection without ESTABLISHED. The removal of the device opens the gate.
 *
 * Other flags that are unknown are DAT_INVALID_PARAMETER for kdapl_cr_accept(), and
 * DAT_MODEL_NOT_SUPPORTED for the calls that connect.
 */
#define KDAPL_READY_GATE_FLAG	0x100

/**
 * kdapl_ep_ready() - open the ready gate of an EP
 * @ep: EP that connects, accepts or is connected
 *
 * ESTABLISHED is reported, then the receives that were held back, in their order, then the end of
 * the connection if there is one. A call before the connection is established opens the gate in
 * advance. On a connected EP without a closed gate the call has no effect.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE with the state of an EP that neither
 * connects nor accepts, and is not connected.
 */
DAT_RETURN kdapl_ep_ready(DAT_EP_HANDLE ep);
/**
 * kdapl_ep_dup_connect() - as dat_ep_dup_connect(), with flags
 * @ep: as of dat_ep_dup_connect()
 * @other: as of dat_ep_dup_connect()
 * @timeout: as of dat_ep_dup_connect()
 * @private_data_size: as of dat_ep_dup_connect()
 * @private_data: as of dat_ep_dup_connect()
 * @qos: as of dat_ep_dup_connect()
 * @flags: as of dat_ep_connect()
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN kdapl_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE other, DAT_TIMEOUT timeout,
				DAT_COUNT private_data_size, const void *private_data,
				DAT_QOS qos, DAT_CONNECT_FLAGS flags);
/**
 * kdapl_ep_common_connect() - as dat_ep_common_connect(), with flags
 * @ep: as of dat_ep_common_connect()
 * @remote_address: as of dat_ep_common_connect()
 * @timeout: as of dat_ep_common_connect()
 * @private_data_size: as of dat_ep_common_connect()
 * @private_data: as of dat_ep_common_connect()
 * @flags: as of dat_ep_connect()
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN kdapl_ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR remote_address,
				   DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
				   const void *private_data, DAT_CONNECT_FLAGS flags);
/**
 * kdapl_cr_accept() - as dat_cr_accept(), with flags
 * @cr: as of dat_cr_accept()
 * @ep: as of dat_cr_accept()
 * @private_data_size: as of dat_cr_accept()
 * @private_data: as of dat_cr_accept()
 * @flags: 0 or KDAPL_READY_GATE_FLAG
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN kdapl_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT private_data_size,
			   const void *private_data, u32 flags);

#endif /* _RDMA_KDAT_GATE_H */

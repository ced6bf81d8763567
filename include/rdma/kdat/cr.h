/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Connection Requests (CRs). */
#ifndef _RDMA_KDAT_CR_H
#define _RDMA_KDAT_CR_H

#include <rdma/kdat/types.h>

/**
 * struct dat_cr_param - parameters of a CR
 * @remote_ia_address_ptr: address of the peer; valid as long as @private_data. kdapl_cr_address()
 *         copies it.
 * @remote_port_qual: port of the peer
 * @private_data_size: size of @private_data
 * @private_data: private data of the request. They are part of the CR: valid until dat_cr_accept(),
 *         dat_cr_reject() or dat_cr_handoff() of it or dat_ia_close() is called. If another thread
 *         may call one of these meanwhile, use kdapl_cr_private_data(), which copies them.
 * @local_ep_handle: EP that came with the request, or DAT_HANDLE_NULL
 */
typedef struct dat_cr_param {
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_COUNT private_data_size;
	const void *private_data;
	DAT_EP_HANDLE local_ep_handle;
} DAT_CR_PARAM;

/**
 * dat_cr_query() - query the parameters of a CR
 * @cr: CR
 * @mask: ignored
 * @param: out: parameters. Its pointers are valid until the CR is answered.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr, u64 mask, DAT_CR_PARAM *param);
/**
 * kdapl_cr_private_data() - copy the private data of a CR
 * @cr: CR
 * @private_data_size: in: size of the buffer @private_data; out: size of the private data, also if
 *         that is larger than the buffer
 * @private_data: out: private data, as many as the buffer has room for; may be NULL if that is 0
 *
 * Any thread may answer the CR meanwhile: the call then copies them, or returns
 * DAT_INVALID_HANDLE. Not a call of DAT.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN kdapl_cr_private_data(DAT_CR_HANDLE cr, DAT_COUNT *private_data_size,
				 void *private_data);
/**
 * kdapl_cr_address() - copy the address of the peer of a CR
 * @cr: CR
 * @remote: out: address of the peer; may be NULL
 *
 * Any thread may answer the CR meanwhile: the call then copies the address, or returns
 * DAT_INVALID_HANDLE. Not a call of DAT.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN kdapl_cr_address(DAT_CR_HANDLE cr, struct __kernel_sockaddr_storage *remote);
/**
 * dat_cr_accept() - accept a CR
 * @cr: CR, freed on success
 * @ep: EP to connect; DAT_HANDLE_NULL selects the EP that came with the request
 * @private_data_size: size of @private_data
 * @private_data: private data for the peer; may be NULL if there are none
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT private_data_size,
			 const void *private_data);
/**
 * dat_cr_reject() - reject a CR
 * @cr: CR, freed on success
 * @private_data_size: size of @private_data
 * @private_data: private data for the peer, copied; may be NULL if there are none
 *
 * An EP that came with the request is freed.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr, DAT_COUNT private_data_size, const void *private_data);
/**
 * dat_cr_handoff() - pass a CR on to another service point
 * @cr: CR, freed on success
 * @conn_qual: connection qualifier of a service point at the same address of the same device, of
 *         this or another kernel consumer, or of a process
 *
 * The process must belong to the user that has opened the IA, usually the superuser. A process may
 * hand a request to a PSP of a kernel consumer with KDAPL_PSP_HANDOFF_FLAG only. After an error the
 * CR is as before.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_PARAMETER if no service point listens for
 * @conn_qual. DAT_PRIVILEGES_VIOLATION if its process belongs to another user.
 * DAT_INSUFFICIENT_RESOURCES if it has no room for the request.
 */
DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL conn_qual);
/**
 * kdapl_cr_handoff_to_user() - pass a CR on to a process of a user
 * @cr: CR, freed on success
 * @conn_qual: as of dat_cr_handoff()
 * @uid: user ID, in the initial user namespace
 *
 * As dat_cr_handoff(), to a service point whose IA was opened by this user. A process of another
 * user that listens for @conn_qual does not get the request. Not a call of DAT.
 *
 * Return: DAT_SUCCESS or an error code. DAT_PRIVILEGES_VIOLATION if the service point belongs to
 * another user.
 */
DAT_RETURN kdapl_cr_handoff_to_user(DAT_CR_HANDLE cr, DAT_CONN_QUAL conn_qual, u32 uid);

#endif /* _RDMA_KDAT_CR_H */

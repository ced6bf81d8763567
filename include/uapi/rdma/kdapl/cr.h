/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Connection Requests (CRs). */
#ifndef _UAPI_RDMA_KDAPL_CR_H
#define _UAPI_RDMA_KDAPL_CR_H

#include <rdma/kdapl/common.h>

/**
 * struct kdapl_cr_query - KDAPL_CR_QUERY: query the parameters of a CR
 * @hdr: header
 * @handle: in: CR; all following members are out
 * @remote_address: address of the peer
 * @remote_port_qual: port of the peer
 * @local_ep: reserved or provided EP; 0 if the consumer supplies it
 * @private_data_size: number of valid bytes in @private_data
 * @pad: 0
 * @private_data: private data of the request
 */
struct kdapl_cr_query {
	struct kdapl_hdr hdr;
	__u64 handle;
	struct kdapl_sockaddr remote_address;
	__u64 remote_port_qual;
	__u64 local_ep;
	__u32 private_data_size;
	__u32 pad;
	__u8 private_data[KDAPL_PRIVATE_DATA_MAX];
};

/**
 * struct kdapl_cr_answer - KDAPL_CR_ACCEPT and KDAPL_CR_REJECT: answer a CR
 * @hdr: header
 * @handle: in: CR, freed on success
 * @ep: in: ACCEPT: unconnected EP, or 0 for the EP that came with the request or is reserved for
 *         it; REJECT: 0
 * @private_data: in: address of @private_data_size bytes
 * @private_data_size: in: size of the private data for the peer
 * @pad: 0
 */
struct kdapl_cr_answer {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 ep;
	__u64 private_data;
	__u32 private_data_size;
	__u32 pad;
};

/**
 * struct kdapl_cr_handoff - KDAPL_CR_HANDOFF: pass a CR to another service point of the same device
 * and address
 * @hdr: header
 * @handle: in: CR, freed on success
 * @conn_qual: in: connection qualifier of a service point of the same user, in any process. With
 *         CAP_NET_ADMIN, of a service point of any user.
 */
struct kdapl_cr_handoff {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 conn_qual;
};

#endif /* _UAPI_RDMA_KDAPL_CR_H */

/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Connections of Endpoints. */
#ifndef _UAPI_RDMA_KDAPL_CONNECT_H
#define _UAPI_RDMA_KDAPL_CONNECT_H

#include <rdma/kdapl/common.h>

/* DAT_CONNECT_FLAGS. */
#define KDAPL_CONNECT_MULTIPATH_REQUESTED	1
#define KDAPL_CONNECT_MULTIPATH_REQUIRED	2

/**
 * struct kdapl_ep_connect - KDAPL_EP_CONNECT: connect to a PSP or an RSP
 * @hdr: header
 * @handle: in: EP
 * @remote_address: in: address of the peer; its port is ignored
 * @conn_qual: in: connection qualifier, not 0. Up to 65535 it is an rdma_cm port, on which any
 *         rdma_cm program may listen. Above, it is that of a service point of kDAPL.
 * @private_data: in: address of @private_data_size bytes
 * @timeout_ns: in: time to connect, not 0; with KDAPL_FLAG_ABSOLUTE, the time at which the attempt
 *         ends. KDAPL_TIMEOUT_INFINITE waits until the peer answers.
 * @private_data_size: in: size of the private data
 * @qos: in: KDAPL_QOS_*
 * @flags: in: KDAPL_CONNECT_*
 * @pad: 0
 */
struct kdapl_ep_connect {
	struct kdapl_hdr hdr;
	__u64 handle;
	struct kdapl_sockaddr remote_address;
	__u64 conn_qual;
	__u64 private_data;
	__u64 timeout_ns;
	__u32 private_data_size;
	__u32 qos;
	__u32 flags;
	__u32 pad;
};

/**
 * struct kdapl_ep_dup_connect - KDAPL_EP_DUP_CONNECT: connect to the peer of another EP
 * @hdr: header
 * @handle: in: EP
 * @dup: in: connected EP of the same IA. The call uses the address and the connection qualifier
 *         that @dup connected to. If @dup accepted a request, it uses the peer's address and the
 *         connection qualifier of the service point that the request arrived at.
 * @private_data: in: as for KDAPL_EP_CONNECT, like the following members
 * @timeout_ns: in
 * @private_data_size: in
 * @qos: in
 */
struct kdapl_ep_dup_connect {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 dup;
	__u64 private_data;
	__u64 timeout_ns;
	__u32 private_data_size;
	__u32 qos;
};

/**
 * struct kdapl_ep_common_connect - KDAPL_EP_COMMON_CONNECT: connect to a CSP
 * @hdr: header
 * @handle: in: EP
 * @remote_address: in: address of the CSP, including the port
 * @private_data: in: as for KDAPL_EP_CONNECT, like the following members
 * @timeout_ns: in
 * @private_data_size: in
 * @pad: 0
 */
struct kdapl_ep_common_connect {
	struct kdapl_hdr hdr;
	__u64 handle;
	struct kdapl_sockaddr remote_address;
	__u64 private_data;
	__u64 timeout_ns;
	__u32 private_data_size;
	__u32 pad;
};

/**
 * struct kdapl_ep_disconnect - KDAPL_EP_DISCONNECT: disconnect an EP
 * @hdr: header
 * @handle: in: EP
 * @flags: in: KDAPL_CLOSE_ABRUPT or KDAPL_CLOSE_GRACEFUL
 * @pad: 0
 */
struct kdapl_ep_disconnect {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u32 flags;
	__u32 pad;
};

/**
 * struct kdapl_ep_private_data - KDAPL_EP_PRIVATE_DATA: copy the private data that the peer sent
 * with its accept (ESTABLISHED) or its reject (PEER_REJECTED)
 * @hdr: header
 * @handle: in: EP
 * @size: out: number of valid bytes in @data
 * @pad: 0
 * @data: out: private data
 */
struct kdapl_ep_private_data {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u32 size;
	__u32 pad;
	__u8 data[KDAPL_PRIVATE_DATA_MAX];
};

#endif /* _UAPI_RDMA_KDAPL_CONNECT_H */

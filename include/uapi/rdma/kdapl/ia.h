/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Interface Adapters (IAs): open, attributes, statistics, close. */
#ifndef _UAPI_RDMA_KDAPL_IA_H
#define _UAPI_RDMA_KDAPL_IA_H

#include <rdma/kdapl/common.h>

/**
 * struct kdapl_ia_open - KDAPL_IA_OPEN: open an IA
 * @hdr: header
 * @abi_version: in: KDAPL_ABI_VERSION
 * @async_evd_qlen: in: minimum queue length of the asynchronous EVD, at least 1
 * @name: in: place of the IA, NUL-terminated: SUBJECT[/PORT][@PLACE]. SUBJECT is an RDMA device, a
 *      network device or an IP address. PORT is a number. PLACE is a network device or an IP
 *      address.
 * @ia: out: handle of the IA
 * @async_evd: out: handle of the asynchronous EVD
 */
struct kdapl_ia_open {
	struct kdapl_hdr hdr;
	__u32 abi_version;
	__s32 async_evd_qlen;
	__u8 name[KDAPL_NAME_MAX];
	__u64 ia;
	__u64 async_evd;
};

/**
 * struct kdapl_ia_query - KDAPL_IA_QUERY: query the attributes of the IA
 * @hdr: header; all other members are out
 * @adapter_name: name of the RDMA device, NUL-terminated
 * @netdev_name: name of its network device, NUL-terminated
 * @address: address of the IA
 * @async_evd: handle of the asynchronous EVD
 * @max_lmr_size: maximum size of an LMR
 * @max_message_size: maximum size of a message
 * @max_rdma_size: maximum size of an RDMA operation
 * @fw_version: firmware version of the device, in the driver's encoding
 * @vendor_id: vendor ID of the device
 * @hw_version: hardware version of the device
 * @transport: KDAPL_TRANSPORT_*
 * @max_eps: maximum number of EPs
 * @max_dto_per_ep: maximum number of outstanding DTOs of an EP, for each direction
 * @max_rdma_read_per_ep_in: maximum number of incoming RDMA Reads of an EP
 * @max_rdma_read_per_ep_out: maximum number of outgoing RDMA Reads of an EP
 * @max_evds: maximum number of EVDs
 * @max_evd_qlen: maximum queue length of an EVD
 * @max_iov_segments_per_dto: maximum number of segments of a DTO
 * @max_iov_segments_per_rdma_read: maximum number of segments of an RDMA Read
 * @max_iov_segments_per_rdma_write: maximum number of segments of an RDMA Write
 * @max_lmrs: maximum number of LMRs; 0 if the driver registers no memory of processes
 * @max_pzs: maximum number of PZs
 * @max_private_data_connect: maximum size of the private data of a request
 * @max_private_data_accept: maximum size of the private data of an accept
 * @max_private_data_reject: maximum size of the private data of a reject
 * @wide_qual_overhead: private data of a request that a connection qualifier above 65535 takes up,
 *         in bytes
 * @completion_vectors: number of completion vectors of the device, at least 1
 * @extensions: supported operations of the InfiniBand extensions, a mask of KDAPL_EXTENSION_*
 * @abi_version: the kernel's KDAPL_ABI_VERSION
 * @dto_size: size of the kernel's struct kdapl_dto
 * @event_size: size of the kernel's struct kdapl_event
 * @zb_supported: 1 if LMRs may have zero-based addresses, otherwise 0
 * @max_srqs: maximum number of SRQs; 0 if the device has none
 * @max_recv_per_srq: maximum number of receives of an SRQ
 * @max_iov_segments_per_srq: maximum number of segments of a receive of an SRQ
 * @port: number of the device's port
 * @max_rmrs: maximum number of RMRs; 0 if the device cannot bind any
 * @mtu: maximum payload of a packet of the port; 0 if unknown
 *
 * The first published size (KDAPL_IA_QUERY_SIZE_MIN) ends before @abi_version.
 */
struct kdapl_ia_query {
	struct kdapl_hdr hdr;
	__u8 adapter_name[KDAPL_NAME_MAX];
	__u8 netdev_name[KDAPL_NAME_MAX];
	struct kdapl_sockaddr address;
	__u64 async_evd;
	__u64 max_lmr_size;
	__u64 max_message_size;
	__u64 max_rdma_size;
	__u64 fw_version;
	__u32 vendor_id;
	__u32 hw_version;
	__u32 transport;
	__u32 max_eps;
	__u32 max_dto_per_ep;
	__u32 max_rdma_read_per_ep_in;
	__u32 max_rdma_read_per_ep_out;
	__u32 max_evds;
	__u32 max_evd_qlen;
	__u32 max_iov_segments_per_dto;
	__u32 max_iov_segments_per_rdma_read;
	__u32 max_iov_segments_per_rdma_write;
	__u32 max_lmrs;
	__u32 max_pzs;
	__u32 max_private_data_connect;
	__u32 max_private_data_accept;
	__u32 max_private_data_reject;
	__u32 wide_qual_overhead;
	__u32 completion_vectors;
	__u32 extensions;
	__u32 abi_version;
	__u32 dto_size;
	__u32 event_size;
	__u32 zb_supported;
	__u32 max_srqs;
	__u32 max_recv_per_srq;
	__u32 max_iov_segments_per_srq;
	__u32 port;
	__u32 max_rmrs;
	__u32 mtu;
};

#define KDAPL_IA_QUERY_SIZE_MIN	392

#define KDAPL_EXTENSION_IMMED_DATA	0x1	/* RDMA Write with immediate data */
#define KDAPL_EXTENSION_FETCH_AND_ADD	0x2
#define KDAPL_EXTENSION_CMP_AND_SWAP	0x4

/**
 * struct kdapl_ia_close - KDAPL_IA_CLOSE: close the IA
 * @hdr: header
 * @flags: in: KDAPL_CLOSE_ABRUPT destroys the remaining objects; KDAPL_CLOSE_GRACEFUL fails with
 *         DAT_INVALID_STATE while there are any
 * @pad: 0
 *
 * The file is then in the state after open(2) again.
 */
struct kdapl_ia_close {
	struct kdapl_hdr hdr;
	__u32 flags;
	__u32 pad;
};

/* Bytes of the name of a process, with the zero byte at the end. */
#define KDAPL_PROCESS_NAME_MAX	16

/**
 * struct kdapl_ia_stat - KDAPL_IA_STAT: statistics of an open IA, of any process or kernel module
 * @hdr: header; @hdr.ret is DAT_PROVIDER_NOT_FOUND if there is no further IA
 * @serial: in: serial number of the last IA, or 0; out: that of the next IA that the caller may
 *         see
 * @age_ns: out: nanoseconds since the IA was opened
 * @requests: out: number of sends, RDMA operations and atomics that have completed with success
 * @request_bytes: out: bytes that they have transferred
 * @receives: out: number of receives that have completed with success
 * @receive_bytes: out: bytes that they have received
 * @failures: out: number of DTOs and local requests that have failed; flushed ones do not count
 * @connections_established: out: number of connections that were established
 * @connections_broken: out: number of connections that have ended with BROKEN
 * @events_queued: out: number of events in all EVDs
 * @memory: out: bytes of all LMRs
 * @pid: out: process that opened the IA, in the caller's PID namespace; 0 for a kernel module, and
 *         for a process that has no number there or has ended
 * @uid: out: user of the process, in the caller's user namespace
 * @is_kernel: out: 1 for the IA of a kernel module
 * @connections: out: number of connections
 * @requests_outstanding: out: number of requests that are posted and have not completed
 * @receives_outstanding: out: the same for receives that are posted to EPs
 * @waiters: out: number of threads that wait for an EVD or a CNO
 * @pzs: out: number of objects, like the following members
 * @lmrs: out
 * @rmrs: out
 * @cnos: out
 * @evds: out
 * @eps: out
 * @srqs: out
 * @psps: out
 * @rsps: out
 * @csps: out
 * @crs: out
 * @name: out: name that the process had when it opened the IA, NUL-terminated
 * @adapter_name: out: name of the RDMA device, NUL-terminated
 *
 * Counts start when the IA is opened. Needs no open IA, like KDAPL_DEVICE_GET.
 */
struct kdapl_ia_stat {
	struct kdapl_hdr hdr;
	__u64 serial;
	__u64 age_ns;
	__u64 requests;
	__u64 request_bytes;
	__u64 receives;
	__u64 receive_bytes;
	__u64 failures;
	__u64 connections_established;
	__u64 connections_broken;
	__u64 events_queued;
	__u64 memory;
	__u32 pid;
	__u32 uid;
	__u32 is_kernel;
	__u32 connections;
	__u32 requests_outstanding;
	__u32 receives_outstanding;
	__u32 waiters;
	__u32 pzs;
	__u32 lmrs;
	__u32 rmrs;
	__u32 cnos;
	__u32 evds;
	__u32 eps;
	__u32 srqs;
	__u32 psps;
	__u32 rsps;
	__u32 csps;
	__u32 crs;
	__u8 name[KDAPL_PROCESS_NAME_MAX];
	__u8 adapter_name[KDAPL_NAME_MAX];
};

#endif /* _UAPI_RDMA_KDAPL_IA_H */

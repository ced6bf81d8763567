/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Interface Adapters (IAs). */
#ifndef _RDMA_KDAT_IA_H
#define _RDMA_KDAT_IA_H

#include <rdma/kdat/types.h>

/* Masks of queries. A query returns all fields regardless of its mask. */
typedef u64 DAT_IA_ATTR_MASK;
typedef u64 DAT_PROVIDER_ATTR_MASK;
#define DAT_IA_FIELD_NONE		0
#define DAT_IA_FIELD_ALL		0x3fffffffffULL
#define DAT_PROVIDER_FIELD_NONE		0
#define DAT_PROVIDER_FIELD_ALL		0x7fffffffULL

/**
 * struct dat_ia_attr - attributes of an IA
 * @adapter_name: name of the RDMA device
 * @vendor_name: vendor ID in hexadecimal digits
 * @hardware_version_major: hardware version of the device
 * @hardware_version_minor: 0
 * @firmware_version_major: upper 32 bits of the device's firmware version
 * @firmware_version_minor: lower 32 bits of the device's firmware version
 * @ia_address_ptr: address of the IA; valid until the IA is closed
 * @max_eps: maximum number of EPs
 * @max_dto_per_ep: maximum number of outstanding DTOs of an EP, for each direction
 * @max_rdma_read_per_ep_in: maximum number of incoming RDMA Reads of an EP
 * @max_rdma_read_per_ep_out: maximum number of outgoing RDMA Reads of an EP
 * @max_evds: maximum number of EVDs
 * @max_evd_qlen: maximum number of events in an EVD's queue
 * @max_iov_segments_per_dto: maximum number of segments of a DTO
 * @max_lmrs: maximum number of Local Memory Regions (LMRs)
 * @max_lmr_block_size: maximum size of an LMR; the largest value of the type if it is larger
 * @max_lmr_virtual_address: highest address of an LMR
 * @max_pzs: maximum number of Protection Zones (PZs)
 * @max_message_size: maximum size of a message
 * @max_rdma_size: maximum size of an RDMA operation
 * @max_rmrs: maximum number of RMRs; 0 if work requests of the device cannot register memory
 * @max_rmr_size: maximum size of the part of an LMR that an RMR is bound to, and of an LMR of
 *         kernel memory with remote privileges. A part that begins within a page has a page less.
 * @max_srqs: maximum number of SRQs; 0 if the device has none
 * @max_ep_per_srq: maximum number of EPs of an SRQ
 * @max_recv_per_srq: maximum number of receives of an SRQ
 * @max_iov_segments_per_srq: maximum number of segments of a receive of an SRQ
 * @max_iov_segments_per_rdma_read: maximum number of segments of an RDMA Read
 * @max_iov_segments_per_rdma_write: maximum number of segments of an RDMA Write
 * @zb_supported: DAT_TRUE: LMRs may have zero-based addresses
 * @reserved_lmr_supported: DAT_TRUE: see dat_ia_reserved_lmr()
 * @extension_supported: DAT_EXTENSION_IB if the device supports at least one operation of
 *         <rdma/kdat_ib_extensions.h>, else DAT_EXTENSION_NONE
 */
typedef struct dat_ia_attr {
	char adapter_name[DAT_NAME_MAX_LENGTH];
	char vendor_name[DAT_NAME_MAX_LENGTH];
	u32 hardware_version_major;
	u32 hardware_version_minor;
	u32 firmware_version_major;
	u32 firmware_version_minor;
	DAT_IA_ADDRESS_PTR ia_address_ptr;
	DAT_COUNT max_eps;
	DAT_COUNT max_dto_per_ep;
	DAT_COUNT max_rdma_read_per_ep_in;
	DAT_COUNT max_rdma_read_per_ep_out;
	DAT_COUNT max_evds;
	DAT_COUNT max_evd_qlen;
	DAT_COUNT max_iov_segments_per_dto;
	DAT_COUNT max_lmrs;
	DAT_SEG_LENGTH max_lmr_block_size;
	DAT_VADDR max_lmr_virtual_address;
	DAT_COUNT max_pzs;
	DAT_SEG_LENGTH max_message_size;
	DAT_SEG_LENGTH max_rdma_size;
	DAT_COUNT max_rmrs;
	DAT_SEG_LENGTH max_rmr_size;
	DAT_COUNT max_srqs;
	DAT_COUNT max_ep_per_srq;
	DAT_COUNT max_recv_per_srq;
	DAT_COUNT max_iov_segments_per_srq;
	DAT_COUNT max_iov_segments_per_rdma_read;
	DAT_COUNT max_iov_segments_per_rdma_write;
	DAT_BOOLEAN zb_supported;
	DAT_BOOLEAN reserved_lmr_supported;
	u32 extension_supported;
} DAT_IA_ATTR;

#define DAT_EXTENSION_NONE	0
#define DAT_EXTENSION_IB	1

/**
 * struct dat_provider_attr - attributes of kDAPL
 * @provider_name: "kdapl"
 * @dapl_version_major: DAT_VERSION_MAJOR
 * @dapl_version_minor: DAT_VERSION_MINOR
 * @lmr_mem_types_supported: supported types of memory, a mask of DAT_MEM_TYPE;
 *         DAT_MEM_TYPE_VIRTUAL, which is 0, is always supported
 * @dat_qos_supported: supported qualities of service, a mask of DAT_QOS_*
 * @completion_flags_supported: supported completion flags, a mask of DAT_COMPLETION_*
 * @is_thread_safe: DAT_TRUE
 * @max_private_data_size: number of bytes of private data that every request, accept and reject can
 *         carry
 * @supports_multipath: DAT_FALSE
 * @fmr_supported: whether requests register memory: see dat_lmr_fmr()
 * @lmr_for_fmr_scope: scope of such memory, DAT_LMR_SCOPE_PZ
 * @rdma_write_for_rdma_read_req: whether RDMA reads require memory that the peer may write:
 *         DAT_TRUE over iWARP
 */
typedef struct dat_provider_attr {
	char provider_name[DAT_NAME_MAX_LENGTH];
	u32 dapl_version_major;
	u32 dapl_version_minor;
	u32 lmr_mem_types_supported;
	u32 dat_qos_supported;
	u32 completion_flags_supported;
	DAT_BOOLEAN is_thread_safe;
	DAT_COUNT max_private_data_size;
	DAT_BOOLEAN supports_multipath;
	DAT_BOOLEAN fmr_supported;
	u32 lmr_for_fmr_scope;
	DAT_BOOLEAN rdma_write_for_rdma_read_req;
} DAT_PROVIDER_ATTR;

/**
 * dat_ia_openv() - open the IA of an RDMA device
 * @name: SUBJECT[/PORT][@PLACE]: an RDMA device, a network device or an IP address; its port; a
 *         network device or an IP address of it. "rxe0", "mlx5_0/2", "eth0.100", "10.7.0.1",
 *         "rxe0@10.7.0.1"
 * @async_evd_qlen: minimum queue length of the asynchronous EVD
 * @async_evd: in: DAT_HANDLE_NULL; out: the asynchronous EVD, which makes no upcalls until
 *         dat_evd_modify_upcall() enables them
 * @ia: out: the IA
 * @major: major version of DAT that the consumer was built for
 * @minor: minor version of DAT that the consumer was built for
 * @is_thread_safe: ignored; kDAPL is always thread-safe
 *
 * Use dat_ia_open(), which passes the version of this header.
 *
 * Return: DAT_SUCCESS or an error code. DAT_PROVIDER_NOT_FOUND for an unsupported version.
 */
DAT_RETURN dat_ia_openv(DAT_NAME_PTR name, DAT_COUNT async_evd_qlen,
			DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia,
			u32 major, u32 minor, DAT_BOOLEAN is_thread_safe);

#define dat_ia_open(name, qlen, async_evd, ia) \
	dat_ia_openv((name), (qlen), (async_evd), (ia), \
		     DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE)

struct net;

/**
 * kdapl_ia_open_net() - open the IA of an RDMA device in a network namespace
 * @name: as for dat_ia_openv()
 * @net: network namespace. The caller has a reference to it during the call.
 * @async_evd_qlen: minimum queue length of the asynchronous EVD
 * @async_evd: in: DAT_HANDLE_NULL; out: the asynchronous EVD
 * @ia: out: the IA
 *
 * Not a call of DAT. Finds the device, its addresses and all peers in @net, where dat_ia_openv()
 * does so in the initial namespace. Requests arrive from there.
 *
 * The IA takes a reference to @net, and releases it in dat_ia_close(), or up to 30 seconds later if
 * a peer has not answered. Until then the namespace exists with its network devices, also if its
 * last process has ended or its name was deleted. Close the IA to let it end.
 *
 * Return: DAT_SUCCESS or an error code. DAT_PROVIDER_NOT_FOUND if @net has no such device,
 * DAT_INVALID_ADDRESS if the device has no address in @net.
 */
DAT_RETURN kdapl_ia_open_net(DAT_NAME_PTR name, struct net *net, DAT_COUNT async_evd_qlen,
			     DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia);

/**
 * dat_ia_query() - query the attributes of an IA and of kDAPL
 * @ia: IA
 * @async_evd: out: the asynchronous EVD; may be NULL
 * @mask: ignored
 * @attr: out: attributes of the IA; may be NULL
 * @provider_mask: ignored
 * @provider_attr: out: attributes of kDAPL; may be NULL
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd,
			DAT_IA_ATTR_MASK mask, DAT_IA_ATTR *attr,
			DAT_PROVIDER_ATTR_MASK provider_mask,
			DAT_PROVIDER_ATTR *provider_attr);
/**
 * dat_ia_close() - close an IA
 * @ia: IA
 * @flags: DAT_CLOSE_ABRUPT_FLAG destroys the remaining objects; DAT_CLOSE_GRACEFUL_FLAG fails if
 *         there are any
 *
 * On return, no upcall and no wait is in progress.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE if a graceful close finds objects, or if
 * an upcall of one of the IA's EVDs makes the call, or in an interrupt.
 */
DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags);

/**
 * dat_get_handle_type() - return the type of the object that a handle names
 * @handle: handle of an object, or of an IA
 * @type: out: DAT_HANDLE_TYPE_*
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_HANDLE (DAT_INVALID_HANDLE1) for a handle that
 * names nothing.
 */
DAT_RETURN dat_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type);

#endif /* _RDMA_KDAT_IA_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * DAT 2.0 for kernel consumers: the interface that kdapl.ko exports.
 *
 * DAT is the Direct Access Transport, an API for remote direct memory access (RDMA). Names, numbers
 * and arguments are those of DAT. docs/kernel-api.md explains the use of the calls and the points
 * that DAT leaves open. docs/dat-coverage.md lists the differences from other implementations.
 *
 * Rules for every call:
 *
 * -  Context: process or work item; may sleep, unless stated otherwise. Any thread may make any
 *   call on any object. "Context: any" includes interrupts and holders of spinlocks: the call sleeps
 *   only where its caller may.
 * -  A handle is a number cast to a pointer. A handle that is stale, of another type or invented is
 *   refused with DAT_INVALID_HANDLE.
 * -  An output pointer must be valid. NULL is allowed only where the call's description says so;
 *   elsewhere it is DAT_INVALID_PARAMETER.
 * -  Times are in microseconds, sizes in bytes.
 * -  DAT_SUCCESS is 0. Every other return value has the class DAT_CLASS_ERROR, a type
 *   (DAT_GET_TYPE) and possibly a subtype (DAT_GET_SUBTYPE, <rdma/kdat_subtypes.h>).
 *   dat_strerror() returns their names.
 * -  Interface Adapters (IAs) are opened in the initial network namespace.
 *
 * A module that uses these calls needs MODULE_IMPORT_NS("KDAPL"). It must close every IA that it
 * has opened before it is unloaded.
 */
#ifndef _RDMA_KDAT_H
#define _RDMA_KDAT_H

#include <linux/socket.h>
#include <linux/types.h>
#include <rdma/kdat_subtypes.h>

#if BITS_PER_LONG != 64
#error "kDAPL requires a 64-bit architecture"
#endif

#define DAT_VERSION_MAJOR	2
#define DAT_VERSION_MINOR	0

typedef s32 DAT_COUNT;
typedef int DAT_BOOLEAN;
typedef u32 DAT_RETURN;
typedef u32 DAT_TIMEOUT;
typedef u64 DAT_VLEN;
typedef u64 DAT_VADDR;
typedef u64 DAT_PADDR;
typedef u32 DAT_SEG_LENGTH;
typedef u64 DAT_CONN_QUAL;
typedef u64 DAT_PORT_QUAL;
typedef u32 DAT_LMR_CONTEXT;
typedef u32 DAT_RMR_CONTEXT;
typedef struct sockaddr *DAT_IA_ADDRESS_PTR;
typedef const char *DAT_NAME_PTR;

#define DAT_FALSE		0
#define DAT_TRUE		1
#define DAT_TIMEOUT_INFINITE	((DAT_TIMEOUT)~0)
#define DAT_NAME_MAX_LENGTH	256

typedef void *DAT_HANDLE;
typedef DAT_HANDLE DAT_IA_HANDLE;
typedef DAT_HANDLE DAT_PZ_HANDLE;
typedef DAT_HANDLE DAT_EVD_HANDLE;
typedef DAT_HANDLE DAT_CNO_HANDLE;
typedef DAT_HANDLE DAT_EP_HANDLE;
typedef DAT_HANDLE DAT_CR_HANDLE;
typedef DAT_HANDLE DAT_PSP_HANDLE;
typedef DAT_HANDLE DAT_RSP_HANDLE;
typedef DAT_HANDLE DAT_CSP_HANDLE;
typedef DAT_HANDLE DAT_SP_HANDLE;
typedef DAT_HANDLE DAT_LMR_HANDLE;
typedef DAT_HANDLE DAT_RMR_HANDLE;
typedef DAT_HANDLE DAT_SRQ_HANDLE;

#define DAT_HANDLE_NULL		((DAT_HANDLE)NULL)

/* Object type of a handle, see dat_get_handle_type(). */
typedef u32 DAT_HANDLE_TYPE;
#define DAT_HANDLE_TYPE_CR	0
#define DAT_HANDLE_TYPE_EP	1
#define DAT_HANDLE_TYPE_EVD	2
#define DAT_HANDLE_TYPE_IA	3
#define DAT_HANDLE_TYPE_LMR	4
#define DAT_HANDLE_TYPE_PSP	5
#define DAT_HANDLE_TYPE_PZ	6
#define DAT_HANDLE_TYPE_RMR	7
#define DAT_HANDLE_TYPE_RSP	8
#define DAT_HANDLE_TYPE_CNO	9
#define DAT_HANDLE_TYPE_SRQ	10
#define DAT_HANDLE_TYPE_CSP	11

/* Consumer-defined value that an event returns unchanged. */
typedef union dat_context {
	void *as_ptr;
	u64 as_64;
} DAT_CONTEXT;
typedef DAT_CONTEXT DAT_DTO_COOKIE;
typedef DAT_CONTEXT DAT_RMR_COOKIE;
typedef DAT_CONTEXT DAT_LMR_COOKIE;

/*
 * Return codes: class, type and subtype.
 */
#define DAT_SUCCESS			0
#define DAT_CLASS_ERROR			0x80000000u
#define DAT_GET_TYPE(code)		((code) & 0x3fff0000u)
#define DAT_GET_SUBTYPE(code)		((code) & 0x0000ffffu)

#define DAT_ABORT			0x00010000u
#define DAT_CONN_QUAL_IN_USE		0x00020000u
#define DAT_INSUFFICIENT_RESOURCES	0x00030000u
#define DAT_INTERNAL_ERROR		0x00040000u
#define DAT_INVALID_HANDLE		0x00050000u
#define DAT_INVALID_PARAMETER		0x00060000u
#define DAT_INVALID_STATE		0x00070000u
#define DAT_LENGTH_ERROR		0x00080000u
#define DAT_MODEL_NOT_SUPPORTED		0x00090000u
#define DAT_PROVIDER_NOT_FOUND		0x000a0000u
#define DAT_PRIVILEGES_VIOLATION	0x000b0000u
#define DAT_PROTECTION_VIOLATION	0x000c0000u
#define DAT_QUEUE_EMPTY			0x000d0000u
#define DAT_QUEUE_FULL			0x000e0000u
#define DAT_TIMEOUT_EXPIRED		0x000f0000u
#define DAT_PROVIDER_ALREADY_REGISTERED	0x00100000u
#define DAT_PROVIDER_IN_USE		0x00110000u
#define DAT_INVALID_ADDRESS		0x00120000u
#define DAT_INTERRUPTED_CALL		0x00130000u
#define DAT_CONN_QUAL_UNAVAILABLE	0x00140000u
#define DAT_RESERVED_LMR		0x00150000u
#define DAT_PORT_IN_USE			0x00160000u
#define DAT_COMM_NOT_SUPPORTED		0x00170000u
#define DAT_NOT_IMPLEMENTED		0x3fff0000u

/**
 * dat_strerror() - return the names of a return code
 * @value: return code of a call
 * @major: out: name of the type, as "DAT_INVALID_STATE", or "DAT_SUCCESS"
 * @minor: out: name of the subtype, as "DAT_INVALID_STATE_EVD_IN_USE"; "" if there is none
 *
 * The strings are valid while kdapl.ko is loaded. Context: any.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_PARAMETER (argument 1) if DAT does not have
 * @value; the strings are not set then.
 */
DAT_RETURN dat_strerror(DAT_RETURN value, const char **major, const char **minor);

/*
 * Events.
 */
typedef u32 DAT_EVENT_NUMBER;
#define DAT_DTO_COMPLETION_EVENT			0x00001
#define DAT_RMR_BIND_COMPLETION_EVENT			0x01001
#define DAT_CONNECTION_REQUEST_EVENT			0x02001
#define DAT_CONNECTION_EVENT_ESTABLISHED		0x04001
#define DAT_CONNECTION_EVENT_PEER_REJECTED		0x04002
#define DAT_CONNECTION_EVENT_NON_PEER_REJECTED		0x04003
#define DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR	0x04004
#define DAT_CONNECTION_EVENT_DISCONNECTED		0x04005
#define DAT_CONNECTION_EVENT_BROKEN			0x04006
#define DAT_CONNECTION_EVENT_TIMED_OUT			0x04007
#define DAT_CONNECTION_EVENT_UNREACHABLE		0x04008
#define DAT_ASYNC_ERROR_EVD_OVERFLOW			0x08001
#define DAT_ASYNC_ERROR_IA_CATASTROPHIC			0x08002
#define DAT_ASYNC_ERROR_EP_BROKEN			0x08003
#define DAT_SOFTWARE_EVENT				0x10001

typedef u32 DAT_DTO_COMPLETION_STATUS;
typedef DAT_DTO_COMPLETION_STATUS DAT_RMR_BIND_COMPLETION_STATUS;
#define DAT_DTO_SUCCESS			0
#define DAT_DTO_ERR_FLUSHED		1
#define DAT_DTO_ERR_LOCAL_LENGTH	2
#define DAT_DTO_ERR_LOCAL_EP		3
#define DAT_DTO_ERR_LOCAL_PROTECTION	4
#define DAT_DTO_ERR_BAD_RESPONSE	5
#define DAT_DTO_ERR_REMOTE_ACCESS	6
#define DAT_DTO_ERR_REMOTE_RESPONDER	7
#define DAT_DTO_ERR_TRANSPORT		8
#define DAT_DTO_ERR_RECEIVER_NOT_READY	9
#define DAT_DTO_ERR_PARTIAL_PACKET	10
#define DAT_RMR_OPERATION_FAILED	11
#define DAT_DTO_ERR_LOCAL_MM_ERROR	12

typedef u32 DAT_DTOS;
#define DAT_DTO_SEND			0
#define DAT_DTO_RDMA_WRITE		1
#define DAT_DTO_RDMA_READ		2
#define DAT_DTO_RECEIVE			3
#define DAT_DTO_RECEIVE_WITH_INVALIDATE	4
#define DAT_DTO_LMR_FMR			6
#define DAT_DTO_LMR_INVALIDATE		7
/*
 * Of kdapl_ep_post_list() only; its completion is DAT_DTO_SEND. Not of DAT. The user's header defines
 * the same.
 */
#define KDAPL_DTO_SEND_WITH_INVALIDATE	0x100

typedef u32 DAT_COMPLETION_FLAGS;
#define DAT_COMPLETION_DEFAULT_FLAG		0x00
#define DAT_COMPLETION_SUPPRESS_FLAG		0x01
#define DAT_COMPLETION_SOLICITED_WAIT_FLAG	0x02
#define DAT_COMPLETION_UNSIGNALLED_FLAG		0x04
#define DAT_COMPLETION_BARRIER_FENCE_FLAG	0x08
#define DAT_COMPLETION_EVD_THRESHOLD_FLAG	0x10
/* Of dat_lmr_invalidate() only. */
#define DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG 0x20

/**
 * struct dat_dto_completion_event_data - data of DAT_DTO_COMPLETION_EVENT
 * @ep_handle: Endpoint (EP) that the data transfer operation (DTO) was posted to, or that took the
 *         receive from a Shared Receive Queue (SRQ)
 * @user_cookie: cookie of the post call
 * @status: DAT_DTO_SUCCESS, DAT_DTO_ERR_* or DAT_RMR_OPERATION_FAILED
 * @transfered_length: number of bytes sent or received
 * @operation: type of the DTO
 * @rmr_context: DAT_DTO_RECEIVE_WITH_INVALIDATE: context that the peer invalidated; otherwise 0
 */
typedef struct dat_dto_completion_event_data {
	DAT_EP_HANDLE ep_handle;
	DAT_DTO_COOKIE user_cookie;
	DAT_DTO_COMPLETION_STATUS status;
	DAT_SEG_LENGTH transfered_length;
	DAT_DTOS operation;
	DAT_RMR_CONTEXT rmr_context;
} DAT_DTO_COMPLETION_EVENT_DATA;

/**
 * struct dat_rmr_bind_completion_event_data - data of DAT_RMR_BIND_COMPLETION_EVENT
 * @rmr_handle: Remote Memory Region (RMR)
 * @user_cookie: cookie of the bind
 * @status: DAT_DTO_SUCCESS, DAT_DTO_ERR_* or DAT_RMR_OPERATION_FAILED
 */
typedef struct dat_rmr_bind_completion_event_data {
	DAT_RMR_HANDLE rmr_handle;
	DAT_RMR_COOKIE user_cookie;
	DAT_RMR_BIND_COMPLETION_STATUS status;
} DAT_RMR_BIND_COMPLETION_EVENT_DATA;

/**
 * struct dat_cr_arrival_event_data - data of DAT_CONNECTION_REQUEST_EVENT
 * @sp_handle: service point that the request arrived at
 * @local_ia_address_ptr: address of the IA; valid until the IA is closed
 * @conn_qual: connection qualifier that the peer connects to
 * @cr_handle: Connection Request (CR), to be accepted, rejected or handed off
 * @truncate_flag: DAT_FALSE; private data are never truncated
 */
typedef struct dat_cr_arrival_event_data {
	DAT_SP_HANDLE sp_handle;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_CONN_QUAL conn_qual;
	DAT_CR_HANDLE cr_handle;
	DAT_BOOLEAN truncate_flag;
} DAT_CR_ARRIVAL_EVENT_DATA;

/**
 * struct dat_connection_event_data - data of DAT_CONNECTION_EVENT_*
 * @ep_handle: EP of the connection
 * @private_data_size: size of @private_data
 * @private_data: private data that the peer sent with its accept or reject, or NULL if there are
 *         none or the EP has been freed. They are part of the EP: valid until dat_ep_free() of it
 *         or dat_ia_close() is called, and unchanged until the EP connects or accepts again. If
 *         another thread may call one of these meanwhile, use kdapl_ep_private_data(), which copies
 *         them.
 */
typedef struct dat_connection_event_data {
	DAT_EP_HANDLE ep_handle;
	DAT_COUNT private_data_size;
	void *private_data;
} DAT_CONNECTION_EVENT_DATA;

/* Reason of an asynchronous event of an SRQ, whose number is DAT_ASYNC_ERROR_EP_BROKEN. */
#define DAT_SRQ_LOW_WATERMARK_EVENT	2

/* Reason of an asynchronous event of an EP that exceeds its soft high watermark of receives. */
#define DAT_EP_SOFT_HIGH_WATERMARK_EVENT	2

/* No watermark. */
#define DAT_WATERMARK_INFINITE	(-1)

/**
 * struct dat_asynch_error_event_data - data of DAT_ASYNC_ERROR_*
 * @dat_handle: object that the event occurred on
 * @reason: DAT's reason code
 */
typedef struct dat_asynch_error_event_data {
	DAT_HANDLE dat_handle;
	DAT_COUNT reason;
} DAT_ASYNCH_ERROR_EVENT_DATA;

/**
 * struct dat_software_event_data - data of DAT_SOFTWARE_EVENT
 * @pointer: pointer passed to dat_evd_post_se()
 */
typedef struct dat_software_event_data {
	void *pointer;
} DAT_SOFTWARE_EVENT_DATA;

typedef union dat_event_data {
	DAT_DTO_COMPLETION_EVENT_DATA dto_completion_event_data;
	DAT_RMR_BIND_COMPLETION_EVENT_DATA rmr_completion_event_data;
	DAT_CR_ARRIVAL_EVENT_DATA cr_arrival_event_data;
	DAT_CONNECTION_EVENT_DATA connect_event_data;
	DAT_ASYNCH_ERROR_EVENT_DATA asynch_error_event_data;
	DAT_SOFTWARE_EVENT_DATA software_event_data;
} DAT_EVENT_DATA;

/**
 * struct dat_event - event of an Event Dispatcher (EVD)
 * @event_number: type of the event; selects the valid member of @event_data
 * @evd_handle: EVD that the event was queued on
 * @event_data: data of the event
 * @event_extension_data: further data of an extension's event (<rdma/kdat_ib_extensions.h>)
 */
typedef struct dat_event {
	DAT_EVENT_NUMBER event_number;
	DAT_EVD_HANDLE evd_handle;
	DAT_EVENT_DATA event_data;
	u64 event_extension_data[8];
} DAT_EVENT;

/*
 * Interface Adapters.
 */
typedef u32 DAT_CLOSE_FLAGS;
#define DAT_CLOSE_ABRUPT_FLAG		0
#define DAT_CLOSE_GRACEFUL_FLAG		1
#define DAT_CLOSE_DEFAULT		DAT_CLOSE_ABRUPT_FLAG

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
 * an upcall of one of the IA's EVDs makes the call.
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

/*
 * Protection Zones and memory.
 */
typedef struct dat_pz_param {
	DAT_IA_HANDLE ia_handle;
} DAT_PZ_PARAM;

/**
 * dat_pz_create() - create a PZ
 * @ia: IA
 * @pz: out: the PZ, which the consumer frees with dat_pz_free()
 *
 * LMRs, RMRs, SRQs and EPs of one PZ may be used together, and no others.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz);
/**
 * dat_pz_query() - query the parameters of a PZ
 * @pz: PZ
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz, u64 mask, DAT_PZ_PARAM *param);
/**
 * dat_pz_free() - free a PZ
 * @pz: PZ
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (DAT_INVALID_STATE_PZ_IN_USE) while an
 * LMR, RMR, SRQ or EP belongs to it.
 */
DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz);

/*
 * Types of memory, and the member of DAT_REGION_DESCRIPTION that describes each. IA and BYPASS are
 * DAT_MODEL_NOT_SUPPORTED: they are memory of the RDMA device, and memory without its protection.
 */
typedef u32 DAT_MEM_TYPE;
#define DAT_MEM_TYPE_VIRTUAL		0	/* for_va */
#define DAT_MEM_TYPE_LMR		0x01	/* for_lmr_handle */
#define DAT_MEM_TYPE_PHYSICAL		0x10	/* for_physical */
#define DAT_MEM_TYPE_PLATFORM		0x20	/* for_platform: struct scatterlist */
#define DAT_MEM_TYPE_IA			0x40	/* for_ia */
#define DAT_MEM_TYPE_BYPASS		0x80
#define DAT_MEM_TYPE_PHYSICAL_VAR_PAGES	0x100	/* for_array */
/* Not of DAT. */
#define KDAPL_MEM_TYPE_BVEC		0x10000	/* for_platform: array of struct bio_vec */

typedef u32 DAT_MEM_PRIV_FLAGS;
#define DAT_MEM_PRIV_NONE_FLAG		0x00
#define DAT_MEM_PRIV_LOCAL_READ_FLAG	0x01
#define DAT_MEM_PRIV_REMOTE_READ_FLAG	0x02
#define DAT_MEM_PRIV_LOCAL_WRITE_FLAG	0x10
#define DAT_MEM_PRIV_REMOTE_WRITE_FLAG	0x20

typedef u32 DAT_VA_TYPE;
#define DAT_VA_TYPE_VA			0
#define DAT_VA_TYPE_ZB			1

typedef u32 DAT_MEM_OPTIMIZE_FLAGS;
#define DAT_MEM_OPTIMIZE_DONT_CARE	0
#define DAT_MEM_OPTIMIZE_IA		1
#define DAT_MEM_OPTIMIZE_MIN_EXPOSURE	2
#define DAT_MEM_OPTIMIZE_EXACT_EXPOSURE	4

/**
 * struct dat_physical_var_pages - physical pages of a chosen size
 * @page_size: size of each page, a power of two, PAGE_SIZE or more
 * @pages: array of DAT_PADDR, the physical address of each page, a multiple of @page_size
 */
typedef struct dat_physical_var_pages {
	DAT_VLEN page_size;
	void *pages;
} DAT_PHYSICAL_VAR_PAGES;
typedef u32 DAT_LMR_SCOPE;
#define DAT_LMR_SCOPE_EP		0
#define DAT_LMR_SCOPE_PZ		1
#define DAT_LMR_SCOPE_ANY		2

/**
 * union dat_region_description - memory of an LMR
 * @for_va: start of memory from kmalloc(), alloc_pages(), vmalloc() or a similar allocator, or of
 *         static data
 * @for_lmr_handle: LMR of the same IA. The new one has the first bytes of its memory, and needs it
 *         no more when the call has returned.
 * @for_platform: struct scatterlist, possibly chained, or the first element of an array of struct
 *         bio_vec. It must not be mapped for DMA. An entry may have several pages.
 * @for_array: see struct dat_physical_var_pages
 * @for_physical: array of the physical address of each page, a multiple of PAGE_SIZE
 * @for_ia: not used
 *
 * A list is read during the call only. It names at least the length of the LMR. Of the last piece
 * that the LMR needs it takes the first bytes.
 */
typedef union dat_region_description {
	void *for_va;
	DAT_LMR_HANDLE for_lmr_handle;
	void *for_platform;
	DAT_PHYSICAL_VAR_PAGES for_array;
	DAT_PADDR *for_physical;
	DAT_PADDR for_ia;
} DAT_REGION_DESCRIPTION;

/* Segment of an LMR. */
typedef struct dat_lmr_triplet {
	DAT_VADDR virtual_address;
	DAT_SEG_LENGTH segment_length;
	DAT_LMR_CONTEXT lmr_context;
} DAT_LMR_TRIPLET;

/* Segment of an RMR of the peer. */
typedef struct dat_rmr_triplet {
	DAT_VADDR virtual_address;
	DAT_SEG_LENGTH segment_length;
	DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_TRIPLET;

typedef struct dat_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_VA_TYPE va_type;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size;
	DAT_VADDR registered_address;
} DAT_LMR_PARAM;

/**
 * dat_ia_memtype_hint() - ask which regions suit the device
 * @ia: IA
 * @mem_type: type of memory
 * @length: length of the region that the consumer needs
 * @optimize: one of DAT_MEM_OPTIMIZE_*; ignored
 * @preferred_length: out: @length in whole pages, or if it is more, the length of the longest LMR
 *         that may have remote privileges; may be NULL
 * @preferred_alignment: out: the start of the region should be a multiple of it; may be NULL
 *
 * An LMR of the preferred length and alignment can have all privileges that the device supports,
 * and zero-based addresses. A longer region needs several of these.
 *
 * Return: DAT_SUCCESS; DAT_MODEL_NOT_SUPPORTED for a type of memory that is not supported;
 * DAT_LENGTH_ERROR if @length is 0 or too large for a number of whole pages; or another error code.
 */
DAT_RETURN dat_ia_memtype_hint(DAT_IA_HANDLE ia, DAT_MEM_TYPE mem_type, DAT_VLEN length,
			       DAT_MEM_OPTIMIZE_FLAGS optimize, DAT_VLEN *preferred_length,
			       DAT_VADDR *preferred_alignment);
/**
 * dat_lmr_kcreate() - create an LMR of kernel memory
 * @ia: IA
 * @mem_type: DAT_MEM_TYPE_* or KDAPL_MEM_TYPE_BVEC
 * @region: the memory
 * @length: length of the region
 * @pz: PZ
 * @privileges: local and remote privileges. Remote ones are DAT_MODEL_NOT_SUPPORTED over iWARP,
 *         and on devices whose work requests cannot register memory.
 * @va_type: DAT_VA_TYPE_VA: addresses begin at the kernel's address of the first byte, and
 *         continue from there wherever the other bytes lie. DAT_VA_TYPE_ZB: addresses begin at 0.
 * @optimize: one of DAT_MEM_OPTIMIZE_*; a hint
 * @lmr: out: the LMR
 * @lmr_context: out: context for local segments
 * @rmr_context: out: context for the peer's remote segments, 0 without remote privileges; may be
 *         NULL. It is valid for all EPs of the PZ, until the LMR is freed or a peer invalidates
 *         it.
 * @registered_size: out: length of the registered memory; may be NULL
 * @registered_address: out: address of the first byte; may be NULL
 *
 * The consumer keeps ownership of the memory. It must not free the memory before the LMR, and the
 * LMRs that were made of it, nor the LMR before the last DTO that uses it has completed.
 *
 * Without remote privileges, each page of memory that is not contiguous counts as one segment of a
 * DTO. With them, a segment of a DTO counts as one, and the LMR has DAT_IA_ATTR.max_rmr_size bytes
 * at most, less a page if it begins within one. Then all pieces but the first must begin at a page
 * boundary, and all but the last end at one; zero-based memory must begin at one.
 *
 * Return: DAT_SUCCESS; DAT_LENGTH_ERROR if @length is 0, more than the machine has, more than the
 * memory that is described, or too much for remote privileges; DAT_INVALID_ADDRESS (malformed) if
 * a part of the region is not mapped or no memory of the machine, or if @privileges has
 * DAT_MEM_PRIV_LOCAL_WRITE_FLAG, or a remote one that includes writes, and a part is text,
 * read-only or the zero page; DAT_INVALID_ADDRESS (unsupported) for memory with remote privileges
 * whose pieces do not meet at page boundaries; or another error code.
 */
DAT_RETURN dat_lmr_kcreate(DAT_IA_HANDLE ia, DAT_MEM_TYPE mem_type,
			   DAT_REGION_DESCRIPTION region, DAT_VLEN length,
			   DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
			   DAT_VA_TYPE va_type, DAT_MEM_OPTIMIZE_FLAGS optimize,
			   DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_size,
			   DAT_VADDR *registered_address);
/**
 * dat_lmr_query() - query the parameters of an LMR
 * @lmr: LMR
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr, u64 mask, DAT_LMR_PARAM *param);
/**
 * dat_lmr_free() - free an LMR
 * @lmr: LMR
 *
 * After success no context of the LMR is valid, and the device does not access the memory. After an
 * error nothing has changed: the memory must stay.
 *
 * Takes completions from the queues of all EPs, whose events are queued, and waits up to 100 ms for
 * requests with DAT_COMPLETION_SUPPRESS_FLAG that use the memory. Posts that name the LMR meanwhile
 * are refused with DAT_PROTECTION_VIOLATION.
 *
 * Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (LMR in use) while a DTO that names
 * memory of dat_lmr_kcreate() is outstanding on an EP or an SRQ, an RMR is bound to the memory, or
 * the completion of dat_lmr_fmr() or dat_lmr_invalidate() is outstanding; DAT_RESERVED_LMR.
 */
DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr);
/**
 * kdapl_lmr_free_unused() - free an LMR that no DTO in flight uses
 * @lmr: LMR
 *
 * As dat_lmr_free(), but does not look for DTOs that name memory of dat_lmr_kcreate(): the caller
 * knows that each of them has completed, or its EP was freed, and that none is being posted. A DTO
 * with
 * DAT_COMPLETION_SUPPRESS_FLAG has completed when a later request of its EP has. If that is wrong,
 * the device accesses memory that the consumer has freed. The cost does not depend on the number of
 * EPs and DTOs, so that a storage target can map memory for each command. Not a call of DAT.
 *
 * Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (LMR in use) while an RMR is bound to the
 * memory, or the completion of dat_lmr_fmr() or dat_lmr_invalidate() is outstanding;
 * DAT_RESERVED_LMR.
 */
DAT_RETURN kdapl_lmr_free_unused(DAT_LMR_HANDLE lmr);

/**
 * dat_lmr_allocate() - create an LMR for memory that requests register and invalidate
 * @ia: IA
 * @pz: PZ
 * @max_pages: number of pages of the longest registration
 * @scope: DAT_LMR_SCOPE_PZ; others are DAT_MODEL_NOT_SUPPORTED
 * @lmr: out: the LMR, which is free: nothing is registered
 *
 * All that dat_lmr_fmr() needs is allocated here.
 *
 * Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code. DAT_LENGTH_ERROR if @max_pages is 0 or more than a region
 * of the device has (max_rmr_size of the IA); DAT_MODEL_NOT_SUPPORTED if work requests of the
 * device cannot register memory.
 */
DAT_RETURN dat_lmr_allocate(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, u32 max_pages, DAT_LMR_SCOPE scope,
			    DAT_LMR_HANDLE *lmr);
/**
 * dat_lmr_fmr() - register memory by a request on the queue of an EP
 * @lmr: LMR of dat_lmr_allocate() that is free
 * @mem_type: DAT_MEM_TYPE_VIRTUAL, _PHYSICAL or _PLATFORM, or KDAPL_MEM_TYPE_BVEC; others are
 *         DAT_MODEL_NOT_SUPPORTED
 * @region: the memory. @region.for_va is a page boundary. A list is read during the call only.
 * @npages: number of pages of PAGE_SIZE, or of entries of the scatterlist or of bio_vecs. All
 *         entries but the first begin at a page boundary, and all but the last end at one.
 * @privileges: DAT_MEM_PRIV_* of this side and of peers
 * @va_type: DAT_VA_TYPE_VA: addresses begin at the kernel's address of the first byte, and
 *         continue from there wherever the other bytes lie. DAT_VA_TYPE_ZB: addresses begin at 0,
 *         and the memory at a page boundary.
 * @ep: connected EP of the same PZ
 * @cookie: cookie of the completion
 * @flags: DAT_COMPLETION_SUPPRESS_FLAG, DAT_COMPLETION_BARRIER_FENCE_FLAG; UNSIGNALLED as of a DTO
 * @lmr_context: out: context for local segments; may be NULL
 * @rmr_context: out: context for the peer's segments; may be NULL
 *
 * Both contexts are valid for every later request of @ep, and for peers that get @rmr_context from
 * one. Other queues, also the receives of @ep, may use them after the completion. The request EVD
 * of
 * @ep gets a DAT_DTO_COMPLETION_EVENT of the operation DAT_DTO_LMR_FMR.
 *
 * The consumer keeps the memory until the completion of an invalidation: of dat_lmr_invalidate(),
 * or of a receive that names @rmr_context as invalidated (DAT_DTO_RECEIVE_WITH_INVALIDATE). The
 * pages are mapped for the device until then. The contexts of the next registration are others, so
 * an old one is not valid again.
 *
 * A completion with another status than DAT_DTO_SUCCESS leaves the LMR free, but the peer may
 * still reach the memory: until the next dat_lmr_fmr() or dat_lmr_free() has returned. That
 * dat_lmr_fmr() replaces the region of the device. It is DAT_INSUFFICIENT_RESOURCES if the caller
 * may not sleep.
 *
 * Context: any.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (LMR in use) if memory is registered or
 * a completion is outstanding, or with the state of an EP that is not connected; DAT_LENGTH_ERROR
 * if
 * @npages is 0 or the memory has more pages than the maximum of the LMR; DAT_INVALID_ADDRESS
 * (malformed) for an address that is no page boundary, not mapped or no memory of the machine, or
 * that shall be written and is text, read-only or the zero page, and for an empty entry;
 * (unsupported) for entries that do not meet at page boundaries; DAT_PROTECTION_VIOLATION for an
 * EP of another PZ; DAT_INVALID_HANDLE (LMR) also for another kind of LMR; DAT_RESERVED_LMR. With
 * an error nothing is registered, and no completion follows.
 */
DAT_RETURN dat_lmr_fmr(DAT_LMR_HANDLE lmr, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region,
		       u32 npages, DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type,
		       DAT_EP_HANDLE ep, DAT_LMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
		       DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context);
/**
 * dat_lmr_invalidate() - end a registration by a request on the queue of an EP
 * @lmr: LMR of dat_lmr_allocate() that is registered
 * @ep: connected EP of the same PZ. While the completion of dat_lmr_fmr() is outstanding, it is the
 *         EP of that call.
 * @cookie: cookie of the completion
 * @flags: as of dat_lmr_fmr(), and DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG. With either fence the
 *         request starts after earlier RDMA Reads of @ep have completed.
 *
 * Posts must not use the LMR context any more, which is refused. The request EVD of @ep gets a
 * DAT_DTO_COMPLETION_EVENT of the operation DAT_DTO_LMR_INVALIDATE. After it, no peer can reach the
 * memory, and the LMR is free. dat_lmr_fmr() says what holds after a failure.
 *
 * Context: any.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (LMR free) if nothing is registered, or
 * the invalidation is outstanding; (LMR in use) if the request could overtake the registration; or
 * with the state of an EP that is not connected; DAT_PROTECTION_VIOLATION for an EP of another PZ;
 * DAT_INVALID_HANDLE (LMR) also for another kind of LMR; DAT_RESERVED_LMR.
 */
DAT_RETURN dat_lmr_invalidate(DAT_LMR_HANDLE lmr, DAT_EP_HANDLE ep, DAT_LMR_COOKIE cookie,
			      DAT_COMPLETION_FLAGS flags);
/**
 * dat_ia_reserved_lmr() - return the LMR of all memory
 * @ia: IA
 * @lmr: out: the reserved LMR, the same in each call. It cannot be freed, and belongs to no PZ
 * @lmr_context: out: context for local segments of any EP of @ia
 *
 * Addresses of its segments are DMA addresses, which the consumer has mapped for the device
 * (ib_dma_map_*()). They are not checked. No peer can use the context, and over iWARP no RDMA Read
 * (DAT_PRIVILEGES_VIOLATION): it would show the peer the key to all memory.
 *
 * Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ia_reserved_lmr(DAT_IA_HANDLE ia, DAT_LMR_HANDLE *lmr,
			       DAT_LMR_CONTEXT *lmr_context);

typedef struct dat_rmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_PZ_HANDLE pz_handle;
	DAT_LMR_TRIPLET lmr_triplet;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_PARAM;

/**
 * dat_rmr_create() - create an RMR, which is not bound
 * @pz: PZ
 * @rmr: out: the RMR
 *
 * Return: DAT_SUCCESS or an error code. DAT_MODEL_NOT_SUPPORTED if work requests of the device
 * cannot register memory.
 */
DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr);
/**
 * dat_rmr_query() - query the parameters of an RMR
 * @rmr: RMR
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr, u64 mask, DAT_RMR_PARAM *param);
/**
 * dat_rmr_bind() - open a part of an LMR to the peers of its PZ, or end that
 * @rmr: RMR
 * @lmr: LMR of the same PZ; ignored by an unbind
 * @local: part of the LMR; a length of 0 unbinds the RMR
 * @privileges: DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_MEM_PRIV_REMOTE_WRITE_FLAG or both. Each requires
 *         the local privilege of the LMR.
 * @va_type: DAT_VA_TYPE_VA; others are DAT_MODEL_NOT_SUPPORTED
 * @ep: connected EP of the same PZ, to whose request queue the bind is posted
 * @cookie: cookie of the completion
 * @flags: completion flags, as of a DTO
 * @rmr_context: out: context for the peer's remote segments, 0 after an unbind; may be NULL
 *
 * Any request that is posted to @ep afterwards finds the context valid, so that the consumer can
 * send it to the peer at once. A context of an earlier bind ends with the call, as for
 * dat_rmr_free(). The request EVD of @ep gets a DAT_RMR_BIND_COMPLETION_EVENT.
 *
 * The LMR cannot be freed (DAT_INVALID_STATE) while the RMR is bound, and until the bind has
 * completed.
 *
 * Context: process; sleeps, because each bind makes a region of the device. dat_lmr_fmr() opens
 * memory to peers in any context.
 *
 * Return: DAT_SUCCESS or an error code. DAT_LENGTH_ERROR if the part has more pages than a region
 * of the device; DAT_PROTECTION_VIOLATION for another PZ or a part that is not within the LMR.
 */
DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *local,
			DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, DAT_EP_HANDLE ep,
			DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
			DAT_RMR_CONTEXT *rmr_context);
/**
 * dat_rmr_free() - free an RMR
 * @rmr: RMR
 *
 * On return, the context of a bind is not valid any more. The call waits for a bind that was not
 * carried out yet. If the peer holds it up for a second, the connection of its EP is broken.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr);

/*
 * Event Dispatchers.
 */
typedef u32 DAT_EVD_FLAGS;
#define DAT_EVD_SOFTWARE_FLAG		0x001
#define DAT_EVD_CR_FLAG			0x010
#define DAT_EVD_DTO_FLAG		0x020
#define DAT_EVD_CONNECTION_FLAG		0x040
#define DAT_EVD_RMR_BIND_FLAG		0x080
#define DAT_EVD_ASYNC_FLAG		0x100

typedef u32 DAT_EVD_STATE;
#define DAT_EVD_STATE_ENABLED		0x01
#define DAT_EVD_STATE_DISABLED		0x02
#define DAT_EVD_STATE_WAITABLE		0x04
#define DAT_EVD_STATE_UNWAITABLE	0x08

/* Policy for upcalls of an EVD; docs/kernel-api.md describes the guarantees of each. */
typedef s32 DAT_UPCALL_POLICY;
#define DAT_UPCALL_DISABLE		0	/* no upcalls */
#define DAT_UPCALL_SINGLE_INSTANCE	1	/* one at a time, each with an event */
#define DAT_UPCALL_NOTIFY		2	/* one at a time, without an event */
#define DAT_UPCALL_NORIFY		DAT_UPCALL_NOTIFY /* spelling of older headers */
#define DAT_UPCALL_MANY			100	/* several at a time, each with an event */
#define DAT_UPCALL_TEARDOWN		(-1)	/* no upcalls; waits for those in progress */

/*
 * Upcall of an EVD. Context: work item. May sleep, and may make any call except those that wait for
 * it to return (see dat_ia_close(), dat_evd_free() and dat_evd_modify_upcall()).
 *
 * @event is valid until the upcall returns. It is NULL under DAT_UPCALL_NOTIFY. @more_events is set
 * if further events are queued.
 */
typedef void (*DAT_UPCALL_FUNC)(void *instance_data, const DAT_EVENT *event,
				DAT_BOOLEAN more_events);

typedef struct dat_upcall_object {
	void *instance_data;
	DAT_UPCALL_FUNC upcall_func;
} DAT_UPCALL_OBJECT;

#define DAT_UPCALL_SAME			((const DAT_UPCALL_OBJECT *)NULL)

typedef u32 DAT_UPCALL_FLAG;
#define DAT_UPCALL_INVOC_NEW		0	/* only for events that arrive from now on */
#define DAT_UPCALL_INVOC_ANY		1	/* also for events that are queued already */

typedef struct dat_evd_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COUNT evd_qlen;
	DAT_EVD_STATE evd_state;
	DAT_CNO_HANDLE cno_handle;
	DAT_EVD_FLAGS evd_flags;
	DAT_UPCALL_POLICY upcall_policy;
} DAT_EVD_PARAM;

/**
 * dat_evd_kcreate() - create an EVD
 * @ia: IA
 * @qlen: minimum queue length, in events
 * @policy: upcalls that the EVD makes
 * @upcall: function for the upcalls; may be NULL with DAT_UPCALL_DISABLE
 * @flags: event streams that may feed the EVD, a mask of DAT_EVD_*_FLAG
 * @evd: out: the EVD
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_kcreate(DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
			   const DAT_UPCALL_OBJECT *upcall, DAT_EVD_FLAGS flags,
			   DAT_EVD_HANDLE *evd);
/**
 * dat_evd_modify_upcall() - change the upcall policy and the upcall function of an EVD
 * @evd: EVD
 * @policy: upcalls that the EVD makes from now on
 * @upcall: new upcall function, or DAT_UPCALL_SAME to keep the current one
 * @flag: whether events that are queued already cause upcalls (DAT_UPCALL_INVOC_*)
 *
 * Upcalls in progress complete with the function that they began with. Only DAT_UPCALL_TEARDOWN
 * waits for them.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE while a thread waits on the EVD, or if an
 * upcall of the same EVD asks for DAT_UPCALL_TEARDOWN.
 */
DAT_RETURN dat_evd_modify_upcall(DAT_EVD_HANDLE evd, DAT_UPCALL_POLICY policy,
				 const DAT_UPCALL_OBJECT *upcall, DAT_UPCALL_FLAG flag);
/**
 * dat_evd_query() - query the parameters of an EVD
 * @evd: EVD
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd, u64 mask, DAT_EVD_PARAM *param);
/**
 * dat_evd_modify_cno() - change the CNO that an EVD triggers
 * @evd: EVD
 * @cno: CNO of the same IA; DAT_HANDLE_NULL for none
 *
 * A trigger that no waiter has taken yet moves to @cno.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno);
/**
 * dat_evd_enable() - let an EVD trigger its CNO
 * @evd: EVD
 *
 * If events are queued, the CNO is triggered at once. EVDs are created enabled.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd);
/**
 * dat_evd_disable() - do not let an EVD trigger its CNO
 * @evd: EVD
 *
 * Events are queued as before. Waits and upcalls are not affected.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd);
/**
 * dat_evd_set_unwaitable() - refuse waits on an EVD
 * @evd: EVD
 *
 * dat_evd_wait() is DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_UNWAITABLE) until
 * dat_evd_clear_unwaitable(). A thread that waits already is woken with that error.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd);
/**
 * dat_evd_clear_unwaitable() - allow waits on an EVD again
 * @evd: EVD
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd);
/**
 * dat_evd_wait() - wait for events and take the oldest
 * @evd: EVD
 * @timeout: time to wait, or DAT_TIMEOUT_INFINITE
 * @threshold: number of events to wait for
 * @event: out: the oldest event
 * @nmore: out: number of events left in the queue. May be NULL, which is cheaper: the call then
 *         need not drain the completion queues.
 *
 * A signal ends the wait if the calling thread accepts signals.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INTERRUPTED_CALL after a signal; DAT_INVALID_STATE for
 * an EVD that makes upcalls.
 */
DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			DAT_EVENT *event, DAT_COUNT *nmore);
/**
 * dat_evd_dequeue() - take the oldest event of an EVD, without waiting
 * @evd: EVD
 * @event: out: the event, which belongs to the caller. Pointers in it are valid as the data of the
 *         event say.
 *
 * Each event is delivered once: to this call, to a wait, or to an upcall. Any number of threads may
 * dequeue.
 *
 * Return: DAT_SUCCESS or an error code. DAT_QUEUE_EMPTY if there is no event.
 */
DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event);
/**
 * dat_evd_resize() - change the queue length of an EVD
 * @evd: EVD
 * @qlen: new minimum queue length, in events
 *
 * Queued events stay, in their order.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE if more than @qlen events are queued.
 */
DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT qlen);
/**
 * dat_evd_post_se() - queue a software event
 * @evd: EVD that was created with DAT_EVD_SOFTWARE_FLAG
 * @event: event whose event_number is DAT_SOFTWARE_EVENT. Of its data, software_event_data.pointer
 *         is kept, and never dereferenced.
 *
 * Return: DAT_SUCCESS or an error code. DAT_QUEUE_FULL if the queue has no room for a software
 * event.
 */
DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd, const DAT_EVENT *event);
/**
 * dat_evd_free() - free an EVD
 * @evd: EVD
 *
 * On return, no upcall of the EVD is in progress.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE if an upcall of the EVD makes the call.
 */
DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd);

/*
 * Consumer Notification Objects.
 */

/*
 * Proxy agent of a Consumer Notification Object (CNO), called for each trigger. Context: that of
 * the event, possibly hard interrupt with spinlocks held. The agent must not sleep, must not make
 * any call of this header, and must not take a lock under which the consumer posts. It may wake a
 * thread or queue work. @evd is the EVD that triggered
 * the CNO; it is NULL for dat_cno_trigger().
 */
typedef void (*DAT_AGENT_FUNC)(void *instance_data, DAT_EVD_HANDLE evd);

typedef struct dat_os_wait_proxy_agent {
	void *instance_data;
	DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;

#define DAT_OS_WAIT_PROXY_AGENT_NULL	((DAT_OS_WAIT_PROXY_AGENT){ NULL, NULL })

typedef u32 DAT_CNO_PROXY_TYPE;
#define DAT_PROXY_TYPE_NONE		0
#define DAT_PROXY_TYPE_AGENT		1

typedef struct dat_cno_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CNO_PROXY_TYPE proxy_type;
} DAT_CNO_PARAM;

/**
 * dat_cno_create() - create a CNO
 * @ia: IA
 * @agent: agent that is called for each trigger, or DAT_OS_WAIT_PROXY_AGENT_NULL. Its function and
 *         its data must stay valid until dat_cno_free() or dat_cno_modify_agent() has returned.
 * @cno: out: the CNO
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent,
			  DAT_CNO_HANDLE *cno);
/**
 * dat_cno_modify_agent() - replace the proxy agent of a CNO
 * @cno: CNO
 * @agent: new agent, or DAT_OS_WAIT_PROXY_AGENT_NULL for none
 *
 * On return, the old agent is not called any more.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent);
/**
 * dat_cno_query() - query the parameters of a CNO
 * @cno: CNO
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno, u64 mask, DAT_CNO_PARAM *param);
/**
 * dat_cno_wait() - wait for a trigger of a CNO
 * @cno: CNO
 * @timeout: time to wait, or DAT_TIMEOUT_INFINITE
 * @evd: out: EVD that triggered the CNO; DAT_HANDLE_NULL after dat_cno_trigger()
 *
 * Return: DAT_SUCCESS or an error code. DAT_QUEUE_EMPTY if the time-out expires.
 */
DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd);
/**
 * dat_cno_trigger() - trigger a CNO as an EVD does
 * @cno: CNO
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cno_trigger(DAT_CNO_HANDLE cno);
/**
 * dat_cno_free() - free a CNO
 * @cno: CNO
 *
 * On return, the agent is not called any more.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (DAT_INVALID_STATE_CNO_IN_USE) while an
 * EVD triggers the CNO, or a thread waits for it.
 */
DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno);

/*
 * Endpoints.
 */
typedef u32 DAT_QOS;
#define DAT_QOS_BEST_EFFORT		0
#define DAT_QOS_HIGH_THROUGHPUT		1
#define DAT_QOS_LOW_LATENCY		2
#define DAT_QOS_ECONOMY			4
#define DAT_QOS_PREMIUM			8

typedef u32 DAT_CONNECT_FLAGS;
#define DAT_CONNECT_DEFAULT_FLAG		0
#define DAT_CONNECT_MULTIPATH_REQUESTED_FLAG	1
#define DAT_CONNECT_MULTIPATH_REQUIRED_FLAG	2

typedef u32 DAT_EP_STATE;
#define DAT_EP_STATE_UNCONNECTED			0
#define DAT_EP_STATE_UNCONFIGURED_UNCONNECTED		1
#define DAT_EP_STATE_RESERVED				2
#define DAT_EP_STATE_UNCONFIGURED_RESERVED		3
#define DAT_EP_STATE_PASSIVE_CONNECTION_PENDING		4
#define DAT_EP_STATE_UNCONFIGURED_PASSIVE		5
#define DAT_EP_STATE_ACTIVE_CONNECTION_PENDING		6
#define DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING	7
#define DAT_EP_STATE_UNCONFIGURED_TENTATIVE		8
#define DAT_EP_STATE_CONNECTED				9
#define DAT_EP_STATE_DISCONNECT_PENDING			10
#define DAT_EP_STATE_DISCONNECTED			11
#define DAT_EP_STATE_COMPLETION_PENDING			12
#define DAT_EP_STATE_CONNECTED_SINGLE_PATH		13
#define DAT_EP_STATE_CONNECTED_MULTI_PATH		14

typedef u32 DAT_SERVICE_TYPE;
#define DAT_SERVICE_TYPE_RC		0

/*
 * Attributes of an EP. A numeric member of 0 selects the default, except in max_rdma_read_in and
 * max_rdma_read_out, where it allows no RDMA Reads and no atomic operations. The attributes of
 * dat_ep_create() may be NULL: all defaults.
 */
typedef struct dat_ep_attr {
	DAT_SERVICE_TYPE service_type;
	DAT_SEG_LENGTH max_message_size;
	DAT_SEG_LENGTH max_rdma_size;
	DAT_QOS qos;
	DAT_COMPLETION_FLAGS recv_completion_flags;
	DAT_COMPLETION_FLAGS request_completion_flags;
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_request_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT max_request_iov;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_COUNT max_rdma_read_iov;
	DAT_COUNT max_rdma_write_iov;
} DAT_EP_ATTR;

typedef u64 DAT_EP_PARAM_MASK;
#define DAT_EP_FIELD_IA_HANDLE				0x00000001
#define DAT_EP_FIELD_EP_STATE				0x00000002
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR		0x00000008
#define DAT_EP_FIELD_LOCAL_PORT_QUAL			0x00000010
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR		0x00000020
#define DAT_EP_FIELD_REMOTE_PORT_QUAL			0x00000040
#define DAT_EP_FIELD_PZ_HANDLE				0x00000080
#define DAT_EP_FIELD_RECV_EVD_HANDLE			0x00000100
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE			0x00000200
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE			0x00000400
#define DAT_EP_FIELD_SRQ_HANDLE				0x00000800
#define DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE		0x00001000
#define DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE		0x00002000
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE		0x00004000
#define DAT_EP_FIELD_EP_ATTR_QOS			0x00008000
#define DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS	0x00010000
#define DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS	0x00020000
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS		0x00040000
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS		0x00080000
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV		0x00100000
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV		0x00200000
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN		0x00400000
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT		0x00800000
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV		0x02000000
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV		0x04000000
#define DAT_EP_FIELD_ALL				0x7fffffff

/**
 * struct dat_ep_param - parameters of an EP
 * @ia_handle: IA of the EP
 * @ep_state: state of the EP
 * @local_ia_address_ptr: local address, of family 0 if it is not known; valid until the EP is freed
 *         or connects again. If another thread may end it meanwhile, use kdapl_ep_addresses(), which
 *         copies the addresses.
 * @local_port_qual: local port of the connection, or 0
 * @remote_ia_address_ptr: address of the peer, of family 0 if it is not known; valid as long as
 *         @local_ia_address_ptr
 * @remote_port_qual: connection qualifier that the EP connected to, or port of the accepted request
 * @pz_handle: PZ, or DAT_HANDLE_NULL
 * @recv_evd_handle: EVD for completions of receives, or DAT_HANDLE_NULL
 * @request_evd_handle: EVD for completions of all other DTOs, or DAT_HANDLE_NULL
 * @connect_evd_handle: EVD for connection events, or DAT_HANDLE_NULL
 * @srq_handle: SRQ that the receives come from, or DAT_HANDLE_NULL
 * @ep_attr: attributes
 */
typedef struct dat_ep_param {
	DAT_IA_HANDLE ia_handle;
	DAT_EP_STATE ep_state;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_PORT_QUAL local_port_qual;
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_PZ_HANDLE pz_handle;
	DAT_EVD_HANDLE recv_evd_handle;
	DAT_EVD_HANDLE request_evd_handle;
	DAT_EVD_HANDLE connect_evd_handle;
	DAT_SRQ_HANDLE srq_handle;
	DAT_EP_ATTR ep_attr;
} DAT_EP_PARAM;

/**
 * dat_ep_create() - create an EP
 * @ia: IA
 * @pz: PZ
 * @recv_evd: EVD for completions of receives
 * @request_evd: EVD for completions of all other DTOs
 * @connect_evd: EVD for connection events
 * @attr: attributes; may be NULL for the defaults
 * @ep: out: the EP
 *
 * @pz may be DAT_HANDLE_NULL. dat_ep_modify() must supply it before the EP connects. An EVD may be
 * DAT_HANDLE_NULL: its events are discarded, but without @connect_evd the failure of a connection
 * is DAT_ASYNC_ERROR_EP_BROKEN.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
			 DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
			 const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep);
/**
 * dat_ep_create_with_srq() - create an EP that takes its receives from an SRQ
 * @ia: IA
 * @pz: PZ, which must be that of the SRQ
 * @recv_evd: EVD for completions of receives
 * @request_evd: EVD for completions of all other DTOs
 * @connect_evd: EVD for connection events
 * @srq: SRQ
 * @attr: attributes; may be NULL for the defaults. Those of receives have no effect.
 * @ep: out: the EP
 *
 * dat_ep_post_recv() is DAT_INVALID_STATE on such an EP.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
				  DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
				  DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep);
/**
 * dat_ep_query() - query the parameters of an EP
 * @ep: EP
 * @mask: a mask of DAT_EP_FIELD_*; all parameters are returned
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_PARAMETER (argument 2) for another bit in
 * @mask.
 */
DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param);
/**
 * dat_ep_modify() - change the PZ, the EVDs and the attributes of an EP
 * @ep: EP
 * @mask: members of @param to change, a mask of DAT_EP_FIELD_*
 * @param: new values; an EVD may be DAT_HANDLE_NULL, as in dat_ep_create()
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param);
/**
 * dat_ep_connect() - connect an EP to a service point
 * @ep: unconnected EP that has a PZ
 * @remote_address: address of the peer. Its port is ignored; see @conn_qual.
 * @conn_qual: connection qualifier that the peer listens for
 * @timeout: time to connect, or DAT_TIMEOUT_INFINITE; not 0
 * @private_data_size: size of @private_data
 * @private_data: private data of the request, copied; may be NULL if there are none
 * @qos: quality of service, a mask of DAT_QOS_*
 * @flags: DAT_CONNECT_DEFAULT_FLAG; several paths are DAT_MODEL_NOT_SUPPORTED
 *
 * The call does not wait for the connection. One event of the connect EVD reports its outcome:
 * ESTABLISHED, or one of PEER_REJECTED, NON_PEER_REJECTED, TIMED_OUT and UNREACHABLE. Then, and
 * after a disconnect, dat_ep_reset() prepares the EP for the next connection.
 *
 * Return: DAT_SUCCESS or an error code, with which no event follows. DAT_INVALID_STATE with the
 * state of an EP that is not unconnected.
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
 * dat_ep_get_status() - query the state of an EP and whether it is idle
 * @ep: EP
 * @state: out: state of the EP; may be NULL
 * @recv_idle: out: DAT_TRUE if no receive is outstanding; may be NULL
 * @request_idle: out: DAT_TRUE if no other DTO is outstanding; may be NULL
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep, DAT_EP_STATE *state,
			     DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle);
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
/**
 * dat_ep_set_watermark() - limit the receive buffers that an EP has
 * @ep: EP
 * @soft_high: number of buffers, or DAT_WATERMARK_INFINITE. One event DAT_ASYNC_ERROR_EP_BROKEN
 *         with the reason DAT_EP_SOFT_HIGH_WATERMARK_EVENT reports that the EP has more. The
 *         connection stays.
 * @hard_high: number of buffers, or DAT_WATERMARK_INFINITE. The connection breaks when the EP has
 *         more.
 *
 * A receive that has completed counts until its event is dequeued. Either watermark may be
 * exceeded during this call. Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep, DAT_COUNT soft_high, DAT_COUNT hard_high);
/**
 * dat_ep_recv_query() - query the receive buffers that an EP has
 * @ep: EP
 * @allocated: out: number of receives that are posted to the EP, and of those that have completed
 *         and whose event was not dequeued. Receives of an SRQ belong to an EP once they have
 *         completed. May be NULL.
 * @span: out: number of messages from the oldest to the newest of these buffers; may be NULL
 *
 * Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep, DAT_COUNT *allocated, DAT_COUNT *span);
/**
 * dat_ep_reset() - make a disconnected EP unconnected
 * @ep: disconnected or unconnected EP. Of an unconnected one nothing changes.
 *
 * On return, the device accesses no buffer of an earlier DTO. DTOs that are outstanding are
 * reported as DAT_DTO_ERR_FLUSHED as far as the EVD has room, and have no event otherwise. Queued
 * events stay.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE with the state of an EP that is neither;
 * DAT_INSUFFICIENT_RESOURCES, which leaves the EP disconnected.
 */
DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep);
/**
 * dat_ep_free() - free an EP
 * @ep: EP in any state but those of a service point or a connection request
 *
 * Ends a connection without an event. On return, the device accesses no buffer of the EP's DTOs,
 * so that their memory may be freed. DTOs whose events are not queued yet have none. Queued events
 * stay, with a handle that is stale.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE while the EP is reserved for a service
 * point, or came with a request that is not answered.
 */
DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep);

/*
 * Posts of DTOs. @local may be NULL if @segments is 0. The caller may reuse the array of segments
 * when a call returns.
 *
 * Context: any. A receive on an EP that is not connected yet is DAT_INVALID_STATE if the caller may
 * not sleep. If the caller may not sleep, a post does not look for slots that requests with
 * DAT_COMPLETION_SUPPRESS_FLAG have left: it is DAT_INSUFFICIENT_RESOURCES until completions of the
 * request EVD were taken, by a dequeue, a wait or upcalls.
 */

/**
 * dat_ep_post_send() - send a message to a receive of the peer
 * @ep: connected EP
 * @segments: number of segments; 0 for a message without data
 * @local: segments, of LMRs of the EP's PZ with DAT_MEM_PRIV_LOCAL_READ_FLAG
 * @cookie: cookie of the completion
 * @flags: completion flags
 *
 * The consumer does not change or free the memory before the completion. That one, on the request
 * EVD, says that the peer's device has the message. On an EP that was disconnected by now the DTO
 * is flushed.
 *
 * Return: DAT_SUCCESS or an error code, with which nothing is posted and no event follows.
 * DAT_INSUFFICIENT_RESOURCES if max_request_dtos are outstanding; DAT_INVALID_STATE with the state
 * of an EP that was not connected yet; DAT_PROTECTION_VIOLATION, DAT_PRIVILEGES_VIOLATION or
 * DAT_LENGTH_ERROR for a segment.
 */
DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT segments, const DAT_LMR_TRIPLET *local,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
/**
 * dat_ep_post_send_with_invalidate() - send, and invalidate an RMR context of the peer
 * @ep: EP
 * @segments: number of segments
 * @local: segments
 * @cookie: cookie of the completion
 * @flags: completion flags
 * @invalidate: DAT_FALSE for a send that invalidates nothing
 * @rmr_context: context that the peer has got by binding an RMR
 *
 * The peer's receive completes as DAT_DTO_RECEIVE_WITH_INVALIDATE. An invalid context ends the
 * connection.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT segments,
					    const DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
					    DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					    DAT_RMR_CONTEXT rmr_context);
/**
 * dat_ep_post_recv() - post a receive
 * @ep: EP without an SRQ, also one that is not connected yet
 * @segments: number of segments
 * @local: segments, of LMRs of the EP's PZ with DAT_MEM_PRIV_LOCAL_WRITE_FLAG
 * @cookie: cookie of the completion
 * @flags: completion flags
 *
 * Each message of the peer takes the oldest receive. A message that is longer than it, or finds
 * none, ends the connection. The consumer does not access or free the memory before the
 * completion, on the receive EVD.
 *
 * Return: DAT_SUCCESS or an error code, as of dat_ep_post_send(). DAT_INSUFFICIENT_RESOURCES if
 * max_recv_dtos are outstanding; DAT_INVALID_STATE for an EP with an SRQ.
 */
DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT segments, const DAT_LMR_TRIPLET *local,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
/**
 * dat_ep_post_rdma_write() - write to memory of the peer
 * @ep: connected EP
 * @segments: number of segments
 * @local: segments, with DAT_MEM_PRIV_LOCAL_READ_FLAG
 * @cookie: cookie of the completion
 * @remote: memory of the peer, which it has opened for remote writes. Its length limits the
 *         transfer; 0 is no limit.
 * @flags: completion flags
 *
 * The peer has no event. If it refuses the access, the completion is DAT_DTO_ERR_REMOTE_ACCESS,
 * and the connection ends.
 *
 * Return: DAT_SUCCESS or an error code, as of dat_ep_post_send().
 */
DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT segments,
				  const DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
				  const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);
/**
 * dat_ep_post_rdma_read() - read memory of the peer
 * @ep: connected EP whose max_rdma_read_out is not 0
 * @segments: number of segments
 * @local: segments, with DAT_MEM_PRIV_LOCAL_WRITE_FLAG
 * @cookie: cookie of the completion
 * @remote: memory of the peer, which it has opened for remote reads. Its length limits the
 *         transfer; 0 is no limit.
 * @flags: completion flags
 *
 * The data are in @local when the completion is a success. Over iWARP memory of the kernel is
 * DAT_PRIVILEGES_VIOLATION here: see dat_ep_post_rdma_read_to_rmr().
 *
 * Return: DAT_SUCCESS or an error code, as of dat_ep_post_send().
 */
DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT segments,
				 const DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
				 const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);
/**
 * dat_ep_post_rdma_read_to_rmr() - read the peer's memory into memory that an RMR is bound to
 * @ep: EP
 * @local: segment with the context of an RMR of the EP's PZ, bound with
 *	DAT_MEM_PRIV_REMOTE_WRITE_FLAG
 * @cookie: cookie of the completion, whose operation is DAT_DTO_RDMA_READ
 * @remote: segment of the peer's memory
 * @flags: completion flags
 *
 * It is posted after the bind on the same EP, or after the bind's completion on another EP. Over
 * iWARP this is the way to read into kernel memory: the peer learns a key to @local, and can write
 * there while the RMR is bound.
 *
 * Context: any.
 *
 * Return: DAT_SUCCESS or an error code; DAT_PROTECTION_VIOLATION if no RMR is bound with this
 * context, or @local exceeds what it is bound to; DAT_PRIVILEGES_VIOLATION without the privilege.
 */
DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local,
					DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					DAT_COMPLETION_FLAGS flags);

/**
 * struct dat_list_dto - DTO of a list
 * @operation: DAT_DTO_SEND, KDAPL_DTO_SEND_WITH_INVALIDATE, DAT_DTO_RECEIVE, DAT_DTO_RDMA_WRITE or
 *         DAT_DTO_RDMA_READ
 * @flags: completion flags
 * @segments: number of segments
 * @local: segments; may be NULL if @segments is 0
 * @cookie: cookie of the completion
 * @remote: memory of the peer, for an RDMA operation. Of a send with invalidate, its context is the
 *         one to invalidate.
 */
typedef struct dat_list_dto {
	DAT_DTOS operation;
	DAT_COMPLETION_FLAGS flags;
	DAT_COUNT segments;
	const DAT_LMR_TRIPLET *local;
	DAT_DTO_COOKIE cookie;
	DAT_RMR_TRIPLET remote;
} DAT_LIST_DTO;

/**
 * kdapl_ep_post_list() - post several DTOs
 * @ep: EP
 * @count: number of DTOs
 * @list: DTOs, which are posted in this order
 * @posted: out: number of DTOs that were posted, also if the call fails; may be NULL
 *
 * Stops at the first DTO that is refused, with the error of its own call. If that is
 * DAT_INVALID_PARAMETER, the argument is 3. The device is notified once for several requests
 * or receives, so a list costs less than its DTOs one by one. Not a call of DAT.
 *
 * Context: any, as of a single post.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN kdapl_ep_post_list(DAT_EP_HANDLE ep, DAT_COUNT count, const DAT_LIST_DTO *list,
			      DAT_COUNT *posted);

/*
 * Shared Receive Queues: receives that any of several EPs takes.
 */
#define DAT_SRQ_LW_DEFAULT		0

typedef u32 DAT_SRQ_STATE;
#define DAT_SRQ_STATE_ERROR		0
#define DAT_SRQ_STATE_OPERATIONAL	1
#define DAT_SRQ_STATE_SHUTDOWN		2

/**
 * struct dat_srq_attr - attributes of an SRQ
 * @max_recv_dtos: number of receives that the SRQ holds
 * @max_recv_iov: maximum number of segments of a receive
 * @low_watermark: DAT_SRQ_LW_DEFAULT, as there are no receives yet; see dat_srq_set_lw()
 */
typedef struct dat_srq_attr {
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
} DAT_SRQ_ATTR;

/**
 * struct dat_srq_param - parameters of an SRQ
 * @ia_handle: IA of the SRQ
 * @srq_state: DAT_SRQ_STATE_OPERATIONAL
 * @pz_handle: PZ
 * @max_recv_dtos: number of receives that the SRQ holds
 * @max_recv_iov: maximum number of segments of a receive
 * @low_watermark: low watermark, or 0
 * @available_dto_count: number of receives that an EP may take
 * @outstanding_dto_count: number of receives whose event the consumer has not taken
 */
typedef struct dat_srq_param {
	DAT_IA_HANDLE ia_handle;
	DAT_SRQ_STATE srq_state;
	DAT_PZ_HANDLE pz_handle;
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
	DAT_COUNT available_dto_count;
	DAT_COUNT outstanding_dto_count;
} DAT_SRQ_PARAM;

/**
 * dat_srq_create() - create an SRQ
 * @ia: IA
 * @pz: PZ
 * @attr: attributes
 * @srq: out: the SRQ
 *
 * Return: DAT_SUCCESS or an error code. DAT_MODEL_NOT_SUPPORTED if the device has no SRQs.
 */
DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, const DAT_SRQ_ATTR *attr,
			  DAT_SRQ_HANDLE *srq);
/**
 * dat_srq_post_recv() - post a receive to an SRQ
 * @srq: SRQ
 * @segments: number of segments
 * @local: segments; may be NULL if @segments is 0
 * @cookie: cookie of the completion
 *
 * Context: any. If the caller may not sleep, slots of receives that were lost with their connection
 * are not looked for.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INSUFFICIENT_RESOURCES if the SRQ is full.
 */
DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT segments, const DAT_LMR_TRIPLET *local,
			     DAT_DTO_COOKIE cookie);
/**
 * dat_srq_query() - query the parameters of an SRQ
 * @srq: SRQ
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq, u64 mask, DAT_SRQ_PARAM *param);
/**
 * dat_srq_resize() - change the number of receives that an SRQ holds
 * @srq: SRQ
 * @qlen: new number
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE if more receives are outstanding, or
 * below the low watermark; DAT_MODEL_NOT_SUPPORTED if the driver cannot lengthen the SRQ.
 */
DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT qlen);
/**
 * dat_srq_set_lw() - set the low watermark of an SRQ
 * @srq: SRQ
 * @low_watermark: number of receives; 0 turns the watermark off
 *
 * When fewer receives are available, the asynchronous EVD gets one event, with the SRQ as its
 * object and the reason DAT_SRQ_LOW_WATERMARK_EVENT. Its number is DAT_ASYNC_ERROR_EP_BROKEN, as
 * DAT has none for SRQs.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT low_watermark);
/**
 * dat_srq_free() - free an SRQ
 * @srq: SRQ
 *
 * Receives that no EP has taken are dropped without events.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE while an EP uses the SRQ.
 */
DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq);

/*
 * Service points and requests.
 */
typedef u32 DAT_PSP_FLAGS;
#define DAT_PSP_CONSUMER_FLAG		0	/* the consumer supplies the EP of each accept */
#define DAT_PSP_PROVIDER_FLAG		1	/* each request comes with a new EP */

typedef struct dat_psp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_PSP_FLAGS psp_flags;
} DAT_PSP_PARAM;

typedef struct dat_rsp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_EP_HANDLE ep_handle;
} DAT_RSP_PARAM;

/* Protocol of a CSP. Each member is 0 or that of a stream socket of the address's family. */
typedef struct dat_comm {
	u32 domain;
	u32 type;
	u32 protocol;
} DAT_COMM;

/**
 * struct dat_csp_param - parameters of a CSP
 * @ia_handle: IA of the CSP
 * @comm: protocol
 * @address: address that the CSP listens at, including the port
 * @evd_handle: EVD for connection requests
 */
typedef struct dat_csp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COMM comm;
	struct __kernel_sockaddr_storage address;
	DAT_EVD_HANDLE evd_handle;
} DAT_CSP_PARAM;

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
 * dat_psp_create() - create a Public Service Point (PSP)
 * @ia: IA
 * @conn_qual: connection qualifier to listen for
 * @evd: EVD for connection requests, created with DAT_EVD_CR_FLAG
 * @flags: DAT_PSP_CONSUMER_FLAG or DAT_PSP_PROVIDER_FLAG
 * @psp: out: the PSP
 *
 * Return: DAT_SUCCESS or an error code. DAT_CONN_QUAL_IN_USE if another service point listens for
 * @conn_qual.
 */
DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EVD_HANDLE evd,
			  DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp);
/**
 * dat_psp_create_any() - create a PSP with a free connection qualifier
 * @ia: IA
 * @conn_qual: out: connection qualifier of the PSP
 * @evd: as of dat_psp_create()
 * @flags: as of dat_psp_create()
 * @psp: out: the PSP
 *
 * Return: DAT_SUCCESS or an error code. DAT_CONN_QUAL_UNAVAILABLE if none is free.
 */
DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *conn_qual, DAT_EVD_HANDLE evd,
			      DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp);
/**
 * dat_psp_query() - query the parameters of a PSP
 * @psp: PSP
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp, u64 mask, DAT_PSP_PARAM *param);
/**
 * dat_psp_free() - free a PSP
 * @psp: PSP
 *
 * No request arrives any more. Those that have arrived stay, and may be answered.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp);
/**
 * dat_rsp_create() - create a Reserved Service Point (RSP)
 * @ia: IA
 * @conn_qual: connection qualifier to listen for
 * @ep: EP reserved for the request; DAT_HANDLE_NULL to have the request come with a new EP
 * @evd: EVD for the connection request
 * @rsp: out: the RSP
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep,
			  DAT_EVD_HANDLE evd, DAT_RSP_HANDLE *rsp);
/**
 * dat_rsp_query() - query the parameters of an RSP
 * @rsp: RSP
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp, u64 mask, DAT_RSP_PARAM *param);
/**
 * dat_rsp_free() - free an RSP
 * @rsp: RSP
 *
 * No request arrives any more, and the EP is reserved no more. Those that have arrived stay, and
 * may be answered.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp);
/**
 * dat_csp_create() - create a CSP
 * @ia: IA
 * @comm: protocol
 * @address: address to listen at. With port 0 the CSP listens at a free port, which dat_csp_query()
 *         returns.
 * @evd: EVD for connection requests
 * @csp: out: the CSP
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia, const DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			  DAT_EVD_HANDLE evd, DAT_CSP_HANDLE *csp);
/**
 * dat_csp_query() - query the parameters of a CSP
 * @csp: CSP
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp, u64 mask, DAT_CSP_PARAM *param);
/**
 * dat_csp_free() - free a CSP
 * @csp: CSP
 *
 * No request arrives any more. Those that have arrived stay, and may be answered.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp);

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
 * @conn_qual: connection qualifier of a service point of this machine, also of another consumer
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL conn_qual);

#endif /* _RDMA_KDAT_H */

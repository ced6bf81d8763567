/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Events of an Event Dispatcher (EVD), and the completions of data transfer operations. */
#ifndef _RDMA_KDAT_EVENT_H
#define _RDMA_KDAT_EVENT_H

#include <rdma/kdat/types.h>

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
 * Operation of kdapl_ep_post_list() only; its completion is DAT_DTO_SEND. Not of DAT. The user's
 * header defines the same.
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
/* Of dat_lmr_fmr() only. It includes DAT_COMPLETION_SUPPRESS_FLAG. Not of DAT. */
#define KDAPL_COMPLETION_WITH_NEXT_FLAG		0x41

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

#endif /* _RDMA_KDAT_EVENT_H */

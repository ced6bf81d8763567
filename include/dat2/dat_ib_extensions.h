/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* InfiniBand extensions: immediate data and atomic operations. */
#pragma once

#include <dat2/udat.h>

struct ibv_ah;

/** Version of these extensions, which an IA's attributes return. */
#define DAT_IB_EXTENSION_VERSION	209

/** Names of provider-specific attributes that announce an extension. */
#define DAT_IB_ATTR_FETCH_AND_ADD	"DAT_IB_FETCH_AND_ADD"
#define DAT_IB_ATTR_CMP_AND_SWAP	"DAT_IB_CMP_AND_SWAP"
#define DAT_IB_ATTR_IMMED_DATA		"DAT_IB_IMMED_DATA"
#define DAT_IB_ATTR_UD			"DAT_IB_UD"
#define DAT_IB_ATTR_COUNTERS		"DAT_COUNTERS"

/** Numbers of extension events. */
typedef enum dat_ib_event_number {
	DAT_IB_DTO_EVENT = 0x40000,
	DAT_IB_UD_CONNECTION_REQUEST_EVENT = 0x40001,
	DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED = 0x40002,
	DAT_IB_UD_CONNECTION_REJECT_EVENT = 0x40003,
	DAT_IB_UD_CONNECTION_ERROR_EVENT = 0x40004,
} DAT_IB_EVENT_NUMBER;

/** Operations of dat_extension_op(). kDAPL has no datagrams. */
typedef enum dat_ib_op {
	DAT_IB_FETCH_AND_ADD_OP = 0x0,
	DAT_IB_CMP_AND_SWAP_OP = 0x1,
	DAT_IB_RDMA_WRITE_IMMED_OP = 0x2,
	DAT_IB_UD_SEND_OP = 0x3,
	DAT_IB_UD_CM_FREE_OP = 0x1c,
	DAT_IB_UD_AH_FREE_OP = 0x1d,
	DAT_IB_OPEN_QUERY_OP = 0x1000,
	DAT_IB_CLOSE_QUERY_OP = 0x2000,
} DAT_IB_OP;

/** Kinds of extension events. */
typedef enum dat_ib_ext_type {
	DAT_IB_FETCH_AND_ADD = 0,
	DAT_IB_CMP_AND_SWAP = 1,
	DAT_IB_RDMA_WRITE_IMMED = 2,
	DAT_IB_RDMA_WRITE_IMMED_DATA = 3,
	DAT_IB_RECV_IMMED_DATA = 4,
	DAT_IB_UD_CONNECT_REQUEST = 5,
	DAT_IB_UD_REMOTE_AH = 6,
	DAT_IB_UD_PASSIVE_REMOTE_AH = 7,
	DAT_IB_UD_SEND = 8,
	DAT_IB_UD_RECV = 9,
	DAT_IB_UD_CONNECT_REJECT = 10,
	DAT_IB_UD_CONNECT_ERROR = 11,
} DAT_IB_EXT_TYPE;

/** Results of extended operations. */
typedef enum dat_ib_status {
	DAT_OP_SUCCESS = 0,
	DAT_IB_OP_ERR = 1,
} DAT_IB_STATUS;

/** Operations in events, beside those of DAT_DTOS. */
typedef enum dat_ib_dtos {
	DAT_IB_DTO_RDMA_WRITE_IMMED = 0x8,
	DAT_IB_DTO_RECV_IMMED = 0x9,
	DAT_IB_DTO_FETCH_ADD = 0xa,
	DAT_IB_DTO_CMP_SWAP = 0xb,
	DAT_IB_DTO_RECV_MSG_IMMED = 0xc,
	DAT_IB_DTO_SEND_UD = 0xd,
	DAT_IB_DTO_RECV_UD = 0xe,
	DAT_IB_DTO_RECV_UD_IMMED = 0xf,
} DAT_IB_DTOS;

typedef enum dat_ib_handle_type {
	DAT_IB_HANDLE_TYPE_EXT = 12,
} DAT_IB_HANDLE_TYPE;

/** kDAPL queues extension events with those of DTOs, with or without this flag. */
typedef enum dat_ib_evd_extension_flags {
	DAT_IB_EVD_EXTENSION_FLAG = 0x200,
} DAT_IB_EVD_EXTENSION_FLAGS;

/** Privilege of memory for atomic operations of the peer. */
typedef enum dat_ib_mem_priv_flags {
	DAT_IB_MEM_PRIV_REMOTE_ATOMIC = 0x40,
} DAT_IB_MEM_PRIV_FLAGS;

typedef enum dat_ib_service_type {
	DAT_IB_SERVICE_TYPE_UD = 1,
} DAT_IB_SERVICE_TYPE;

/** Immediate data. */
typedef struct dat_ib_immed_data {
	DAT_UINT32 data;
} DAT_IB_IMMED_DATA;

/** Address of a datagram's peer. */
typedef struct dat_ib_addr_handle {
	struct ibv_ah *ah;
	DAT_UINT32 qpn;
	DAT_SOCK_ADDR6 ia_addr;
} DAT_IB_ADDR_HANDLE;

/** Contents of event_extension_data of an extension event. */
typedef struct dat_ib_extension_event_data {
	DAT_IB_EXT_TYPE type;
	DAT_IB_STATUS status;
	union {
		DAT_IB_IMMED_DATA immed;
	} val;
	union {
		DAT_IB_ADDR_HANDLE remote_ah;
	};
	DAT_CONTEXT context;
} DAT_IB_EXTENSION_EVENT_DATA;

/**
 * Posts an RDMA write that also completes the peer's next receive, with a number of 32 bits:
 * arguments as of dat_ep_post_rdma_write().
 */
#define dat_ib_post_rdma_write_immed(ep, segments, local, cookie, remote, immed_data, flags)	\
	dat_extension_op((DAT_HANDLE)(ep), DAT_IB_RDMA_WRITE_IMMED_OP, (DAT_COUNT)(segments),	\
			 (DAT_LMR_TRIPLET *)(local), (cookie), (DAT_RMR_TRIPLET *)(remote),	\
			 (DAT_UINT32)(immed_data), (DAT_COMPLETION_FLAGS)(flags))

/** Posts an addition to 64 bits of the peer's memory. The segment gets their previous value. */
#define dat_ib_post_fetch_and_add(ep, add, local, cookie, remote, flags)			\
	dat_extension_op((DAT_HANDLE)(ep), DAT_IB_FETCH_AND_ADD_OP, (DAT_UINT64)(add),		\
			 (DAT_LMR_TRIPLET *)(local), (cookie), (DAT_RMR_TRIPLET *)(remote),	\
			 (DAT_COMPLETION_FLAGS)(flags))

/** Posts a replacement of 64 bits of the peer's memory by a number, if they equal another one. */
#define dat_ib_post_cmp_and_swap(ep, compare, swap, local, cookie, remote, flags)		\
	dat_extension_op((DAT_HANDLE)(ep), DAT_IB_CMP_AND_SWAP_OP, (DAT_UINT64)(compare),	\
			 (DAT_UINT64)(swap), (DAT_LMR_TRIPLET *)(local), (cookie),		\
			 (DAT_RMR_TRIPLET *)(remote), (DAT_COMPLETION_FLAGS)(flags))

/** Opens an adapter and returns its attributes. */
#define dat_ib_open_query(name, ia, ia_mask, ia_attr, provider_mask, provider_attr)		\
	dat_extension_op((DAT_HANDLE)NULL, DAT_IB_OPEN_QUERY_OP, (DAT_NAME_PTR)(name),		\
			 (DAT_HANDLE *)(ia), (DAT_IA_ATTR_MASK)(ia_mask),			\
			 (DAT_IA_ATTR *)(ia_attr), (DAT_PROVIDER_ATTR_MASK)(provider_mask),	\
			 (DAT_PROVIDER_ATTR *)(provider_attr))

/** Closes an adapter that dat_ib_open_query() has opened. */
#define dat_ib_close_query(ia)									\
	dat_extension_op((DAT_HANDLE)(ia), DAT_IB_CLOSE_QUERY_OP)

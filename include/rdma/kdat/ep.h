/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Endpoints (EPs): attributes and state. Connections are in connect.h, transfers in post.h. */
#ifndef _RDMA_KDAT_EP_H
#define _RDMA_KDAT_EP_H

#include <rdma/kdat/event.h>
#include <rdma/kdat/types.h>

/* No watermark. */
#define DAT_WATERMARK_INFINITE	(-1)

typedef u32 DAT_QOS;
#define DAT_QOS_BEST_EFFORT		0
#define DAT_QOS_HIGH_THROUGHPUT		1
#define DAT_QOS_LOW_LATENCY		2
#define DAT_QOS_ECONOMY			4
#define DAT_QOS_PREMIUM			8

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

/* Limits of peer_timeout_ms and keepalive_ms; the values for none. */
#define KDAPL_PEER_TIMEOUT_MAX	3600000
#define KDAPL_PEER_TIMEOUT_NONE	0xffffffff
#define KDAPL_KEEPALIVE_MIN	6000
#define KDAPL_KEEPALIVE_MAX	3600000
#define KDAPL_KEEPALIVE_NONE	0xffffffff

/*
 * Attributes of an EP. A numeric member of 0 selects the default, except in max_rdma_read_in and
 * max_rdma_read_out, where it allows no RDMA Reads and no atomic operations. The attributes of
 * dat_ep_create() may be NULL: all defaults. The last two members are extensions of kDAPL, in
 * milliseconds (docs/ioctl/endpoints.md): a peer that does not answer for peer_timeout_ms, or an
 * idle one that is silent for keepalive_ms, makes the connection BROKEN. Their defaults are the
 * module parameters of the same names.
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
	u32 peer_timeout_ms;
	u32 keepalive_ms;
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
/* Extensions of kDAPL. */
#define KDAPL_EP_FIELD_PEER_TIMEOUT			0x100000000ULL
#define KDAPL_EP_FIELD_KEEPALIVE			0x200000000ULL

/**
 * struct dat_ep_param - parameters of an EP
 * @ia_handle: IA of the EP
 * @ep_state: state of the EP
 * @local_ia_address_ptr: local address, of family 0 if it is not known; valid until the EP is freed
 *         or connects again. If another thread may end it meanwhile, use kdapl_ep_addresses(),
 *         which copies the addresses.
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
 * dat_ep_post_recv() is DAT_INVALID_STATE on such an EP. DAT_ASYNC_ERROR_EP_BROKEN, with the EP and
 * the reason DAT_EP_TRANSFER_TO_ERROR, follows each DISCONNECTED and BROKEN of the EP, orderly or
 * not: the EP takes no more receives, and those that it had taken have completed. A driver that
 * does not report the last one within 200 ms (see docs/drivers.md) may complete receives after it.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
				  DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
				  DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep);
/**
 * dat_ep_query() - query the parameters of an EP
 * @ep: EP
 * @mask: a mask of DAT_EP_FIELD_* and KDAPL_EP_FIELD_*; all parameters are returned
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_PARAMETER (argument 2) for another bit in
 * @mask.
 */
DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param);
/**
 * dat_ep_modify() - change the PZ, the EVDs and the attributes of an EP
 * @ep: EP
 * @mask: members of @param to change, a mask of DAT_EP_FIELD_* and KDAPL_EP_FIELD_*
 * @param: new values; an EVD may be DAT_HANDLE_NULL, as in dat_ep_create()
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param);

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

#endif /* _RDMA_KDAT_EP_H */

/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Endpoints (EPs): attributes and state. Connections are in connect.h, DTOs in dto.h. */
#ifndef _UAPI_RDMA_KDAPL_EP_H
#define _UAPI_RDMA_KDAPL_EP_H

#include <rdma/kdapl/common.h>

/* DAT_QOS: exactly one of them. */
#define KDAPL_QOS_BEST_EFFORT		0
#define KDAPL_QOS_HIGH_THROUGHPUT	1
#define KDAPL_QOS_LOW_LATENCY		2
#define KDAPL_QOS_ECONOMY		4
#define KDAPL_QOS_PREMIUM		8

/**
 * struct kdapl_ep_attr - attributes of an EP
 * @max_message_size: maximum size of a message
 * @max_rdma_size: maximum size of an RDMA operation
 * @service_type: 0 (DAT_SERVICE_TYPE_RC)
 * @qos: quality of service, KDAPL_QOS_*
 * @recv_completion_flags: one of 0, KDAPL_COMPLETION_EVD_THRESHOLD, _UNSIGNALLED and
 *         _SOLICITED_WAIT
 * @request_completion_flags: one of 0, KDAPL_COMPLETION_EVD_THRESHOLD and _UNSIGNALLED
 * @max_recv_dtos: maximum number of outstanding receives
 * @max_request_dtos: maximum number of outstanding DTOs other than receives
 * @max_recv_iov: maximum number of segments of a receive
 * @max_request_iov: maximum number of segments of another DTO
 * @max_rdma_read_in: maximum number of incoming RDMA Reads; 0 for none, or
 *         KDAPL_RDMA_READS_DEFAULT
 * @max_rdma_read_out: maximum number of outgoing RDMA Reads; as for @max_rdma_read_in
 * @max_rdma_read_iov: maximum number of segments of an RDMA Read
 * @max_rdma_write_iov: maximum number of segments of an RDMA Write
 * @peer_timeout_ms: time after which a peer that does not respond makes the connection BROKEN, in
 *         milliseconds, at most KDAPL_PEER_TIMEOUT_MAX; or KDAPL_PEER_TIMEOUT_NONE
 * @keepalive_ms: time of silence after which an idle connection is BROKEN, in milliseconds:
 *         KDAPL_KEEPALIVE_MIN .. KDAPL_KEEPALIVE_MAX, or KDAPL_KEEPALIVE_NONE
 * @reserved: 0; space for further attributes
 *
 * A numeric member of 0 selects the default, except in the numbers of RDMA Reads
 * (docs/ioctl/endpoints.md).
 */
struct kdapl_ep_attr {
	__u64 max_message_size;
	__u64 max_rdma_size;
	__u32 service_type;
	__u32 qos;
	__u32 recv_completion_flags;
	__u32 request_completion_flags;
	__u32 max_recv_dtos;
	__u32 max_request_dtos;
	__u32 max_recv_iov;
	__u32 max_request_iov;
	__u32 max_rdma_read_in;
	__u32 max_rdma_read_out;
	__u32 max_rdma_read_iov;
	__u32 max_rdma_write_iov;
	__u32 peer_timeout_ms;
	__u32 keepalive_ms;
	__u32 reserved[14];
};

#define KDAPL_RDMA_READS_DEFAULT 0xffffffff
#define KDAPL_PEER_TIMEOUT_MAX	3600000	/* milliseconds; one hour */
#define KDAPL_PEER_TIMEOUT_NONE	0xffffffff
#define KDAPL_KEEPALIVE_MIN	6000
#define KDAPL_KEEPALIVE_MAX	3600000
#define KDAPL_KEEPALIVE_NONE	0xffffffff

/**
 * struct kdapl_ep_create - KDAPL_EP_CREATE: create an EP
 * @hdr: header
 * @pz: in: PZ
 * @recv_evd: in: EVD with KDAPL_EVD_DTO for completions of receives
 * @request_evd: in: EVD with KDAPL_EVD_DTO for completions of other DTOs
 * @connect_evd: in: EVD with KDAPL_EVD_CONNECTION
 * @srq: in: SRQ that the receives come from, or 0; @pz must be its PZ
 * @flags: in: KDAPL_EP_HAS_ATTR to use @attr, else 0 for the defaults
 * @pad: 0
 * @attr: in: requested attributes; out: actual attributes
 * @handle: out: handle of the EP
 *
 * @pz may be 0 (DAT_HANDLE_NULL). The EP is then unconfigured until KDAPL_EP_MODIFY has supplied
 * it. An EVD may be 0: its events are discarded, but without @connect_evd the failure of a
 * connection is KDAPL_EVENT_ASYNC_EP_BROKEN. With @srq this event also follows each end of a
 * connection: the EP takes no more receives.
 */
struct kdapl_ep_create {
	struct kdapl_hdr hdr;
	__u64 pz;
	__u64 recv_evd;
	__u64 request_evd;
	__u64 connect_evd;
	__u64 srq;
	__u32 flags;
	__u32 pad;
	struct kdapl_ep_attr attr;
	__u64 handle;
};

#define KDAPL_EP_HAS_ATTR	1

/* DAT_EP_PARAM_MASK. */
#define KDAPL_EP_FIELD_IA			0x00000001
#define KDAPL_EP_FIELD_STATE			0x00000002
#define KDAPL_EP_FIELD_COMM			0x00000004
#define KDAPL_EP_FIELD_LOCAL_ADDRESS		0x00000008
#define KDAPL_EP_FIELD_LOCAL_PORT_QUAL		0x00000010
#define KDAPL_EP_FIELD_REMOTE_ADDRESS		0x00000020
#define KDAPL_EP_FIELD_REMOTE_PORT_QUAL		0x00000040
#define KDAPL_EP_FIELD_PZ			0x00000080
#define KDAPL_EP_FIELD_RECV_EVD			0x00000100
#define KDAPL_EP_FIELD_REQUEST_EVD		0x00000200
#define KDAPL_EP_FIELD_CONNECT_EVD		0x00000400
#define KDAPL_EP_FIELD_SRQ			0x00000800
#define KDAPL_EP_FIELD_SERVICE_TYPE		0x00001000
#define KDAPL_EP_FIELD_MAX_MESSAGE_SIZE		0x00002000
#define KDAPL_EP_FIELD_MAX_RDMA_SIZE		0x00004000
#define KDAPL_EP_FIELD_QOS			0x00008000
#define KDAPL_EP_FIELD_RECV_COMPLETION_FLAGS	0x00010000
#define KDAPL_EP_FIELD_REQUEST_COMPLETION_FLAGS	0x00020000
#define KDAPL_EP_FIELD_MAX_RECV_DTOS		0x00040000
#define KDAPL_EP_FIELD_MAX_REQUEST_DTOS		0x00080000
#define KDAPL_EP_FIELD_MAX_RECV_IOV		0x00100000
#define KDAPL_EP_FIELD_MAX_REQUEST_IOV		0x00200000
#define KDAPL_EP_FIELD_MAX_RDMA_READ_IN		0x00400000
#define KDAPL_EP_FIELD_MAX_RDMA_READ_OUT	0x00800000
#define KDAPL_EP_FIELD_SRQ_SOFT_HW		0x01000000
#define KDAPL_EP_FIELD_MAX_RDMA_READ_IOV	0x02000000
#define KDAPL_EP_FIELD_MAX_RDMA_WRITE_IOV	0x04000000
/* Extensions of DAT's mask, above its 32 bits. */
#define KDAPL_EP_FIELD_PEER_TIMEOUT		0x100000000ULL
#define KDAPL_EP_FIELD_KEEPALIVE		0x200000000ULL
#define KDAPL_EP_FIELD_ALL			0x37fffffffULL

/**
 * struct kdapl_ep_query - KDAPL_EP_QUERY: query the parameters of an EP
 * @hdr: header
 * @handle: in: EP
 * @mask: in: KDAPL_EP_FIELD_* of the members to return; the others are 0
 * @ia: out: IA; all following members are out
 * @pz: PZ, or 0
 * @recv_evd: EVD for completions of receives, or 0
 * @request_evd: EVD for completions of other DTOs, or 0
 * @connect_evd: EVD for connection events, or 0
 * @srq: SRQ, or 0
 * @local_port_qual: local port of the connection, or 0
 * @remote_port_qual: connection qualifier that the EP connected to, or port of the accepted request
 * @local_address: local address
 * @remote_address: address of the peer
 * @state: DAT_EP_STATE
 * @qp_num: number of the queue pair, or 0; returned regardless of the mask
 * @attr: attributes
 */
struct kdapl_ep_query {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 mask;
	__u64 ia;
	__u64 pz;
	__u64 recv_evd;
	__u64 request_evd;
	__u64 connect_evd;
	__u64 srq;
	__u64 local_port_qual;
	__u64 remote_port_qual;
	struct kdapl_sockaddr local_address;
	struct kdapl_sockaddr remote_address;
	__u32 state;
	__u32 qp_num;
	struct kdapl_ep_attr attr;
};

/**
 * struct kdapl_ep_modify - KDAPL_EP_MODIFY: change the parameters of an EP before it connects
 * @hdr: header
 * @handle: in: EP
 * @mask: in: KDAPL_EP_FIELD_* of the members to change: PZ, EVDs and attributes. Other members
 *         cannot be changed.
 * @pz: in: as for KDAPL_EP_CREATE, like all handles
 * @recv_evd: in
 * @request_evd: in
 * @connect_evd: in
 * @attr: in: new values of the attributes in @mask; out: all attributes
 *
 * Posted receives stay posted. Either all changes are made or none.
 */
struct kdapl_ep_modify {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 mask;
	__u64 pz;
	__u64 recv_evd;
	__u64 request_evd;
	__u64 connect_evd;
	struct kdapl_ep_attr attr;
};

/**
 * struct kdapl_ep_status - KDAPL_EP_GET_STATUS: query the state of an EP
 * @hdr: header
 * @handle: in: EP
 * @state: out: DAT_EP_STATE
 * @recv_idle: out: 1 if no receive is outstanding
 * @request_idle: out: 1 if no other DTO is outstanding
 * @recv_outstanding: out: number of outstanding receives
 * @request_outstanding: out: number of other outstanding DTOs
 * @pad: 0
 */
struct kdapl_ep_status {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u32 state;
	__u32 recv_idle;
	__u32 request_idle;
	__u32 recv_outstanding;
	__u32 request_outstanding;
	__u32 pad;
};

/* No watermark. */
#define KDAPL_WATERMARK_INFINITE	0xffffffff

/* Reason of an asynchronous event of an EP: its soft high watermark is exceeded. */
#define KDAPL_EP_SOFT_HIGH_WATERMARK	2

/**
 * struct kdapl_ep_watermark - KDAPL_EP_SET_WATERMARK: limit the receive buffers that an EP has
 * @hdr: header
 * @handle: in: EP
 * @soft_high: in: number of buffers, or KDAPL_WATERMARK_INFINITE. One event
 *         KDAPL_EVENT_ASYNC_EP_BROKEN with the handle of the EP and the reason
 *         KDAPL_EP_SOFT_HIGH_WATERMARK reports that the EP has more. The connection stays.
 * @hard_high: in: number of buffers, or KDAPL_WATERMARK_INFINITE. The connection breaks when the EP
 *         has more.
 *
 * A receive that has completed counts until its event is dequeued. Either watermark may be exceeded
 * during this call. While one is set, KDAPL_EP_MODIFY refuses another EVD for receives with
 * INVALID_STATE (watermark).
 */
struct kdapl_ep_watermark {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u32 soft_high;
	__u32 hard_high;
};

/**
 * struct kdapl_ep_recv_query - KDAPL_EP_RECV_QUERY: query the receive buffers that an EP has
 * @hdr: header
 * @handle: in: EP
 * @allocated: out: number of receives that are posted to the EP, and of those that have completed
 *         and whose event was not dequeued. Receives of an SRQ belong to an EP once they have
 *         completed.
 * @span: out: number of messages from the oldest to the newest of these buffers
 */
struct kdapl_ep_recv_query {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u32 allocated;
	__u32 span;
};

#endif /* _UAPI_RDMA_KDAPL_EP_H */

/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * The ioctl interface of /dev/kdapl: the one source of truth for both sides.
 *
 * Rules, the same for every message (docs/ioctl.md has them at length):
 *
 *  - One open file is one Interface Adapter (IA). KDAPL_IA_OPEN comes first and
 *    carries KDAPL_ABI_VERSION; a handle means nothing in another file.
 *  - Every message starts with struct kdapl_hdr. `size` is the size of the whole
 *    message as the caller knows it and equals the size in the ioctl number
 *    (KDAPL_SIZED makes one of another size). A message grows at its end. A
 *    shorter message than the kernel's is taken as if zeros followed, down to
 *    the first published size; a longer one is taken if all that the kernel does
 *    not know is zero (E2BIG otherwise). The kernel writes no further than `size`.
 *  - An array is an address, a count, and the size of an element as the caller
 *    knows it: a multiple of 8, at most KDAPL_ELEMENT_MAX. Elements grow as
 *    messages do. What the kernel does not know of an element that it fills in
 *    becomes zero. Bytes (private data) are no array.
 *  - A struct that lies inside of a message can grow, too: it has words that are
 *    reserved (kdapl_ep_attr, kdapl_sockaddr), or is the last member (kdapl_dto),
 *    or is an element of an array (kdapl_event). kdapl_hdr never changes.
 *  - `hdr.flags` is 0 but for the KDAPL_FLAG_* that a call has. Fields named `pad`
 *    or `reserved` are zero in both directions.
 *  - The DAT return code travels in `hdr.ret`; the ioctl itself then returns 0.
 *    errno only says that the message could not be taken: EFAULT (bad pointer),
 *    ENOTTY (unknown request), EINVAL (wrong size, unknown version or flag,
 *    non-zero padding), E2BIG (unknown trailing fields).
 *  - All fields have a fixed width and lie at a multiple of it; there is no hidden
 *    padding, so 32-bit and 64-bit programs have the same layout.
 *  - Times are in nanoseconds, other than peer_timeout_ms; sizes in bytes, queue
 *    lengths in entries.
 *  - The numbers of flags, states, events and return codes are those of DAT 2.0.
 */
#ifndef _UAPI_RDMA_KDAPL_H
#define _UAPI_RDMA_KDAPL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KDAPL_ABI_VERSION	2
#define KDAPL_DEVICE_NAME	"kdapl"
#define KDAPL_NAME_MAX		64	/* bytes, with the final NUL */
#define KDAPL_PRIVATE_DATA_MAX	256	/* bytes; transports carry less, see IA_QUERY */
#define KDAPL_IOV_MAX		32	/* segments of one DTO */
#define KDAPL_ELEMENT_MAX	4096	/* bytes of an element of an array */
#define KDAPL_TIMEOUT_INFINITE	0x7fffffffffffffffULL	/* and above: 292 years */

/**
 * struct kdapl_hdr - head of every message
 * @size: in: size of the whole message in bytes
 * @flags: in: KDAPL_FLAG_*, those that the call has
 * @ret: out: DAT_RETURN (class, type and subtype)
 * @reserved: 0
 */
struct kdapl_hdr {
	__u32 size;
	__u32 flags;
	__u32 ret;
	__u32 reserved;
};

/*
 * EVD_WAIT, EP_SUBMIT, CNO_WAIT, EP_CONNECT, EP_DUP_CONNECT, EP_COMMON_CONNECT:
 * @timeout_ns is a time of the caller's CLOCK_MONOTONIC instead of a duration.
 */
#define KDAPL_FLAG_ABSOLUTE	0x1

/**
 * struct kdapl_sockaddr - an IA address
 * @sa: a struct sockaddr_in or sockaddr_in6 in native layout; out: zero-filled;
 *          in: what follows it is not looked at. As large as any address.
 */
struct kdapl_sockaddr {
	__u8 sa[128];
};

/**
 * struct kdapl_device - KDAPL_DEVICE_GET: the @index-th RDMA device
 * @index: in: counted from 0; past the last, @hdr.ret is DAT_PROVIDER_NOT_FOUND
 * @abi_version: out: the kernel's KDAPL_ABI_VERSION
 * @name: out: name of the RDMA device, as KDAPL_IA_OPEN takes it
 * @netdev: out: name of its network device, which KDAPL_IA_OPEN takes too
 * @address: out: the address that its IA would have; family 0 if there is none
 * @node_guid: out: the device's GUID in host byte order
 * @transport: out: KDAPL_TRANSPORT_*
 * @port_active: out: 1 if the port is up
 * @flags: out: KDAPL_DEVICE_*
 *
 * The only message besides KDAPL_IA_OPEN that needs no open IA.
 */
struct kdapl_device {
	struct kdapl_hdr hdr;
	__u32 index;
	__u32 abi_version;
	__u8 name[KDAPL_NAME_MAX];
	__u8 netdev[KDAPL_NAME_MAX];
	struct kdapl_sockaddr address;
	__u64 node_guid;
	__u32 transport;
	__u32 port_active;
	__u64 flags;
};

/* Only processes with CAP_SYS_RAWIO may open it (docs/drivers.md). */
#define KDAPL_DEVICE_RESTRICTED	0x1

#define KDAPL_TRANSPORT_IB	0
#define KDAPL_TRANSPORT_ROCE	1
#define KDAPL_TRANSPORT_IWARP	2

/**
 * struct kdapl_ia_open - KDAPL_IA_OPEN
 * @abi_version: in: KDAPL_ABI_VERSION
 * @async_evd_qlen: in: minimum length of the asynchronous EVD, at least 1
 * @name: in: an RDMA device or a network device, NUL-terminated
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
 * struct kdapl_ia_query - KDAPL_IA_QUERY: all fields are out
 * @max_private_data_*: what the transport carries in a request, an accept, a reject
 * @wide_qual_overhead: bytes less in a request for a connection qualifier above
 *          65535, which travels there
 * @completion_vectors: interrupts that completions may be told by, at least 1
 * @extensions: KDAPL_EXTENSION_*: operations of the InfiniBand extensions that there are
 * @abi_version: the kernel's KDAPL_ABI_VERSION
 * @dto_size: size of the kernel's struct kdapl_dto
 * @event_size: size of the kernel's struct kdapl_event
 * @pad: 0
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
	__u32 pad;
};

#define KDAPL_IA_QUERY_SIZE_MIN	392

#define KDAPL_EXTENSION_IMMED_DATA	0x1	/* RDMA write with immediate data */
#define KDAPL_EXTENSION_FETCH_AND_ADD	0x2
#define KDAPL_EXTENSION_CMP_AND_SWAP	0x4

/**
 * struct kdapl_ia_close - KDAPL_IA_CLOSE
 * @flags: in: KDAPL_CLOSE_ABRUPT tears down whatever is left,
 *         KDAPL_CLOSE_GRACEFUL fails with DAT_INVALID_STATE while objects exist
 *
 * After it the file is as it was after open(2).
 */
struct kdapl_ia_close {
	struct kdapl_hdr hdr;
	__u32 flags;
	__u32 pad;
};

#define KDAPL_CLOSE_ABRUPT	0
#define KDAPL_CLOSE_GRACEFUL	1

/**
 * struct kdapl_handle - KDAPL_*_FREE, and messages that are only a handle
 * @handle: in: the object; out for KDAPL_PZ_CREATE
 */
struct kdapl_handle {
	struct kdapl_hdr hdr;
	__u64 handle;
};

/* KDAPL_EVD_CREATE.flags: the event streams that may feed the EVD. */
#define KDAPL_EVD_SOFTWARE	0x001
#define KDAPL_EVD_CR		0x010
#define KDAPL_EVD_DTO		0x020
#define KDAPL_EVD_CONNECTION	0x040
#define KDAPL_EVD_RMR_BIND	0x080
#define KDAPL_EVD_ASYNC		0x100
#define KDAPL_EVD_FLAGS_ALL	0x1f1

/**
 * struct kdapl_evd_create - KDAPL_EVD_CREATE
 * @qlen: in: minimum queue length, 1 .. max_evd_qlen; out: the length given
 * @flags: in: KDAPL_EVD_*, at least one
 * @cno: in: the CNO that it triggers, or 0
 * @vector: in: the completion vector that its completions are told by, below
 *          completion_vectors of KDAPL_IA_QUERY; -1: that of the caller's CPU
 * @pad: 0
 * @handle: out
 */
struct kdapl_evd_create {
	struct kdapl_hdr hdr;
	__s32 qlen;
	__u32 flags;
	__u64 cno;
	__s32 vector;
	__u32 pad;
	__u64 handle;
};

/**
 * struct kdapl_evd_query - KDAPL_EVD_QUERY
 * @handle: in
 * @cno: out: the CNO that it triggers, or 0
 * @qlen: out: queue length
 * @state: out: KDAPL_EVD_ENABLED or _DISABLED, KDAPL_EVD_WAITABLE or _UNWAITABLE,
 *          one of KDAPL_EVD_CONFIG_*
 * @flags: out: KDAPL_EVD_*
 * @queued: out: events that a dequeue would find now, completions still in the
 *          device's queues not counted
 * @vector: out: the completion vector of its first completion queue
 * @cqs: out: how many completion queues it has
 */
struct kdapl_evd_query {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 cno;
	__s32 qlen;
	__u32 state;
	__u32 flags;
	__u32 queued;
	__u32 vector;
	__u32 cqs;
};

/* struct kdapl_evd_query.state */
#define KDAPL_EVD_ENABLED	0x01
#define KDAPL_EVD_DISABLED	0x02
#define KDAPL_EVD_WAITABLE	0x04
#define KDAPL_EVD_UNWAITABLE	0x08
/* ... what wakes: by the completion flags of the EPs that report there */
#define KDAPL_EVD_CONFIG_NOTIFY	0x10	/* what was not posted as UNSIGNALLED */
#define KDAPL_EVD_CONFIG_SOLICITED 0x20	/* messages sent as SOLICITED_WAIT */
#define KDAPL_EVD_CONFIG_THRESHOLD 0x30	/* everything; the default */

/**
 * struct kdapl_evd_modify_cno - KDAPL_EVD_MODIFY_CNO
 * @handle: in
 * @cno: in: the CNO that it triggers from now on, or 0
 */
struct kdapl_evd_modify_cno {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 cno;
};

/**
 * struct kdapl_evd_resize - KDAPL_EVD_RESIZE
 * @handle: in
 * @qlen: in: length of the queue, 1 .. max_evd_qlen; out: what it is now
 * @pad: 0
 */
struct kdapl_evd_resize {
	struct kdapl_hdr hdr;
	__u64 handle;
	__s32 qlen;
	__u32 pad;
};

/**
 * struct kdapl_cno - KDAPL_CNO_CREATE and KDAPL_CNO_MODIFY_AGENT
 * @handle: out for KDAPL_CNO_CREATE, else in
 * @agent_fd: in: an eventfd that is signalled with each trigger, or -1
 * @pad: 0
 */
struct kdapl_cno {
	struct kdapl_hdr hdr;
	__u64 handle;
	__s32 agent_fd;
	__u32 pad;
};

/**
 * struct kdapl_cno_query - KDAPL_CNO_QUERY
 * @handle: in
 * @has_agent: out: 1 if there is an eventfd
 * @evds: out: EVDs that trigger it
 * @triggered: out: EVDs that have, and are not handed out yet
 * @pad: 0
 */
struct kdapl_cno_query {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u32 has_agent;
	__u32 evds;
	__u32 triggered;
	__u32 pad;
};

/**
 * struct kdapl_cno_wait - KDAPL_CNO_WAIT
 * @evd: out: the EVD that has triggered, or 0 after KDAPL_CNO_TRIGGER
 * @handle: in
 * @timeout_ns: in: as in struct kdapl_evd_wait
 */
struct kdapl_cno_wait {
	struct kdapl_hdr hdr;
	__u64 evd;
	__u64 handle;
	__u64 timeout_ns;
};

/**
 * struct kdapl_cno_fd - KDAPL_CNO_FD: a file that is readable while a wait would return at once
 * @handle: in: a CNO
 * @fd: out: closed at exec; -1 after an error
 * @pad: 0
 */
struct kdapl_cno_fd {
	struct kdapl_hdr hdr;
	__u64 handle;
	__s32 fd;
	__u32 pad;
};

/* struct kdapl_event.number */
#define KDAPL_EVENT_DTO_COMPLETION		0x00001
#define KDAPL_EVENT_CONNECTION_REQUEST		0x02001
#define KDAPL_EVENT_ESTABLISHED			0x04001
#define KDAPL_EVENT_PEER_REJECTED		0x04002
#define KDAPL_EVENT_NON_PEER_REJECTED		0x04003
#define KDAPL_EVENT_ACCEPT_COMPLETION_ERROR	0x04004
#define KDAPL_EVENT_DISCONNECTED		0x04005
#define KDAPL_EVENT_BROKEN			0x04006
#define KDAPL_EVENT_TIMED_OUT			0x04007
#define KDAPL_EVENT_UNREACHABLE			0x04008
#define KDAPL_EVENT_ASYNC_EVD_OVERFLOW		0x08001
#define KDAPL_EVENT_ASYNC_IA_CATASTROPHIC	0x08002
#define KDAPL_EVENT_ASYNC_EP_BROKEN		0x08003
#define KDAPL_EVENT_SOFTWARE			0x10001
#define KDAPL_EVENT_IB_DTO			0x40000	/* as DTO_COMPLETION, of KDAPL_IB_DTO_* */

/**
 * struct kdapl_event - one event: an element of an array, so that it can grow
 * @number: KDAPL_EVENT_*
 * @status: DTO: DAT_DTO_COMPLETION_STATUS; asynchronous: the reason
 * @evd: the EVD that the event was taken from
 * @object: DTO and connection: the EP; request: the CR; asynchronous: the object
 * @cookie: DTO: the consumer's cookie; request: the service point (PSP, RSP or
 *          CSP); software: the pointer
 * @value: DTO: bytes transferred; request: the connection qualifier
 * @operation: DTO: KDAPL_DTO_* or KDAPL_IB_DTO_*
 * @rmr_context: DTO: the RMR context that the peer invalidated, or 0
 * @private_data_size: request, ESTABLISHED, PEER_REJECTED: bytes of private data
 * @immed_data: KDAPL_IB_DTO_RECV_IMMED, _RECV_MSG_IMMED: what the peer sent
 * @reserved: 0
 */
struct kdapl_event {
	__u32 number;
	__u32 status;
	__u64 evd;
	__u64 object;
	__u64 cookie;
	__u64 value;
	__u32 operation;
	__u32 rmr_context;
	__u32 private_data_size;
	__u32 immed_data;
	__u64 reserved;
};

#define KDAPL_EVENT_SIZE_MIN	64
#define KDAPL_EVENTS_MAX	256	/* events that one call takes */

/**
 * struct kdapl_evd_wait - KDAPL_EVD_WAIT and KDAPL_EVD_DEQUEUE: take events
 * @taken: out: events taken, valid in @events
 * @nmore: out: events left in the queue
 * @handle: in
 * @timeout_ns: in: from the beginning of the call, or with KDAPL_FLAG_ABSOLUTE the
 *          time to give up at; KDAPL_TIMEOUT_INFINITE waits for ever (WAIT only)
 * @threshold: in: number of events to wait for, 1 .. qlen (WAIT only)
 * @max_events: in: room in @events, at least 1; above KDAPL_EVENTS_MAX it is that
 * @events: in: address of @max_events struct kdapl_event, which are out
 * @event_size: in: size of each, at least KDAPL_EVENT_SIZE_MIN
 * @pad: 0
 */
struct kdapl_evd_wait {
	struct kdapl_hdr hdr;
	__u32 taken;
	__u32 nmore;
	__u64 handle;
	__u64 timeout_ns;
	__s32 threshold;
	__u32 max_events;
	__u64 events;
	__u32 event_size;
	__u32 pad;
};

/**
 * struct kdapl_evd_post_se - KDAPL_EVD_POST_SE
 * @handle: in: an EVD with KDAPL_EVD_SOFTWARE
 * @pointer: in: comes back as the event's cookie
 */
struct kdapl_evd_post_se {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 pointer;
};

/**
 * struct kdapl_ep_attr - attributes of an Endpoint
 * @recv_completion_flags: one of 0, KDAPL_COMPLETION_EVD_THRESHOLD, _UNSIGNALLED
 *          and _SOLICITED_WAIT
 * @request_completion_flags: one of 0, KDAPL_COMPLETION_EVD_THRESHOLD and
 *          _UNSIGNALLED
 * @peer_timeout_ms: how long a peer that does not answer is borne before the
 *          connection is BROKEN, in milliseconds, at most KDAPL_PEER_TIMEOUT_MAX
 * @reserved: 0: later attributes
 *
 * Zero in a numeric field asks for the default (docs/ioctl.md).
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
	__u32 reserved[15];
};

#define KDAPL_PEER_TIMEOUT_MAX	3600000	/* milliseconds: one hour */

/**
 * struct kdapl_ep_create - KDAPL_EP_CREATE
 * @pz: in
 * @recv_evd: in: needs KDAPL_EVD_DTO
 * @request_evd: in: needs KDAPL_EVD_DTO
 * @connect_evd: in: needs KDAPL_EVD_CONNECTION
 *
 * Each of these four may be 0 (DAT_HANDLE_NULL): the Endpoint is unconfigured
 * until KDAPL_EP_MODIFY has brought them all.
 *
 * @srq: in: 0
 * @flags: in: KDAPL_EP_HAS_ATTR if @attr was filled in, else 0 for the defaults
 * @attr: in: asked for; out: given
 * @handle: out
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

/* DAT_EP_PARAM_MASK */
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
/* ... and those that DAT does not have, above its 32 bits */
#define KDAPL_EP_FIELD_PEER_TIMEOUT		0x100000000ULL
#define KDAPL_EP_FIELD_ALL			0x17fffffffULL

/**
 * struct kdapl_ep_query - KDAPL_EP_QUERY
 * @handle: in
 * @mask: in: KDAPL_EP_FIELD_*; what is not asked for comes as 0
 * @ia: out, like all that follows
 * @local_port_qual: the port of this side of the connection, or 0
 * @remote_port_qual: the connection qualifier that was connected to, or the
 *          port that the accepted request came from
 * @state: DAT_EP_STATE
 * @qp_num: number of the queue pair, or 0; comes whatever the mask
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
 * struct kdapl_ep_modify - KDAPL_EP_MODIFY
 * @handle: in
 * @mask: in: the KDAPL_EP_FIELD_* to change: PZ, EVDs and attributes; the rest
 *          cannot be changed. Only before a connection.
 * @pz: in: as for KDAPL_EP_CREATE, as all handles
 * @attr: in: what the mask names; out: all as they are now
 *
 * Receives that are posted stay posted. All changes or none.
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
 * struct kdapl_ep_status - KDAPL_EP_GET_STATUS
 * @handle: in
 * @state: out: DAT_EP_STATE
 * @recv_idle: out: 1 if no receive is outstanding
 * @request_idle: out: 1 if no request is outstanding
 * @recv_outstanding: out
 * @request_outstanding: out
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

/* DAT_QOS: one of them */
#define KDAPL_QOS_BEST_EFFORT		0
#define KDAPL_QOS_HIGH_THROUGHPUT	1
#define KDAPL_QOS_LOW_LATENCY		2
#define KDAPL_QOS_ECONOMY		4
#define KDAPL_QOS_PREMIUM		8

/* DAT_CONNECT_FLAGS */
#define KDAPL_CONNECT_MULTIPATH_REQUESTED	1
#define KDAPL_CONNECT_MULTIPATH_REQUIRED	2

/**
 * struct kdapl_ep_connect - KDAPL_EP_CONNECT
 * @handle: in
 * @remote_address: in: its port is not looked at
 * @conn_qual: in: not 0. Up to 65535 it is the port of any rdma_cm program;
 *          above, a service point of kDAPL.
 * @private_data: in: address of @private_data_size bytes
 * @timeout_ns: in: not 0, or with KDAPL_FLAG_ABSOLUTE the time to give up at;
 *          KDAPL_TIMEOUT_INFINITE for none
 * @private_data_size: in
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
 * struct kdapl_ep_dup_connect - KDAPL_EP_DUP_CONNECT: connect to where another
 * Endpoint of this IA is connected to
 * @handle: in
 * @dup: in: a connected Endpoint. If it accepted, to the peer's address and the
 *          connection qualifier of the service point that the request came to.
 * @private_data: in: as for KDAPL_EP_CONNECT, as the rest
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
 * struct kdapl_ep_common_connect - KDAPL_EP_COMMON_CONNECT: connect to a Common
 * Service Point
 * @handle: in
 * @remote_address: in: with the port
 * @private_data: in: as for KDAPL_EP_CONNECT, as the rest
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
 * struct kdapl_ep_disconnect - KDAPL_EP_DISCONNECT
 * @handle: in
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
 * struct kdapl_ep_private_data - KDAPL_EP_PRIVATE_DATA: what the peer sent with
 * its accept (ESTABLISHED) or its reject (PEER_REJECTED)
 * @handle: in
 * @size: out: bytes valid in @data
 * @pad: 0
 * @data: out
 */
struct kdapl_ep_private_data {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u32 size;
	__u32 pad;
	__u8 data[KDAPL_PRIVATE_DATA_MAX];
};

/**
 * struct kdapl_triplet - a piece of an LMR or of a peer's RMR; its first published
 * size is this one
 * @address: virtual address of the first byte
 * @length: bytes
 * @context: lmr_context (local) or rmr_context (remote)
 */
struct kdapl_triplet {
	__u64 address;
	__u32 length;
	__u32 context;
};

/* struct kdapl_dto.operation and struct kdapl_event.operation */
#define KDAPL_DTO_SEND		0
#define KDAPL_DTO_RDMA_WRITE	1
#define KDAPL_DTO_RDMA_READ	2
#define KDAPL_DTO_RECEIVE	3

/* ... of the InfiniBand extensions; the receives are what one that was posted turns into */
#define KDAPL_IB_DTO_RDMA_WRITE_IMMED	8
#define KDAPL_IB_DTO_RECV_IMMED		9	/* taken by an RDMA write with immediate data */
#define KDAPL_IB_DTO_FETCH_ADD		10
#define KDAPL_IB_DTO_CMP_SWAP		11
#define KDAPL_IB_DTO_RECV_MSG_IMMED	12	/* taken by a send with immediate data */

/* struct kdapl_dto.flags and the completion flags of an EP: DAT_COMPLETION_FLAGS */
#define KDAPL_COMPLETION_SUPPRESS	0x01	/* requests */
#define KDAPL_COMPLETION_SOLICITED_WAIT	0x02	/* what takes a receive; an EP's receives */
#define KDAPL_COMPLETION_UNSIGNALLED	0x04	/* of an EP that has it; an EP */
#define KDAPL_COMPLETION_BARRIER_FENCE	0x08	/* requests */
#define KDAPL_COMPLETION_EVD_THRESHOLD	0x10	/* an EP */

/**
 * struct kdapl_dto - a DTO to post
 * @operation: KDAPL_DTO_* or KDAPL_IB_DTO_*
 * @flags: KDAPL_COMPLETION_*
 * @cookie: comes back in the completion
 * @iov: address of @iov_count struct kdapl_triplet
 * @iov_count: 0 .. the EP's limit for @operation; 1 of FETCH_ADD and CMP_SWAP
 * @iov_size: size of each; not looked at if there is none
 * @remote: all but SEND and RECEIVE; @remote.length is not looked at if 0, else it is
 *          at least the sum of the local lengths
 * @compare_add: FETCH_ADD: what to add; CMP_SWAP: what to compare with
 * @swap: CMP_SWAP: what to put there if it was equal
 * @immed_data: RDMA_WRITE_IMMED: comes with the completion of the peer's receive
 * @reserved: 0
 *
 * What an operation does not use is not looked at. The first published size ends
 * before @remote: it is all that SEND and RECEIVE need.
 */
struct kdapl_dto {
	__u32 operation;
	__u32 flags;
	__u64 cookie;
	__u64 iov;
	__u32 iov_count;
	__u32 iov_size;
	struct kdapl_triplet remote;
	__u64 compare_add;
	__u64 swap;
	__u32 immed_data;
	__u32 reserved;
};

#define KDAPL_DTO_SIZE_MIN	32

/**
 * struct kdapl_ep_post - KDAPL_EP_POST
 * @handle: in
 * @dto: in; the message grows with it
 */
struct kdapl_ep_post {
	struct kdapl_hdr hdr;
	__u64 handle;
	struct kdapl_dto dto;
};

#define KDAPL_EP_POST_SIZE_MIN	56

#define KDAPL_SUBMIT_MAX	256	/* DTOs of one KDAPL_EP_SUBMIT */

/**
 * struct kdapl_ep_submit - KDAPL_EP_SUBMIT: posts DTOs, then waits for events
 * @posted: out: how many were posted: all, or those before the first that is refused
 * @taken: out: as in struct kdapl_evd_wait, as all that is not said here
 * @nmore: out
 * @event_size: in
 * @handle: in: the EP
 * @dtos: in: address of @count struct kdapl_dto
 * @count: in: 0 .. KDAPL_SUBMIT_MAX
 * @dto_size: in: size of each, at least KDAPL_DTO_SIZE_MIN; not looked at if @count is 0
 * @evd: in: the EVD to wait on, or 0: posts only
 * @timeout_ns: in: from the end of the posts
 * @threshold: in
 * @max_events: in
 * @events: in
 */
struct kdapl_ep_submit {
	struct kdapl_hdr hdr;
	__u32 posted;
	__u32 taken;
	__u32 nmore;
	__u32 event_size;
	__u64 handle;
	__u64 dtos;
	__u32 count;
	__u32 dto_size;
	__u64 evd;
	__u64 timeout_ns;
	__s32 threshold;
	__u32 max_events;
	__u64 events;
};

/*
 * Connection qualifiers. Up to 65535 one is an rdma_cm port, and the peer may be
 * any rdma_cm program. Above, the request goes to KDAPL_SHARED_PORT, and its
 * private data begin with KDAPL_WIDE_QUAL_OVERHEAD bytes, in network byte order:
 *
 *	__u8	magic[2];	"KD"
 *	__u8	version;	1
 *	__u8	length;		bytes of the consumer's data behind this
 *	__be64	conn_qual;
 *
 * The consumer of the service point sees only its own data, in their length.
 * rdma_cm leaves ports below 1024 to the administrator: no user takes the shared one first.
 */
#define KDAPL_SHARED_PORT		299
#define KDAPL_WIDE_QUAL_OVERHEAD	12

/**
 * struct kdapl_psp_create - KDAPL_PSP_CREATE
 * @conn_qual: in: 0 lets kDAPL choose a free one (dat_psp_create_any); out: the
 *          one that is listened for. Up to 65535 it is an rdma_cm port.
 * @evd: in: needs KDAPL_EVD_CR
 * @flags: in: KDAPL_PSP_*
 * @backlog: in: requests that may wait for an answer, 0 for the default
 * @handle: out
 */
struct kdapl_psp_create {
	struct kdapl_hdr hdr;
	__u64 conn_qual;
	__u64 evd;
	__u32 flags;
	__u32 backlog;
	__u64 handle;
};

#define KDAPL_PSP_CONSUMER	0	/* the consumer brings the EP */
#define KDAPL_PSP_PROVIDER	1	/* each request comes with a new EP */

/**
 * struct kdapl_psp_query - KDAPL_PSP_QUERY
 * @handle: in; the rest is out
 */
struct kdapl_psp_query {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 conn_qual;
	__u64 evd;
	__u32 flags;
	__u32 backlog;
};

/**
 * struct kdapl_rsp - KDAPL_RSP_CREATE and KDAPL_RSP_QUERY: a Reserved Service
 * Point takes one request, for one EP
 * @handle: CREATE: out; QUERY: in, and the rest is out
 * @conn_qual: in: not 0
 * @evd: in: needs KDAPL_EVD_CR
 * @ep: in: an unconnected EP, reserved from now on; 0: a new one comes with the
 *          request
 */
struct kdapl_rsp {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 conn_qual;
	__u64 evd;
	__u64 ep;
};

/**
 * struct kdapl_csp - KDAPL_CSP_CREATE and KDAPL_CSP_QUERY: a Common Service Point
 * listens at an address instead of for a connection qualifier
 * @handle: CREATE: out; QUERY: in, and the rest is out
 * @address: in: an address of the IA's network device with a port, 0 for any
 *          free one; family 0 for the IA's own; out: as it is listened at
 * @evd: in: needs KDAPL_EVD_CR
 * @domain: in: DAT_COMM: AF_INET or AF_INET6 as in @address, or 0
 * @type: in: DAT_COMM: SOCK_STREAM (1), or 0
 * @protocol: in: DAT_COMM: 0
 * @pad: 0
 */
struct kdapl_csp {
	struct kdapl_hdr hdr;
	__u64 handle;
	struct kdapl_sockaddr address;
	__u64 evd;
	__u32 domain;
	__u32 type;
	__u32 protocol;
	__u32 pad;
};

/**
 * struct kdapl_cr_query - KDAPL_CR_QUERY
 * @handle: in; the rest is out
 * @remote_port_qual: the port that the request came from
 * @local_ep: the reserved or provided EP; 0 if the consumer brings it
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
 * struct kdapl_cr_answer - KDAPL_CR_ACCEPT and KDAPL_CR_REJECT
 * @handle: in: the CR, gone after success
 * @ep: in: ACCEPT: an unconnected EP, or 0 for the one that came with the
 *          request or is reserved for it; REJECT: 0
 * @private_data: in: address of @private_data_size bytes
 * @private_data_size: in
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
 * struct kdapl_cr_handoff - KDAPL_CR_HANDOFF: give a request to another service
 * point of the same device and address
 * @handle: in: the CR, gone after success
 * @conn_qual: in: of a service point of the same user, in whatever process; of
 *          any user with CAP_NET_ADMIN
 */
struct kdapl_cr_handoff {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 conn_qual;
};

/* struct kdapl_lmr_create.privileges: DAT_MEM_PRIV_FLAGS */
#define KDAPL_MEM_LOCAL_READ	0x01
#define KDAPL_MEM_REMOTE_READ	0x02
#define KDAPL_MEM_LOCAL_WRITE	0x10
#define KDAPL_MEM_REMOTE_WRITE	0x20
#define KDAPL_MEM_ALL		0x33
#define KDAPL_MEM_REMOTE_ATOMIC	0x40	/* FETCH_ADD and CMP_SWAP; not among ALL, as in DAT */

/**
 * struct kdapl_lmr_create - KDAPL_LMR_CREATE
 * @pz: in
 * @address: in: start of the region in the caller's memory
 * @length: in: bytes, at least 1
 * @mem_type: in: 0 (DAT_MEM_TYPE_VIRTUAL)
 * @privileges: in: KDAPL_MEM_*
 * @va_type: in: 0 (DAT_VA_TYPE_VA)
 * @lmr_context: out: for local triplets
 * @rmr_context: out: for the peer's remote triplets
 * @pad: 0
 * @registered_address: out: start of what was registered
 * @registered_size: out: bytes registered
 * @handle: out
 */
struct kdapl_lmr_create {
	struct kdapl_hdr hdr;
	__u64 pz;
	__u64 address;
	__u64 length;
	__u32 mem_type;
	__u32 privileges;
	__u32 va_type;
	__u32 lmr_context;
	__u32 rmr_context;
	__u32 pad;
	__u64 registered_address;
	__u64 registered_size;
	__u64 handle;
};

/**
 * struct kdapl_lmr_query - KDAPL_LMR_QUERY
 * @handle: in; the rest is out, as in struct kdapl_lmr_create
 */
struct kdapl_lmr_query {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 pz;
	__u64 address;
	__u64 length;
	__u64 registered_address;
	__u64 registered_size;
	__u32 mem_type;
	__u32 privileges;
	__u32 va_type;
	__u32 lmr_context;
	__u32 rmr_context;
	__u32 pad;
};

#define KDAPL_IOC_MAGIC		0xda

/* The number of a request with a message of another size. */
#define KDAPL_SIZED(request, size) \
	_IOC(_IOC_DIR(request), _IOC_TYPE(request), _IOC_NR(request), size)

#define KDAPL_DEVICE_GET	_IOWR(KDAPL_IOC_MAGIC, 0x00, struct kdapl_device)
#define KDAPL_IA_OPEN		_IOWR(KDAPL_IOC_MAGIC, 0x01, struct kdapl_ia_open)
#define KDAPL_IA_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x02, struct kdapl_ia_query)
#define KDAPL_IA_CLOSE		_IOWR(KDAPL_IOC_MAGIC, 0x03, struct kdapl_ia_close)

#define KDAPL_PZ_CREATE		_IOWR(KDAPL_IOC_MAGIC, 0x10, struct kdapl_handle)
#define KDAPL_PZ_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x11, struct kdapl_handle)

#define KDAPL_EVD_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x20, struct kdapl_evd_create)
#define KDAPL_EVD_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x21, struct kdapl_handle)
#define KDAPL_EVD_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x22, struct kdapl_evd_query)
#define KDAPL_EVD_WAIT		_IOWR(KDAPL_IOC_MAGIC, 0x23, struct kdapl_evd_wait)
#define KDAPL_EVD_DEQUEUE	_IOWR(KDAPL_IOC_MAGIC, 0x24, struct kdapl_evd_wait)
#define KDAPL_EVD_POST_SE	_IOWR(KDAPL_IOC_MAGIC, 0x25, struct kdapl_evd_post_se)

#define KDAPL_EVD_MODIFY_CNO	_IOWR(KDAPL_IOC_MAGIC, 0x26, struct kdapl_evd_modify_cno)
#define KDAPL_EVD_ENABLE	_IOWR(KDAPL_IOC_MAGIC, 0x27, struct kdapl_handle)
#define KDAPL_EVD_DISABLE	_IOWR(KDAPL_IOC_MAGIC, 0x28, struct kdapl_handle)
#define KDAPL_EVD_SET_UNWAITABLE _IOWR(KDAPL_IOC_MAGIC, 0x29, struct kdapl_handle)
#define KDAPL_EVD_CLEAR_UNWAITABLE _IOWR(KDAPL_IOC_MAGIC, 0x2a, struct kdapl_handle)
#define KDAPL_EVD_RESIZE	_IOWR(KDAPL_IOC_MAGIC, 0x2b, struct kdapl_evd_resize)

#define KDAPL_EP_CREATE		_IOWR(KDAPL_IOC_MAGIC, 0x30, struct kdapl_ep_create)
#define KDAPL_EP_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x31, struct kdapl_handle)
#define KDAPL_EP_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x32, struct kdapl_ep_query)
#define KDAPL_EP_GET_STATUS	_IOWR(KDAPL_IOC_MAGIC, 0x33, struct kdapl_ep_status)
#define KDAPL_EP_CONNECT	_IOWR(KDAPL_IOC_MAGIC, 0x34, struct kdapl_ep_connect)
#define KDAPL_EP_DISCONNECT	_IOWR(KDAPL_IOC_MAGIC, 0x35, struct kdapl_ep_disconnect)
#define KDAPL_EP_PRIVATE_DATA	_IOWR(KDAPL_IOC_MAGIC, 0x36, struct kdapl_ep_private_data)
#define KDAPL_EP_POST		_IOWR(KDAPL_IOC_MAGIC, 0x37, struct kdapl_ep_post)
#define KDAPL_EP_MODIFY		_IOWR(KDAPL_IOC_MAGIC, 0x38, struct kdapl_ep_modify)
#define KDAPL_EP_RESET		_IOWR(KDAPL_IOC_MAGIC, 0x39, struct kdapl_handle)
#define KDAPL_EP_DUP_CONNECT	_IOWR(KDAPL_IOC_MAGIC, 0x3a, struct kdapl_ep_dup_connect)
#define KDAPL_EP_COMMON_CONNECT	_IOWR(KDAPL_IOC_MAGIC, 0x3b, struct kdapl_ep_common_connect)
#define KDAPL_EP_SUBMIT		_IOWR(KDAPL_IOC_MAGIC, 0x3c, struct kdapl_ep_submit)

#define KDAPL_PSP_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x40, struct kdapl_psp_create)
#define KDAPL_PSP_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x41, struct kdapl_handle)
#define KDAPL_PSP_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x42, struct kdapl_psp_query)
#define KDAPL_RSP_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x43, struct kdapl_rsp)
#define KDAPL_RSP_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x44, struct kdapl_handle)
#define KDAPL_RSP_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x45, struct kdapl_rsp)
#define KDAPL_CSP_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x46, struct kdapl_csp)
#define KDAPL_CSP_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x47, struct kdapl_handle)
#define KDAPL_CSP_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x48, struct kdapl_csp)

#define KDAPL_CR_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x50, struct kdapl_cr_query)
#define KDAPL_CR_ACCEPT		_IOWR(KDAPL_IOC_MAGIC, 0x51, struct kdapl_cr_answer)
#define KDAPL_CR_REJECT		_IOWR(KDAPL_IOC_MAGIC, 0x52, struct kdapl_cr_answer)
#define KDAPL_CR_HANDOFF	_IOWR(KDAPL_IOC_MAGIC, 0x53, struct kdapl_cr_handoff)

#define KDAPL_LMR_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x60, struct kdapl_lmr_create)
#define KDAPL_LMR_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x61, struct kdapl_handle)
#define KDAPL_LMR_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x62, struct kdapl_lmr_query)

#define KDAPL_CNO_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x70, struct kdapl_cno)
#define KDAPL_CNO_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x71, struct kdapl_handle)
#define KDAPL_CNO_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x72, struct kdapl_cno_query)
#define KDAPL_CNO_WAIT		_IOWR(KDAPL_IOC_MAGIC, 0x73, struct kdapl_cno_wait)
#define KDAPL_CNO_TRIGGER	_IOWR(KDAPL_IOC_MAGIC, 0x74, struct kdapl_handle)
#define KDAPL_CNO_MODIFY_AGENT	_IOWR(KDAPL_IOC_MAGIC, 0x75, struct kdapl_cno)
#define KDAPL_CNO_FD		_IOWR(KDAPL_IOC_MAGIC, 0x76, struct kdapl_cno_fd)

#endif /* _UAPI_RDMA_KDAPL_H */

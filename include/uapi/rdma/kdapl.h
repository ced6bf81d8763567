/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * The ioctl interface of /dev/kdapl. Kernel and user space both use this definition.
 *
 * kDAPL implements DAT, the Direct Access Transport, an API for remote direct memory access (RDMA).
 * The abbreviations of DAT's objects are: Interface Adapter (IA), Protection Zone (PZ), Endpoint
 * (EP), Event Dispatcher (EVD), Consumer Notification Object (CNO), Connection Request (CR), Local
 * and Remote Memory Region (LMR, RMR), Shared Receive Queue (SRQ), and Public, Reserved and Common
 * Service Point (PSP, RSP, CSP). A DTO is a data transfer operation.
 *
 * Rules for every message (docs/ioctl.md has the details):
 *
 * -  One open file is one IA. KDAPL_IA_OPEN comes first and carries KDAPL_ABI_VERSION. A handle is
 *   valid only in the file that returned it.
 * -  Every message starts with struct kdapl_hdr. `size` is the size of the whole message as the
 *   caller knows it. It equals the size in the ioctl number; KDAPL_SIZED makes the number of a
 *   message of another size. New members are added at the end of a message. The kernel treats a
 *   message that is shorter than its own as if zeros followed, down to the first published size. It
 *   accepts a longer message if all bytes beyond its own size are zero (E2BIG otherwise). It writes
 *   no further than `size`.
 * -  An array is passed as an address, a count, and the size of an element as the caller knows it:
 *   a multiple of 8, at most KDAPL_ELEMENT_MAX. Elements are extended as messages are. In an
 *   element that the kernel fills in, the bytes beyond its own size become zero. Private data are
 *   bytes, not an array.
 * -  A struct inside a message can be extended as well: it has reserved words (kdapl_ep_attr,
 *   kdapl_sockaddr), is the last member (kdapl_dto), or is an element of an array (kdapl_event).
 *   kdapl_hdr never changes.
 * -  `hdr.flags` is 0 except for the KDAPL_FLAG_* that the call supports. Members named `pad` or
 *   `reserved` are zero in both directions.
 * -  `hdr.ret` holds the DAT return code; the ioctl itself then returns 0. errno only reports that
 *   the kernel could not accept the message: EFAULT (bad pointer), ENOTTY (unknown request), EINVAL
 *   (wrong size, unknown version or flag, non-zero padding), E2BIG (unknown trailing members).
 * -  All members have a fixed width and are naturally aligned. There is no hidden padding, so that
 *   32-bit and 64-bit programs have the same layout.
 * -  Times are in nanoseconds, except peer_timeout_ms. Sizes are in bytes, queue lengths in
 *   entries.
 * -  The numbers of flags, states, events and return codes are those of DAT 2.0.
 */
#ifndef _UAPI_RDMA_KDAPL_H
#define _UAPI_RDMA_KDAPL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KDAPL_ABI_VERSION	2
#define KDAPL_DEVICE_NAME	"kdapl"
#define KDAPL_NAME_MAX		64	/* bytes, including the NUL */
#define KDAPL_PRIVATE_DATA_MAX	256	/* bytes; a transport may carry less, see IA_QUERY */
#define KDAPL_IOV_MAX		32	/* segments of one DTO */
#define KDAPL_ELEMENT_MAX	4096	/* bytes of an array element */
#define KDAPL_TIMEOUT_INFINITE	0x7fffffffffffffffULL	/* and all larger values */

/**
 * struct kdapl_hdr - header of every message
 * @size: in: size of the whole message in bytes
 * @flags: in: mask of the KDAPL_FLAG_* that the call supports
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
 * Makes @timeout_ns a time of the caller's CLOCK_MONOTONIC instead of a duration. Supported by
 * EVD_WAIT, EP_SUBMIT, CNO_WAIT, EP_CONNECT, EP_DUP_CONNECT and EP_COMMON_CONNECT.
 */
#define KDAPL_FLAG_ABSOLUTE	0x1
/*
 * Takes a trigger that the eventfd of a CNO has reported, instead of one for waiters. Does not
 * sleep: @timeout_ns is 0. Supported by CNO_WAIT.
 */
#define KDAPL_FLAG_AGENT	0x2
/*
 * Closes the ready gate of the connection: ESTABLISHED and all later events wait for EP_READY.
 * Supported by EP_CONNECT, EP_DUP_CONNECT, EP_COMMON_CONNECT and CR_ACCEPT.
 */
#define KDAPL_FLAG_READY_GATE	0x4

/**
 * struct kdapl_sockaddr - IP address
 * @sa: a struct sockaddr_in or sockaddr_in6 in native layout. The kernel ignores the bytes after it
 *         on input, and fills them with zeros on output. Has the size of struct sockaddr_storage.
 */
struct kdapl_sockaddr {
	__u8 sa[128];
};

/**
 * struct kdapl_device - KDAPL_DEVICE_GET: query an RDMA device
 * @hdr: header; @hdr.ret is DAT_PROVIDER_NOT_FOUND if there is no device with this index
 * @index: in: index of the device, counted from 0
 * @abi_version: out: the kernel's KDAPL_ABI_VERSION
 * @name: out: name of the RDMA device, as KDAPL_IA_OPEN takes it
 * @netdev: out: name of the network device of that IA
 * @address: out: address of an IA of that name; family 0 if there is none
 * @node_guid: out: GUID of the device in host byte order
 * @transport: out: KDAPL_TRANSPORT_*
 * @port_active: out: 1 if the port is up
 * @flags: out: KDAPL_DEVICE_*
 *
 * Needs no open IA, unlike all other messages except KDAPL_IA_OPEN.
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

/* Only processes with CAP_SYS_RAWIO may open the device (docs/drivers.md). */
#define KDAPL_DEVICE_RESTRICTED	0x1

#define KDAPL_TRANSPORT_IB	0
#define KDAPL_TRANSPORT_ROCE	1
#define KDAPL_TRANSPORT_IWARP	2

/**
 * struct kdapl_port - KDAPL_PORT_GET: query a port of an RDMA device, and one of its addresses
 * @hdr: header; @hdr.ret is DAT_PROVIDER_NOT_FOUND if there is no such device or port
 * @device: in: index of the device, counted from 0
 * @port: in: number of the port, mostly counted from 1
 * @address_index: in: index of the address, counted from 0
 * @addresses: out: number of addresses of the port
 * @netdev: out: name of the network device that has the address; that of the port without an address
 * @address: out: address; family 0 if there is none with this index
 * @prefix: out: bits of the address that name its network
 * @transport: out: KDAPL_TRANSPORT_*
 * @port_active: out: 1 if the port is up
 * @max_message_size: out: maximum size of a message
 *
 * Needs no open IA, like KDAPL_DEVICE_GET.
 */
struct kdapl_port {
	struct kdapl_hdr hdr;
	__u32 device;
	__u32 port;
	__u32 address_index;
	__u32 addresses;
	__u8 netdev[KDAPL_NAME_MAX];
	struct kdapl_sockaddr address;
	__u32 prefix;
	__u32 transport;
	__u32 port_active;
	__u32 max_message_size;
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

/**
 * struct kdapl_ia_open - KDAPL_IA_OPEN: open an IA
 * @hdr: header
 * @abi_version: in: KDAPL_ABI_VERSION
 * @async_evd_qlen: in: minimum queue length of the asynchronous EVD, at least 1
 * @name: in: place of the IA, NUL-terminated: SUBJECT[/PORT][@PLACE]. SUBJECT is an RDMA device, a
 *	network device or an IP address. PORT is a number. PLACE is a network device or an IP address.
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
 * @max_lmrs: maximum number of LMRs
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
 * @pad: 0
 * @max_srqs: maximum number of SRQs; 0 if the device has none
 * @max_recv_per_srq: maximum number of receives of an SRQ
 * @max_iov_segments_per_srq: maximum number of segments of a receive of an SRQ
 * @port: number of the device's port
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
	__u32 max_srqs;
	__u32 max_recv_per_srq;
	__u32 max_iov_segments_per_srq;
	__u32 port;
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

#define KDAPL_CLOSE_ABRUPT	0
#define KDAPL_CLOSE_GRACEFUL	1

/**
 * struct kdapl_handle - KDAPL_*_FREE, and other messages that consist of a handle
 * @hdr: header
 * @handle: in: handle of the object; out for KDAPL_PZ_CREATE
 */
struct kdapl_handle {
	struct kdapl_hdr hdr;
	__u64 handle;
};

/* KDAPL_EVD_CREATE.flags: event streams that may feed the EVD. */
#define KDAPL_EVD_SOFTWARE	0x001
#define KDAPL_EVD_CR		0x010
#define KDAPL_EVD_DTO		0x020
#define KDAPL_EVD_CONNECTION	0x040
#define KDAPL_EVD_RMR_BIND	0x080
#define KDAPL_EVD_ASYNC		0x100
#define KDAPL_EVD_FLAGS_ALL	0x1f1

/**
 * struct kdapl_evd_create - KDAPL_EVD_CREATE: create an EVD
 * @hdr: header
 * @qlen: in: minimum queue length, 1 .. max_evd_qlen; out: actual queue length
 * @flags: in: KDAPL_EVD_*, at least one
 * @cno: in: CNO that the EVD triggers, or 0
 * @vector: in: completion vector for the EVD's completions, below completion_vectors of
 *         KDAPL_IA_QUERY; -1 selects the vector of the caller's CPU
 * @pad: 0
 * @handle: out: handle of the EVD
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
 * struct kdapl_evd_query - KDAPL_EVD_QUERY: query the parameters of an EVD
 * @hdr: header
 * @handle: in: EVD
 * @cno: out: CNO that the EVD triggers, or 0
 * @qlen: out: queue length
 * @state: out: KDAPL_EVD_ENABLED or _DISABLED, KDAPL_EVD_WAITABLE or _UNWAITABLE, and one of
 *         KDAPL_EVD_CONFIG_*
 * @flags: out: KDAPL_EVD_*
 * @queued: out: number of events that can be dequeued, without the completions that are still in
 *         the device's completion queues
 * @vector: out: completion vector of the first completion queue
 * @cqs: out: number of completion queues
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
/* Completions that wake a waiter, determined by the completion flags of the EVD's EPs. */
#define KDAPL_EVD_CONFIG_NOTIFY	0x10	/* DTOs without UNSIGNALLED */
#define KDAPL_EVD_CONFIG_SOLICITED 0x20	/* messages with SOLICITED_WAIT */
#define KDAPL_EVD_CONFIG_THRESHOLD 0x30	/* all; the default */

/**
 * struct kdapl_evd_modify_cno - KDAPL_EVD_MODIFY_CNO: change the CNO of an EVD
 * @hdr: header
 * @handle: in: EVD
 * @cno: in: CNO that the EVD triggers from now on, or 0
 */
struct kdapl_evd_modify_cno {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 cno;
};

/**
 * struct kdapl_evd_resize - KDAPL_EVD_RESIZE: change the queue length of an EVD
 * @hdr: header
 * @handle: in: EVD
 * @qlen: in: minimum queue length, 1 .. max_evd_qlen; out: actual queue length
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
 * @hdr: header
 * @handle: handle of the CNO; out for KDAPL_CNO_CREATE, else in
 * @agent_fd: in: eventfd that each trigger signals, or -1
 * @pad: 0
 */
struct kdapl_cno {
	struct kdapl_hdr hdr;
	__u64 handle;
	__s32 agent_fd;
	__u32 pad;
};

/**
 * struct kdapl_cno_query - KDAPL_CNO_QUERY: query the state of a CNO
 * @hdr: header
 * @handle: in: CNO
 * @has_agent: out: 1 if the CNO has an eventfd
 * @evds: out: number of EVDs that trigger the CNO
 * @triggered: out: number of EVDs that have triggered and that no wait has returned yet
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
 * struct kdapl_cno_wait - KDAPL_CNO_WAIT: wait for a trigger of a CNO
 * @hdr: header
 * @evd: out: EVD that triggered the CNO, or 0 after KDAPL_CNO_TRIGGER
 * @handle: in: CNO
 * @timeout_ns: in: as in struct kdapl_evd_wait
 */
struct kdapl_cno_wait {
	struct kdapl_hdr hdr;
	__u64 evd;
	__u64 handle;
	__u64 timeout_ns;
};

/**
 * struct kdapl_cno_fd - KDAPL_CNO_FD: open a file to read the triggers of a CNO, and to poll for them
 * @hdr: header
 * @handle: in: CNO
 * @fd: out: file descriptor with FD_CLOEXEC; -1 after an error
 * @pad: 0
 */
struct kdapl_cno_fd {
	struct kdapl_hdr hdr;
	__u64 handle;
	__s32 fd;
	__u32 pad;
};

/**
 * struct kdapl_trigger - trigger of a CNO; record of the file of KDAPL_CNO_FD
 * @evd: EVD that triggered the CNO, or 0 after KDAPL_CNO_TRIGGER
 */
struct kdapl_trigger {
	__u64 evd;
};

/* struct kdapl_event.number */
#define KDAPL_EVENT_DTO_COMPLETION		0x00001
#define KDAPL_EVENT_RMR_BIND_COMPLETION		0x01001
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
#define KDAPL_EVENT_IB_DTO			0x40000	/* DTO_COMPLETION of a KDAPL_IB_DTO_* */

/**
 * struct kdapl_event - event; element of an array
 * @number: type of the event, KDAPL_EVENT_*
 * @status: DTO and bind: DAT_DTO_COMPLETION_STATUS; asynchronous: reason code
 * @evd: EVD that the event was taken from
 * @object: DTO and connection: EP; bind: RMR; request: CR; asynchronous: object that the error occurred on
 * @cookie: DTO and bind: cookie of the post; request: service point (PSP, RSP or CSP); software: pointer
 * @value: DTO: number of bytes transferred; request: connection qualifier
 * @operation: DTO: KDAPL_DTO_* or KDAPL_IB_DTO_*
 * @rmr_context: RECEIVE_WITH_INVALIDATE: RMR context that the peer invalidated
 * @private_data_size: request, ESTABLISHED and PEER_REJECTED: size of the private data
 * @immed_data: KDAPL_IB_DTO_RECV_IMMED and _RECV_MSG_IMMED: immediate data
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
#define KDAPL_EVENTS_MAX	256	/* events taken by one call */

/**
 * struct kdapl_evd_wait - KDAPL_EVD_WAIT and KDAPL_EVD_DEQUEUE: take events from an EVD
 * @hdr: header
 * @taken: out: number of events in @events
 * @nmore: out: number of events left in the queue
 * @handle: in: EVD
 * @timeout_ns: in: time to wait, counted from the entry of the call; with KDAPL_FLAG_ABSOLUTE, the
 *         time at which the wait ends. KDAPL_TIMEOUT_INFINITE waits without a limit. WAIT only.
 * @threshold: in: number of events to wait for, 1 .. qlen; WAIT only
 * @max_events: in: capacity of @events, at least 1. Values above KDAPL_EVENTS_MAX are treated as
 *         KDAPL_EVENTS_MAX.
 * @events: in: address of an array of @max_events struct kdapl_event, which the kernel fills in
 * @event_size: in: size of an element of @events, at least KDAPL_EVENT_SIZE_MIN
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
 * struct kdapl_evd_fd - KDAPL_EVD_FD: open a file to read the events of an EVD, to poll for them, and
 * to write software events
 * @hdr: header
 * @handle: in: EVD
 * @fd: out: file descriptor with FD_CLOEXEC; -1 after an error
 * @event_size: in: size of a record that is read, at least KDAPL_EVENT_SIZE_MIN. The record is a
 *         struct kdapl_event. A record that is written is a __u64: the pointer of a software event.
 */
struct kdapl_evd_fd {
	struct kdapl_hdr hdr;
	__u64 handle;
	__s32 fd;
	__u32 event_size;
};

/*
 * Mapped events: mmap() of /dev/kdapl at KDAPL_MAP_OFFSET. See docs/ioctl.md, "Mapped events".
 */
#define KDAPL_MAP_EVENTS	0	/* two pages, read-only: struct kdapl_mapped_ring, the events */
#define KDAPL_MAP_INDEX		1	/* one page, to read and write: struct kdapl_mapped_index */
#define KDAPL_MAP_EVD_SHIFT	17
#define KDAPL_MAP_EVD_MASK	0x7ffffffffffULL	/* low bits of the handle */
#define KDAPL_MAP_AREA_SHIFT	16
#define KDAPL_MAP_OFFSET(evd, area) \
	(((evd) & KDAPL_MAP_EVD_MASK) << KDAPL_MAP_EVD_SHIFT | (area) << KDAPL_MAP_AREA_SHIFT)

/* struct kdapl_mapped_ring.flags */
#define KDAPL_MAPPED_CALLS_ONLY	0x1	/* take events by calls */

/**
 * struct kdapl_mapped_ring - events of an EVD that a process takes without a call
 * @tail: index after the newest event. The kernel advances it.
 * @flags: KDAPL_MAPPED_*
 * @slots: number of slots: a power of two
 * @empty: not 0 while no event is queued but the mapped ones
 *
 * The slot of an index is its remainder by @slots. The slots are the second page: an array of
 * struct kdapl_event.
 */
struct kdapl_mapped_ring {
	__u32 tail;
	__u32 flags;
	__u32 slots;
	__u32 empty;
};

/**
 * struct kdapl_mapped_index - position of the process in the mapped events
 * @head: index of the oldest event. A thread takes an event by advancing it with a
 *        compare-and-exchange.
 * @pad: 0
 */
struct kdapl_mapped_index {
	__u32 head;
	__u32 pad;
};

/**
 * struct kdapl_evd_post_se - KDAPL_EVD_POST_SE: post a software event
 * @hdr: header
 * @handle: in: EVD with KDAPL_EVD_SOFTWARE
 * @pointer: in: cookie of the event
 */
struct kdapl_evd_post_se {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 pointer;
};

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
 * A numeric member of 0 selects the default, except in the numbers of RDMA Reads (docs/ioctl.md).
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
 * @pz may be 0 (DAT_HANDLE_NULL). The EP is then unconfigured until KDAPL_EP_MODIFY has supplied it.
 * An EVD may be 0: its events are discarded, but without @connect_evd the failure of a connection is
 * KDAPL_EVENT_ASYNC_EP_BROKEN.
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

/* DAT_QOS: exactly one of them. */
#define KDAPL_QOS_BEST_EFFORT		0
#define KDAPL_QOS_HIGH_THROUGHPUT	1
#define KDAPL_QOS_LOW_LATENCY		2
#define KDAPL_QOS_ECONOMY		4
#define KDAPL_QOS_PREMIUM		8

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

/**
 * struct kdapl_triplet - segment of an LMR or of the peer's RMR
 * @address: virtual address of the first byte
 * @length: number of bytes
 * @context: lmr_context (local) or rmr_context (remote)
 *
 * The first published size is the present one.
 */
struct kdapl_triplet {
	__u64 address;
	__u32 length;
	__u32 context;
};

/* struct kdapl_dto.operation and struct kdapl_event.operation. */
#define KDAPL_DTO_SEND		0
#define KDAPL_DTO_RDMA_WRITE	1
#define KDAPL_DTO_RDMA_READ	2
#define KDAPL_DTO_RECEIVE	3
#define KDAPL_DTO_RECEIVE_WITH_INVALIDATE	4	/* in events only; it is posted as RECEIVE */
#define KDAPL_DTO_SEND_WITH_INVALIDATE	0x100	/* its event is that of a SEND */
#define KDAPL_DTO_RDMA_READ_TO_RMR	0x101	/* its event is that of an RDMA_READ */

/* InfiniBand extensions. The receives occur in events only; they are posted as RECEIVE. */
#define KDAPL_IB_DTO_RDMA_WRITE_IMMED	8
#define KDAPL_IB_DTO_RECV_IMMED		9	/* consumed by an RDMA Write with immediate data */
#define KDAPL_IB_DTO_FETCH_ADD		10
#define KDAPL_IB_DTO_CMP_SWAP		11
#define KDAPL_IB_DTO_RECV_MSG_IMMED	12	/* consumed by a Send with immediate data */

/* DAT_COMPLETION_FLAGS: struct kdapl_dto.flags and the completion flags of an EP. */
#define KDAPL_COMPLETION_SUPPRESS	0x01	/* DTO: all but receives */
#define KDAPL_COMPLETION_SOLICITED_WAIT	0x02	/* DTO: if it consumes a receive; EP: receives */
#define KDAPL_COMPLETION_UNSIGNALLED	0x04	/* DTO: if its EP has the flag; EP */
#define KDAPL_COMPLETION_BARRIER_FENCE	0x08	/* DTO: all but receives */
#define KDAPL_COMPLETION_EVD_THRESHOLD	0x10	/* EP only */

/**
 * struct kdapl_dto - DTO to post
 * @operation: KDAPL_DTO_* or KDAPL_IB_DTO_*
 * @flags: KDAPL_COMPLETION_*
 * @cookie: cookie of the completion
 * @iov: address of an array of @iov_count struct kdapl_triplet, the local segments
 * @iov_count: number of local segments, 0 .. the EP's limit for @operation; 1 for FETCH_ADD,
 *         CMP_SWAP and RDMA_READ_TO_RMR, whose segment has an RMR context of this side
 * @iov_size: size of an element of @iov; ignored if @iov_count is 0
 * @remote: segment of the peer's memory, for all operations but SEND and RECEIVE. @remote.length is
 *         at least the sum of the local lengths, or 0 to omit the check. SEND_WITH_INVALIDATE:
 *         @remote.context is the RMR context that the peer's device invalidates.
 * @compare_add: FETCH_ADD: value to add; CMP_SWAP: value to compare with
 * @swap: CMP_SWAP: value to store if the comparison succeeds
 * @immed_data: RDMA_WRITE_IMMED: immediate data for the completion of the peer's receive
 * @reserved: 0
 *
 * The kernel ignores the members that an operation does not use. The first published size ends
 * before @remote; it suffices for SEND and RECEIVE.
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
 * struct kdapl_ep_post - KDAPL_EP_POST: post a DTO
 * @hdr: header
 * @handle: in: EP
 * @dto: in: DTO; the message is extended when struct kdapl_dto is
 */
struct kdapl_ep_post {
	struct kdapl_hdr hdr;
	__u64 handle;
	struct kdapl_dto dto;
};

#define KDAPL_EP_POST_SIZE_MIN	56

#define KDAPL_SUBMIT_MAX	256	/* DTOs posted by one KDAPL_EP_SUBMIT */

/**
 * struct kdapl_ep_submit - KDAPL_EP_SUBMIT: post DTOs, then wait for events
 * @hdr: header
 * @posted: out: number of DTOs posted: all, or those before the first that is refused
 * @taken: out: as in struct kdapl_evd_wait, like all members without a description
 * @nmore: out
 * @event_size: in
 * @handle: in: EP
 * @dtos: in: address of an array of @count struct kdapl_dto
 * @count: in: number of DTOs, 0 .. KDAPL_SUBMIT_MAX
 * @dto_size: in: size of an element of @dtos, at least KDAPL_DTO_SIZE_MIN; ignored if @count is 0
 * @evd: in: EVD to wait on, or 0 to post only
 * @timeout_ns: in: a duration counts from the last post
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
 * Connection qualifiers. Up to 65535, a connection qualifier is an rdma_cm port, and the peer may
 * be any rdma_cm program. Above, the request is sent to KDAPL_SHARED_PORT. Its private data then
 * begin with a header of KDAPL_WIDE_QUAL_OVERHEAD bytes, in network byte order:
 *
 * 	__u8	magic[2];	"KD"
 * 	__u8	version;	1
 * 	__u8	length;		size of the consumer's data after the header
 * 	__be64	conn_qual;
 *
 * The consumer of the service point sees only its own data, in their original size. rdma_cm
 * reserves ports below 1024 for the administrator, so that no user can occupy the shared port.
 */
#define KDAPL_SHARED_PORT		299
#define KDAPL_WIDE_QUAL_OVERHEAD	12

/**
 * struct kdapl_psp_create - KDAPL_PSP_CREATE: create a PSP
 * @hdr: header
 * @conn_qual: in: connection qualifier to listen for, or 0 to choose a free one
 *         (dat_psp_create_any); out: connection qualifier listened for. Up to 65535 it is an
 *         rdma_cm port.
 * @evd: in: EVD with KDAPL_EVD_CR
 * @flags: in: KDAPL_PSP_*
 * @backlog: in: maximum number of unanswered requests, 0 for the default
 * @handle: out: handle of the PSP
 */
struct kdapl_psp_create {
	struct kdapl_hdr hdr;
	__u64 conn_qual;
	__u64 evd;
	__u32 flags;
	__u32 backlog;
	__u64 handle;
};

#define KDAPL_PSP_CONSUMER	0	/* the consumer supplies the EP of each accept */
#define KDAPL_PSP_PROVIDER	1	/* each request comes with a new EP */

/**
 * struct kdapl_psp_query - KDAPL_PSP_QUERY: query the parameters of a PSP
 * @hdr: header
 * @handle: in: PSP
 * @conn_qual: out: as in struct kdapl_psp_create, like the following members
 * @evd: out
 * @flags: out
 * @backlog: out
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
 * struct kdapl_rsp - KDAPL_RSP_CREATE and KDAPL_RSP_QUERY. An RSP takes one request, for one EP.
 * @hdr: header
 * @handle: handle of the RSP; out for CREATE, in for QUERY. For QUERY the other members are out.
 * @conn_qual: in: connection qualifier to listen for, not 0
 * @evd: in: EVD with KDAPL_EVD_CR
 * @ep: in: unconnected EP that the call reserves; with 0 the request comes with a new EP
 */
struct kdapl_rsp {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 conn_qual;
	__u64 evd;
	__u64 ep;
};

/**
 * struct kdapl_csp - KDAPL_CSP_CREATE and KDAPL_CSP_QUERY. A CSP listens at an address instead of
 * for a connection qualifier.
 * @hdr: header
 * @handle: handle of the CSP; out for CREATE, in for QUERY. For QUERY the other members are out.
 * @address: in: address of the IA's network device with a port, 0 for any free port. Family 0
 *         selects the IA's address. Out: address and port listened at.
 * @evd: in: EVD with KDAPL_EVD_CR
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

/* struct kdapl_lmr_create.privileges: DAT_MEM_PRIV_FLAGS. */
#define KDAPL_MEM_LOCAL_READ	0x01
#define KDAPL_MEM_REMOTE_READ	0x02
#define KDAPL_MEM_LOCAL_WRITE	0x10
#define KDAPL_MEM_REMOTE_WRITE	0x20
#define KDAPL_MEM_ALL		0x33
#define KDAPL_MEM_REMOTE_ATOMIC	0x40	/* FETCH_ADD and CMP_SWAP; not in ALL, as in DAT */

/**
 * struct kdapl_lmr_create - KDAPL_LMR_CREATE: create an LMR of the caller's memory
 * @hdr: header
 * @pz: in: PZ
 * @address: in: start of the region in the caller's memory
 * @length: in: length of the region, at least 1
 * @mem_type: in: 0 (DAT_MEM_TYPE_VIRTUAL)
 * @privileges: in: KDAPL_MEM_*
 * @va_type: in: 0 (DAT_VA_TYPE_VA)
 * @lmr_context: out: context for local segments
 * @rmr_context: out: context for the peer's remote segments
 * @pad: 0
 * @registered_address: out: start of the registered memory
 * @registered_size: out: length of the registered memory
 * @handle: out: handle of the LMR
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
 * struct kdapl_lmr_query - KDAPL_LMR_QUERY: query the parameters of an LMR
 * @hdr: header
 * @handle: in: LMR; all following members are out, as in struct kdapl_lmr_create
 * @pz: PZ
 * @address: start of the region
 * @length: length of the region
 * @registered_address: start of the registered memory
 * @registered_size: length of the registered memory
 * @mem_type: 0 (DAT_MEM_TYPE_VIRTUAL)
 * @privileges: KDAPL_MEM_*
 * @va_type: 0 (DAT_VA_TYPE_VA)
 * @lmr_context: context for local segments
 * @rmr_context: context for the peer's remote segments
 * @pad: 0
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

/**
 * struct kdapl_rmr_create - KDAPL_RMR_CREATE: create an RMR
 * @hdr: header
 * @pz: in: PZ
 * @handle: out: handle of the RMR
 */
struct kdapl_rmr_create {
	struct kdapl_hdr hdr;
	__u64 pz;
	__u64 handle;
};

/**
 * struct kdapl_rmr_bind - KDAPL_RMR_BIND: open a part of an LMR to the peers of its PZ
 * @hdr: header
 * @rmr_context: out: context for the peer's remote segments; 0 after an unbind
 * @pad: 0
 * @handle: in: RMR
 * @lmr: in: LMR in the PZ of the RMR; ignored if @segment.length is 0
 * @ep: in: connected EP in the PZ of the RMR. Its request EVD gets the event
 *         KDAPL_EVENT_RMR_BIND_COMPLETION.
 * @cookie: in: cookie of the event
 * @segment: in: part of the LMR, with its lmr_context; length 0 to unbind
 * @privileges: in: KDAPL_MEM_REMOTE_READ and KDAPL_MEM_REMOTE_WRITE, or 0
 * @va_type: in: 0 (DAT_VA_TYPE_VA)
 * @flags: in: KDAPL_COMPLETION_* as for an RDMA write
 * @reserved: 0
 */
struct kdapl_rmr_bind {
	struct kdapl_hdr hdr;
	__u32 rmr_context;
	__u32 pad;
	__u64 handle;
	__u64 lmr;
	__u64 ep;
	__u64 cookie;
	struct kdapl_triplet segment;
	__u32 privileges;
	__u32 va_type;
	__u32 flags;
	__u32 reserved;
};

/**
 * struct kdapl_rmr_query - KDAPL_RMR_QUERY: query the parameters of an RMR
 * @hdr: header
 * @handle: in: RMR; all following members are out
 * @pz: PZ
 * @lmr: LMR that the RMR is bound to; 0, as all following members, if it is not bound
 * @segment: part of the LMR
 * @privileges: KDAPL_MEM_*
 * @rmr_context: context for the peer's remote segments
 */
struct kdapl_rmr_query {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 pz;
	__u64 lmr;
	struct kdapl_triplet segment;
	__u32 privileges;
	__u32 rmr_context;
};

#define KDAPL_IOC_MAGIC		0xda

/* Makes the number of a request whose message has another size. */
#define KDAPL_SIZED(request, size) \
	_IOC(_IOC_DIR(request), _IOC_TYPE(request), _IOC_NR(request), size)

/**
 * struct kdapl_srq_create - KDAPL_SRQ_CREATE: create an SRQ
 * @hdr: header
 * @pz: in: PZ, with the memory of the receives
 * @max_recv_dtos: in: number of receives that the SRQ holds, at least 1
 * @max_recv_iov: in: maximum number of segments of a receive, at least 1
 * @low_watermark: in: 0
 * @pad: 0
 * @handle: out: handle of the SRQ
 */
struct kdapl_srq_create {
	struct kdapl_hdr hdr;
	__u64 pz;
	__u32 max_recv_dtos;
	__u32 max_recv_iov;
	__u32 low_watermark;
	__u32 pad;
	__u64 handle;
};

/**
 * struct kdapl_srq_post - KDAPL_SRQ_POST_RECV: post a receive to an SRQ
 * @hdr: header
 * @handle: in: SRQ
 * @cookie: in: returned by the completion
 * @iov: in: address of @iov_count segments, struct kdapl_triplet
 * @iov_count: in: number of segments, at most KDAPL_IOV_MAX
 * @iov_size: in: size of a segment, at least sizeof(struct kdapl_triplet); ignored if @iov_count
 *         is 0
 */
struct kdapl_srq_post {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 cookie;
	__u64 iov;
	__u32 iov_count;
	__u32 iov_size;
};

/**
 * struct kdapl_srq_query - KDAPL_SRQ_QUERY: query the parameters of an SRQ
 * @hdr: header
 * @handle: in: SRQ
 * @ia: out: IA; all following members are out
 * @pz: PZ
 * @state: KDAPL_SRQ_OPERATIONAL
 * @max_recv_dtos: number of receives that the SRQ holds
 * @max_recv_iov: maximum number of segments of a receive
 * @low_watermark: low watermark, or 0
 * @available: number of receives that an EP may take
 * @outstanding: number of receives whose completion the consumer has not taken
 */
struct kdapl_srq_query {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u64 ia;
	__u64 pz;
	__u32 state;
	__u32 max_recv_dtos;
	__u32 max_recv_iov;
	__u32 low_watermark;
	__u32 available;
	__u32 outstanding;
};

/* DAT_SRQ_STATE. */
#define KDAPL_SRQ_ERROR		0
#define KDAPL_SRQ_OPERATIONAL	1

/**
 * struct kdapl_srq_number - KDAPL_SRQ_RESIZE, KDAPL_SRQ_SET_LW: set a number of receives of an SRQ
 * @hdr: header
 * @handle: in: SRQ
 * @number: in: KDAPL_SRQ_RESIZE: number of receives that the SRQ holds; KDAPL_SRQ_SET_LW: low
 *         watermark, or 0 for none. When fewer receives are available, one
 *         KDAPL_EVENT_ASYNC_EP_BROKEN with the handle of the SRQ and the reason
 *         KDAPL_SRQ_LOW_WATERMARK is reported.
 * @pad: 0
 */
struct kdapl_srq_number {
	struct kdapl_hdr hdr;
	__u64 handle;
	__u32 number;
	__u32 pad;
};

#define KDAPL_SRQ_LOW_WATERMARK	2	/* reason of an asynchronous event of an SRQ */

#define KDAPL_DEVICE_GET	_IOWR(KDAPL_IOC_MAGIC, 0x00, struct kdapl_device)
#define KDAPL_IA_OPEN		_IOWR(KDAPL_IOC_MAGIC, 0x01, struct kdapl_ia_open)
#define KDAPL_IA_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x02, struct kdapl_ia_query)
#define KDAPL_IA_CLOSE		_IOWR(KDAPL_IOC_MAGIC, 0x03, struct kdapl_ia_close)
#define KDAPL_PORT_GET		_IOWR(KDAPL_IOC_MAGIC, 0x04, struct kdapl_port)
#define KDAPL_IA_STAT		_IOWR(KDAPL_IOC_MAGIC, 0x05, struct kdapl_ia_stat)

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
#define KDAPL_EVD_FD		_IOWR(KDAPL_IOC_MAGIC, 0x2c, struct kdapl_evd_fd)

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
#define KDAPL_EP_SET_WATERMARK	_IOWR(KDAPL_IOC_MAGIC, 0x3d, struct kdapl_ep_watermark)
#define KDAPL_EP_RECV_QUERY	_IOWR(KDAPL_IOC_MAGIC, 0x3e, struct kdapl_ep_recv_query)
#define KDAPL_EP_READY		_IOWR(KDAPL_IOC_MAGIC, 0x3f, struct kdapl_handle)

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

#define KDAPL_RMR_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x63, struct kdapl_rmr_create)
#define KDAPL_RMR_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x64, struct kdapl_handle)
#define KDAPL_RMR_BIND		_IOWR(KDAPL_IOC_MAGIC, 0x65, struct kdapl_rmr_bind)
#define KDAPL_RMR_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x66, struct kdapl_rmr_query)

#define KDAPL_CNO_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x70, struct kdapl_cno)
#define KDAPL_CNO_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x71, struct kdapl_handle)
#define KDAPL_CNO_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x72, struct kdapl_cno_query)
#define KDAPL_CNO_WAIT		_IOWR(KDAPL_IOC_MAGIC, 0x73, struct kdapl_cno_wait)
#define KDAPL_CNO_TRIGGER	_IOWR(KDAPL_IOC_MAGIC, 0x74, struct kdapl_handle)
#define KDAPL_CNO_MODIFY_AGENT	_IOWR(KDAPL_IOC_MAGIC, 0x75, struct kdapl_cno)
#define KDAPL_CNO_FD		_IOWR(KDAPL_IOC_MAGIC, 0x76, struct kdapl_cno_fd)

#define KDAPL_SRQ_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x80, struct kdapl_srq_create)
#define KDAPL_SRQ_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x81, struct kdapl_handle)
#define KDAPL_SRQ_POST_RECV	_IOWR(KDAPL_IOC_MAGIC, 0x82, struct kdapl_srq_post)
#define KDAPL_SRQ_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x83, struct kdapl_srq_query)
#define KDAPL_SRQ_RESIZE	_IOWR(KDAPL_IOC_MAGIC, 0x84, struct kdapl_srq_number)
#define KDAPL_SRQ_SET_LW	_IOWR(KDAPL_IOC_MAGIC, 0x85, struct kdapl_srq_number)

/*
 * io_uring: IORING_OP_URING_CMD on /dev/kdapl. `cmd_op` of the submission entry is the number of any
 * request above, and `cmd` is a struct kdapl_uring_sqe. See docs/ioctl.md, "io_uring".
 */

/**
 * struct kdapl_uring_sqe - the field `cmd` of a submission entry
 * @message: in: address of the message of the request, which stays valid until the completion
 * @reserved: 0
 */
struct kdapl_uring_sqe {
	__u64 message;
	__u64 reserved;
};

/**
 * struct kdapl_uring_cancel - KDAPL_URING_CANCEL: cancel commands that wait
 * @hdr: header
 * @user_data: in: of the commands, which were submitted to the same ring for the same open file
 * @found: out: number of commands that were waiting; each of them completes
 * @pad: 0
 *
 * A command only: ioctl() fails with ENOTTY.
 */
struct kdapl_uring_cancel {
	struct kdapl_hdr hdr;
	__u64 user_data;
	__u32 found;
	__u32 pad;
};

/**
 * struct kdapl_uring_stream - KDAPL_URING_STREAM: stream the events of an EVD into provided buffers
 * @hdr: header
 * @taken: out: number of events in @buffer, if the completion queue had no room for their completion
 * @buffer: out: identifier of that provided buffer
 * @handle: in: EVD
 * @timeout_ns: in: time after which the stream ends; see KDAPL_FLAG_ABSOLUTE
 * @threshold: in: number of events to wait for, as for KDAPL_EVD_WAIT
 * @event_size: in: size of an element of the buffers, at least KDAPL_EVENT_SIZE_MIN
 *
 * A command only, with IORING_URING_CMD_MULTISHOT and IOSQE_BUFFER_SELECT. Each completion with
 * IORING_CQE_F_MORE has the number of bytes of a batch of events. The message is written when the
 * stream ends.
 */
struct kdapl_uring_stream {
	struct kdapl_hdr hdr;
	__u32 taken;
	__u32 buffer;
	__u64 handle;
	__u64 timeout_ns;
	__s32 threshold;
	__u32 event_size;
};

#define KDAPL_URING_CANCEL	_IOWR(KDAPL_IOC_MAGIC, 0x90, struct kdapl_uring_cancel)
#define KDAPL_URING_STREAM	_IOWR(KDAPL_IOC_MAGIC, 0x91, struct kdapl_uring_stream)

#endif /* _UAPI_RDMA_KDAPL_H */

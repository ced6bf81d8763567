/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Basic types of DAT: numbers, handles, flags, segments. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <netinet/in.h>

#include <dat2/dat_error.h>

#ifndef DAT_API
#define DAT_API
#endif
#ifndef DAT_EXPORT
#define DAT_EXPORT extern
#endif

/** Version of DAT that these headers declare. */
#define DAT_VERSION_MAJOR	2
#define DAT_VERSION_MINOR	0

typedef uint32_t		DAT_UINT32;
typedef uint64_t		DAT_UINT64;
typedef unsigned long long	DAT_UVERYLONG;
typedef void *			DAT_PVOID;
typedef int			DAT_COUNT;
typedef DAT_UINT64		DAT_PADDR;
typedef int			DAT_FD;
typedef char *			DAT_NAME_PTR;
/** A code of dat_error.h; DAT_SUCCESS is 0. */
typedef DAT_UINT32		DAT_RETURN;

#define DAT_NAME_MAX_LENGTH	256
/** A count that the provider does not know. */
#define DAT_VALUE_UNKNOWN	(((DAT_COUNT)~0) - 1)

typedef enum dat_boolean {
	DAT_FALSE = 0,
	DAT_TRUE = 1,
} DAT_BOOLEAN;

/** Time in microseconds. */
typedef DAT_UINT32		DAT_TIMEOUT;
#define DAT_TIMEOUT_INFINITE	((DAT_TIMEOUT)~0)

/** An object. A handle of a freed object is refused with DAT_INVALID_HANDLE. */
typedef DAT_PVOID		DAT_HANDLE;
typedef DAT_HANDLE		DAT_IA_HANDLE;
typedef DAT_HANDLE		DAT_PZ_HANDLE;
typedef DAT_HANDLE		DAT_EVD_HANDLE;
typedef DAT_HANDLE		DAT_CNO_HANDLE;
typedef DAT_HANDLE		DAT_EP_HANDLE;
typedef DAT_HANDLE		DAT_CR_HANDLE;
typedef DAT_HANDLE		DAT_PSP_HANDLE;
typedef DAT_HANDLE		DAT_RSP_HANDLE;
typedef DAT_HANDLE		DAT_CSP_HANDLE;
typedef DAT_HANDLE		DAT_LMR_HANDLE;
typedef DAT_HANDLE		DAT_RMR_HANDLE;
typedef DAT_HANDLE		DAT_SRQ_HANDLE;
#define DAT_HANDLE_NULL		((DAT_HANDLE)NULL)

/** Kinds of objects. */
typedef enum dat_handle_type {
	DAT_HANDLE_TYPE_CR = 0,
	DAT_HANDLE_TYPE_EP = 1,
	DAT_HANDLE_TYPE_EVD = 2,
	DAT_HANDLE_TYPE_IA = 3,
	DAT_HANDLE_TYPE_LMR = 4,
	DAT_HANDLE_TYPE_PSP = 5,
	DAT_HANDLE_TYPE_PZ = 6,
	DAT_HANDLE_TYPE_RMR = 7,
	DAT_HANDLE_TYPE_RSP = 8,
	DAT_HANDLE_TYPE_CNO = 9,
	DAT_HANDLE_TYPE_SRQ = 10,
	DAT_HANDLE_TYPE_CSP = 11,
	DAT_HANDLE_TYPE_EXTENSION_BASE = 12,
} DAT_HANDLE_TYPE;

/** A word of the consumer, which kDAPL keeps and returns. */
typedef union dat_context {
	DAT_PVOID as_ptr;
	DAT_UINT64 as_64;
	DAT_UVERYLONG as_index;
} DAT_CONTEXT;
typedef DAT_CONTEXT		DAT_DTO_COOKIE;
typedef DAT_CONTEXT		DAT_RMR_COOKIE;

/** An address: of a struct sockaddr_in or of a struct sockaddr_in6. */
typedef struct sockaddr		DAT_SOCK_ADDR;
typedef struct sockaddr_in6	DAT_SOCK_ADDR6;
typedef DAT_SOCK_ADDR *		DAT_IA_ADDRESS_PTR;
#define DAT_AF_INET		AF_INET
#define DAT_AF_INET6		AF_INET6

/** A connection qualifier: a port up to 65535, a 64-bit number above. */
typedef DAT_UINT64		DAT_CONN_QUAL;
typedef DAT_UINT64		DAT_PORT_QUAL;

/** The kind of a connection to a Common Service Point, as the arguments of socket(2). */
typedef struct dat_comm {
	int domain;
	int type;
	int protocol;
} DAT_COMM;

/** A named attribute. */
typedef struct dat_named_attr {
	const char *name;
	const char *value;
} DAT_NAMED_ATTR;

/** Qualities of service. */
typedef enum dat_qos {
	DAT_QOS_BEST_EFFORT = 0,
	DAT_QOS_HIGH_THROUGHPUT = 1,
	DAT_QOS_LOW_LATENCY = 2,
	DAT_QOS_ECONOMY = 4,
	DAT_QOS_PREMIUM = 8,
} DAT_QOS;

/** Whether a connect asks for several paths. */
typedef enum dat_connect_flags {
	DAT_CONNECT_DEFAULT_FLAG = 0,
	DAT_CONNECT_MULTIPATH_FLAG = 1,
	DAT_CONNECT_MULTIPATH_REQUIRED_FLAG = 2,
} DAT_CONNECT_FLAGS;
#define DAT_CONNECT_MULTIPATH_REQUESTED_FLAG	DAT_CONNECT_MULTIPATH_FLAG

/** Mode of the end of an IA or a connection. */
typedef enum dat_close_flags {
	DAT_CLOSE_ABRUPT_FLAG = 0,
	DAT_CLOSE_GRACEFUL_FLAG = 1,
} DAT_CLOSE_FLAGS;
#define DAT_CLOSE_DEFAULT	DAT_CLOSE_ABRUPT_FLAG

/** Whether the consumer or the provider supplies the Endpoint of a request. */
typedef enum dat_psp_flags {
	DAT_PSP_CONSUMER_FLAG = 0,
	DAT_PSP_PROVIDER_FLAG = 1,
} DAT_PSP_FLAGS;

/** Streams of events of an EVD. */
typedef enum dat_evd_flags {
	DAT_EVD_SOFTWARE_FLAG = 0x1,
	DAT_EVD_CR_FLAG = 0x10,
	DAT_EVD_DTO_FLAG = 0x20,
	DAT_EVD_CONNECTION_FLAG = 0x40,
	DAT_EVD_RMR_BIND_FLAG = 0x80,
	DAT_EVD_ASYNC_FLAG = 0x100,
	DAT_EVD_DEFAULT_FLAG = 0x1f0,
	DAT_EVD_EXTENSION_BASE = 0x200,
} DAT_EVD_FLAGS;

/** State of an EVD: a mask. */
typedef enum dat_evd_state {
	DAT_EVD_STATE_ENABLED = 0x1,
	DAT_EVD_STATE_DISABLED = 0x2,
	DAT_EVD_STATE_WAITABLE = 0x4,
	DAT_EVD_STATE_UNWAITABLE = 0x8,
	DAT_EVD_STATE_CONFIG_NOTIFY = 0x10,
	DAT_EVD_STATE_CONFIG_SOLICITED = 0x20,
	DAT_EVD_STATE_CONFIG_THRESHOLD = 0x30,
} DAT_EVD_STATE;

/** Flags of a DTO, and of an Endpoint's streams of them. */
typedef enum dat_completion_flags {
	DAT_COMPLETION_DEFAULT_FLAG = 0x0,
	DAT_COMPLETION_SUPPRESS_FLAG = 0x1,
	DAT_COMPLETION_SOLICITED_WAIT_FLAG = 0x2,
	DAT_COMPLETION_UNSIGNALLED_FLAG = 0x4,
	DAT_COMPLETION_BARRIER_FENCE_FLAG = 0x8,
	DAT_COMPLETION_EVD_THRESHOLD_FLAG = 0x10,
	DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG = 0x20,
} DAT_COMPLETION_FLAGS;

/** Operations. */
typedef enum dat_dtos {
	DAT_DTO_SEND = 0,
	DAT_DTO_RDMA_WRITE = 1,
	DAT_DTO_RDMA_READ = 2,
	DAT_DTO_RECEIVE = 3,
	DAT_DTO_RECEIVE_WITH_INVALIDATE = 4,
	DAT_DTO_BIND_MW = 5,
	DAT_DTO_LMR_FMR = 6,
	DAT_DTO_LMR_INVALIDATE = 7,
	DAT_DTO_EXTENSION_BASE = 8,
} DAT_DTOS;

/** Numbers that name memory in a segment, on its own side and at the peer. */
typedef DAT_UINT32		DAT_LMR_CONTEXT;
typedef DAT_UINT32		DAT_RMR_CONTEXT;
/** Length and address of memory, in bytes. */
typedef DAT_UINT64		DAT_VLEN;
typedef DAT_UINT64		DAT_VADDR;
typedef DAT_UINT32		DAT_SEG_LENGTH;
#define DAT_OPTIMAL_ALIGNMENT	256

/** A segment of memory of this side. */
typedef struct dat_lmr_triplet {
	DAT_VADDR virtual_address;
	DAT_SEG_LENGTH segment_length;
	DAT_LMR_CONTEXT lmr_context;
} DAT_LMR_TRIPLET;

/** A segment of memory of the peer. */
typedef struct dat_rmr_triplet {
	DAT_VADDR virtual_address;
	DAT_SEG_LENGTH segment_length;
	DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_TRIPLET;

/** Kinds of memory that dat_lmr_create() registers. */
typedef enum dat_mem_type {
	DAT_MEM_TYPE_VIRTUAL = 0,
	DAT_MEM_TYPE_LMR = 1,
	DAT_MEM_TYPE_SHARED_VIRTUAL = 2,
} DAT_MEM_TYPE;

/** Privileges of memory. */
typedef enum dat_mem_priv_flags {
	DAT_MEM_PRIV_NONE_FLAG = 0x0,
	DAT_MEM_PRIV_LOCAL_READ_FLAG = 0x1,
	DAT_MEM_PRIV_REMOTE_READ_FLAG = 0x2,
	DAT_MEM_PRIV_LOCAL_WRITE_FLAG = 0x10,
	DAT_MEM_PRIV_REMOTE_WRITE_FLAG = 0x20,
	DAT_MEM_PRIV_ALL_FLAG = 0x33,
	DAT_MEM_PRIV_EXTENSION_BASE = 0x40,
} DAT_MEM_PRIV_FLAGS;
#define DAT_MEM_PRIV_READ_FLAG	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)
#define DAT_MEM_PRIV_WRITE_FLAG	(DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/** Whether addresses of a region are virtual or begin with zero. */
typedef enum dat_va_type {
	DAT_VA_TYPE_VA = 0,
	DAT_VA_TYPE_ZB = 1,
} DAT_VA_TYPE;

/** Endpoints that the context of an RMR is valid on. */
typedef enum dat_rmr_scope {
	DAT_RMR_SCOPE_EP = 0,
	DAT_RMR_SCOPE_PZ = 1,
	DAT_RMR_SCOPE_ANY = 2,
} DAT_RMR_SCOPE;

#define DAT_LMR_COOKIE_SIZE	40
/** Name of a registration that processes share: DAT_LMR_COOKIE_SIZE bytes of their choice. */
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE];

/** Memory of DAT_MEM_TYPE_SHARED_VIRTUAL. */
typedef struct dat_shared_memory {
	DAT_PVOID virtual_address;
	DAT_LMR_COOKIE shared_memory_id;
} DAT_SHARED_MEMORY;

/** Memory to register, by its DAT_MEM_TYPE. */
typedef union dat_region_description {
	DAT_PVOID for_va;
	DAT_LMR_HANDLE for_lmr_handle;
	DAT_SHARED_MEMORY for_shared_memory;
} DAT_REGION_DESCRIPTION;

/** A function that is called for each EVD that triggers a CNO. */
typedef void (DAT_API *DAT_AGENT_FUNC)(DAT_PVOID instance_data, DAT_EVD_HANDLE evd);

/** An agent, and its argument. */
typedef struct dat_os_wait_proxy_agent {
	DAT_PVOID instance_data;
	DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;
#define DAT_OS_WAIT_PROXY_AGENT_NULL	\
	((DAT_OS_WAIT_PROXY_AGENT) { (DAT_PVOID)NULL, (DAT_AGENT_FUNC)NULL })

/** Type of the agent that a CNO notifies beside dat_cno_wait(). */
typedef enum dat_proxy_type {
	DAT_PROXY_TYPE_NONE = 0,
	DAT_PROXY_TYPE_AGENT = 1,
	DAT_PROXY_TYPE_FD = 2,
} DAT_PROXY_TYPE;


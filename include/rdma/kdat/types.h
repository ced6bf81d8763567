/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Basic types, handles and close flags of DAT. */
#ifndef _RDMA_KDAT_TYPES_H
#define _RDMA_KDAT_TYPES_H

#include <linux/socket.h>
#include <linux/types.h>

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

typedef u32 DAT_CLOSE_FLAGS;
#define DAT_CLOSE_ABRUPT_FLAG		0
#define DAT_CLOSE_GRACEFUL_FLAG		1
#define DAT_CLOSE_DEFAULT		DAT_CLOSE_ABRUPT_FLAG

#endif /* _RDMA_KDAT_TYPES_H */

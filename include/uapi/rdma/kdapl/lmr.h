/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Local Memory Regions (LMRs). */
#ifndef _UAPI_RDMA_KDAPL_LMR_H
#define _UAPI_RDMA_KDAPL_LMR_H

#include <rdma/kdapl/common.h>

/* struct kdapl_lmr_create.privileges: DAT_MEM_PRIV_FLAGS. */
#define KDAPL_MEM_LOCAL_READ	0x01
#define KDAPL_MEM_REMOTE_READ	0x02
#define KDAPL_MEM_LOCAL_WRITE	0x10
#define KDAPL_MEM_REMOTE_WRITE	0x20
#define KDAPL_MEM_ALL		0x33
#define KDAPL_MEM_REMOTE_ATOMIC	0x40	/* FETCH_ADD and CMP_SWAP; not in ALL, as in DAT */

/* DAT_VA_TYPE: addresses of the LMR in segments */
#define KDAPL_VA_TYPE_VA	0	/* those of the process */
#define KDAPL_VA_TYPE_ZB	1	/* from 0 on */

/**
 * struct kdapl_lmr_create - KDAPL_LMR_CREATE: create an LMR of the caller's memory
 * @hdr: header
 * @pz: in: PZ
 * @address: in: start of the region in the caller's memory
 * @length: in: length of the region, at least 1
 * @mem_type: in: 0 (DAT_MEM_TYPE_VIRTUAL)
 * @privileges: in: KDAPL_MEM_*
 * @va_type: in: KDAPL_VA_TYPE_*
 * @lmr_context: out: context for local segments
 * @rmr_context: out: context for the peer's remote segments
 * @pad: 0
 * @registered_address: out: address of the first byte in segments: @address, or 0 if zero-based
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
 * @address: start of the region in the memory of the process
 * @length: length of the region
 * @registered_address: address of the first byte in segments
 * @registered_size: length of the registered memory
 * @mem_type: 0 (DAT_MEM_TYPE_VIRTUAL)
 * @privileges: KDAPL_MEM_*
 * @va_type: KDAPL_VA_TYPE_*
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

#endif /* _UAPI_RDMA_KDAPL_LMR_H */

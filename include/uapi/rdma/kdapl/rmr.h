/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Remote Memory Regions (RMRs). */
#ifndef _UAPI_RDMA_KDAPL_RMR_H
#define _UAPI_RDMA_KDAPL_RMR_H

#include <rdma/kdapl/common.h>
#include <rdma/kdapl/dto.h>

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
 * @rmr_context: out: context for the peer's remote segments; 0 after an unbind, or on a
 *         disconnected EP, whose event says that the request was flushed
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

#endif /* _UAPI_RDMA_KDAPL_RMR_H */

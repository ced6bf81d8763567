/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Consumer Notification Objects (CNOs). */
#ifndef _UAPI_RDMA_KDAPL_CNO_H
#define _UAPI_RDMA_KDAPL_CNO_H

#include <rdma/kdapl/common.h>

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
 * struct kdapl_cno_fd - KDAPL_CNO_FD: open a file to read and poll the triggers of a CNO
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

#endif /* _UAPI_RDMA_KDAPL_CNO_H */

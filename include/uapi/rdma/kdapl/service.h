/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Public, Reserved and Common Service Points (PSPs, RSPs, CSPs). */
#ifndef _UAPI_RDMA_KDAPL_SERVICE_H
#define _UAPI_RDMA_KDAPL_SERVICE_H

#include <rdma/kdapl/common.h>

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

#endif /* _UAPI_RDMA_KDAPL_SERVICE_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Limits of an Endpoint: LIMIT(attribute of DAT_EP_ATTR, its limit in DAT_IA_ATTR). Two consumers
 * try them: a kernel module by kdat.h, and a uDAPL program by libdat2.
 */
LIMIT(max_recv_dtos, max_dto_per_ep)
LIMIT(max_request_dtos, max_dto_per_ep)
LIMIT(max_recv_iov, max_iov_segments_per_dto)
LIMIT(max_request_iov, max_iov_segments_per_dto)
LIMIT(max_rdma_read_in, max_rdma_read_per_ep_in)
LIMIT(max_rdma_read_out, max_rdma_read_per_ep_out)
LIMIT(max_rdma_read_iov, max_iov_segments_per_rdma_read)
LIMIT(max_rdma_write_iov, max_iov_segments_per_rdma_write)

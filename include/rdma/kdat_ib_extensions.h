/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * InfiniBand extensions of DAT 2.0 for kernel consumers: RDMA Write with immediate data, Fetch and
 * Add, Compare and Swap.
 *
 * Names and numbers are those of DAT. Each operation of user space's dat_extension_op() is a
 * function here. The rules of <rdma/kdat.h> apply. An operation that the device does not support is
 * DAT_MODEL_NOT_SUPPORTED: atomic operations are optional, and iWARP supports none of these
 * operations.
 */
#ifndef _RDMA_KDAT_IB_EXTENSIONS_H
#define _RDMA_KDAT_IB_EXTENSIONS_H

#include <rdma/kdat.h>

/* Remote privilege of an LMR (DAT_MEM_PRIV_FLAGS): Fetch and Add, Compare and Swap. */
#define DAT_IB_MEM_PRIV_REMOTE_ATOMIC	0x40

/* Completion of an operation below. Its data extend those of DAT_DTO_COMPLETION_EVENT. */
#define DAT_IB_DTO_EVENT		0x40000

/* DAT_DTOS of such a completion. */
#define DAT_IB_DTO_RDMA_WRITE_IMMED	8
#define DAT_IB_DTO_RECV_IMMED		9	/* receive consumed by an RDMA Write with data */
#define DAT_IB_DTO_FETCH_ADD		10
#define DAT_IB_DTO_CMP_SWAP		11
#define DAT_IB_DTO_RECV_MSG_IMMED	12	/* receive of a Send with immediate data */

/* Type of event_extension_data. */
typedef u32 DAT_IB_EXT_TYPE;
#define DAT_IB_FETCH_AND_ADD		0
#define DAT_IB_CMP_AND_SWAP		1
#define DAT_IB_RDMA_WRITE_IMMED		2
#define DAT_IB_RDMA_WRITE_IMMED_DATA	3	/* DAT_IB_DTO_RECV_IMMED */
#define DAT_IB_RECV_IMMED_DATA		4	/* DAT_IB_DTO_RECV_MSG_IMMED */

typedef u32 DAT_IB_STATUS;
#define DAT_OP_SUCCESS			0
#define DAT_IB_OP_ERR			1	/* see dto_completion_event_data.status */

typedef struct dat_ib_immed_data {
	u32 data;
} DAT_IB_IMMED_DATA;

/**
 * struct dat_ib_extension_event_data - event_extension_data of a DAT_IB_DTO_EVENT
 * @type: operation that completed
 * @status: DAT_OP_SUCCESS or DAT_IB_OP_ERR
 * @val: immediate data of a receive; 0 for other operations
 */
typedef struct dat_ib_extension_event_data {
	DAT_IB_EXT_TYPE type;
	DAT_IB_STATUS status;
	union {
		DAT_IB_IMMED_DATA immed;
	} val;
} DAT_IB_EXTENSION_EVENT_DATA;

/**
 * dat_ib_post_rdma_write_immed() - post an RDMA Write with immediate data
 * @ep: EP
 * @segments: number of segments in @local
 * @local: segments to write
 * @cookie: cookie of the completion
 * @remote: destination in the peer's memory
 * @immed_data: data for the completion of one of the peer's receives. The four bytes are sent in
 *         the order in which they lie in memory.
 * @flags: DAT_COMPLETION_*
 *
 * The operation consumes one of the peer's receives. It writes nothing to that receive's memory, so
 * that the receive may be empty.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ib_post_rdma_write_immed(DAT_EP_HANDLE ep, DAT_COUNT segments,
					const DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
					const DAT_RMR_TRIPLET *remote, u32 immed_data,
					DAT_COMPLETION_FLAGS flags);
/**
 * dat_ib_post_fetch_and_add() - post an atomic addition to 64 bits of the peer's memory
 * @ep: EP
 * @add: number to add
 * @local: segment of 8 bytes that receives the old value
 * @cookie: cookie of the completion
 * @remote: 8 bytes of the peer's memory, aligned to 8 bytes
 * @flags: DAT_COMPLETION_*
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ib_post_fetch_and_add(DAT_EP_HANDLE ep, u64 add, const DAT_LMR_TRIPLET *local,
				     DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				     DAT_COMPLETION_FLAGS flags);
/**
 * dat_ib_post_cmp_and_swap() - post an atomic compare and swap of 64 bits of the peer's memory
 * @ep: EP
 * @compare: value to compare with
 * @swap: value to store if the comparison succeeds
 * @local: segment of 8 bytes that receives the old value
 * @cookie: cookie of the completion
 * @remote: 8 bytes of the peer's memory, aligned to 8 bytes
 * @flags: DAT_COMPLETION_*
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ib_post_cmp_and_swap(DAT_EP_HANDLE ep, u64 compare, u64 swap,
				    const DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
				    const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);

#endif /* _RDMA_KDAT_IB_EXTENSIONS_H */

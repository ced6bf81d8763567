/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The InfiniBand extensions of DAT 2.0 for consumers in the kernel: RDMA write
 * with immediate data, fetch and add, compare and swap.
 *
 * Names and numbers are DAT's; what dat_extension_op() takes in user space is a
 * function each. The rules are those of <rdma/kdat.h>. An operation that the
 * device has not is DAT_MODEL_NOT_SUPPORTED: atomic operations are an option of
 * a device, and iWARP has none of all these.
 */
#ifndef _RDMA_KDAT_IB_EXTENSIONS_H
#define _RDMA_KDAT_IB_EXTENSIONS_H

#include <rdma/kdat.h>

/* Completion of one of the operations below: tells as DAT_DTO_COMPLETION_EVENT, and more. */
#define DAT_IB_DTO_EVENT		0x40000

/* DAT_DTOS of such a completion */
#define DAT_IB_DTO_RDMA_WRITE_IMMED	8
#define DAT_IB_DTO_RECV_IMMED		9	/* a receive: of a peer's RDMA write with data */
#define DAT_IB_DTO_FETCH_ADD		10
#define DAT_IB_DTO_CMP_SWAP		11
#define DAT_IB_DTO_RECV_MSG_IMMED	12	/* a receive: of a message with data */

/* What event_extension_data is of. */
typedef u32 DAT_IB_EXT_TYPE;
#define DAT_IB_FETCH_AND_ADD		0
#define DAT_IB_CMP_AND_SWAP		1
#define DAT_IB_RDMA_WRITE_IMMED		2
#define DAT_IB_RDMA_WRITE_IMMED_DATA	3	/* DAT_IB_DTO_RECV_IMMED */
#define DAT_IB_RECV_IMMED_DATA		4	/* DAT_IB_DTO_RECV_MSG_IMMED */

typedef u32 DAT_IB_STATUS;
#define DAT_OP_SUCCESS			0
#define DAT_IB_OP_ERR			1	/* dto_completion_event_data.status says what */

typedef struct dat_ib_immed_data {
	u32 data;
} DAT_IB_IMMED_DATA;

/**
 * struct dat_ib_extension_event_data - event_extension_data of a DAT_IB_DTO_EVENT
 * @type: which operation
 * @status: DAT_OP_SUCCESS or DAT_IB_OP_ERR
 * @val: of a receive: the immediate data that came; 0 otherwise
 */
typedef struct dat_ib_extension_event_data {
	DAT_IB_EXT_TYPE type;
	DAT_IB_STATUS status;
	union {
		DAT_IB_IMMED_DATA immed;
	} val;
} DAT_IB_EXTENSION_EVENT_DATA;

/*
 * dat_ib_post_rdma_write_immed() - write to the peer's memory, and tell the peer
 * @immed_data: comes with the completion of one of the peer's receives, which it
 *              takes; its four bytes travel as they lie in memory
 *
 * Nothing is written to the memory of that receive, which may be empty.
 */
DAT_RETURN dat_ib_post_rdma_write_immed(DAT_EP_HANDLE ep, DAT_COUNT segments,
					const DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
					const DAT_RMR_TRIPLET *remote, u32 immed_data,
					DAT_COMPLETION_FLAGS flags);
/*
 * dat_ib_post_fetch_and_add() - add to 64 bits of the peer's memory, in one go
 * @local: 8 bytes, where the old value goes
 * @remote: aligned to 8 bytes
 */
DAT_RETURN dat_ib_post_fetch_and_add(DAT_EP_HANDLE ep, u64 add, const DAT_LMR_TRIPLET *local,
				     DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				     DAT_COMPLETION_FLAGS flags);
/* dat_ib_post_cmp_and_swap() - set 64 bits to @swap if they are @compare; else as above */
DAT_RETURN dat_ib_post_cmp_and_swap(DAT_EP_HANDLE ep, u64 compare, u64 swap,
				    const DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
				    const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);

#endif /* _RDMA_KDAT_IB_EXTENSIONS_H */

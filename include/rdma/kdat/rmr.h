/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Remote Memory Regions (RMRs). */
#ifndef _RDMA_KDAT_RMR_H
#define _RDMA_KDAT_RMR_H

#include <rdma/kdat/lmr.h>
#include <rdma/kdat/types.h>

typedef struct dat_rmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_PZ_HANDLE pz_handle;
	DAT_LMR_TRIPLET lmr_triplet;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_PARAM;

/**
 * dat_rmr_create() - create an RMR, which is not bound
 * @pz: PZ
 * @rmr: out: the RMR
 *
 * Return: DAT_SUCCESS or an error code. DAT_MODEL_NOT_SUPPORTED if work requests of the device
 * cannot register memory.
 */
DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr);
/**
 * dat_rmr_query() - query the parameters of an RMR
 * @rmr: RMR
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr, u64 mask, DAT_RMR_PARAM *param);
/**
 * dat_rmr_bind() - open a part of an LMR to the peers of its PZ, or end that
 * @rmr: RMR
 * @lmr: LMR of the same PZ; ignored by an unbind
 * @local: part of the LMR; a length of 0 unbinds the RMR
 * @privileges: DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_MEM_PRIV_REMOTE_WRITE_FLAG or both. Each requires
 *         the local privilege of the LMR.
 * @va_type: DAT_VA_TYPE_VA; others are DAT_MODEL_NOT_SUPPORTED
 * @ep: connected EP of the same PZ, to whose request queue the bind is posted
 * @cookie: cookie of the completion
 * @flags: completion flags, as of a DTO
 * @rmr_context: out: context for the peer's remote segments; 0 after an unbind, or on a
 *               disconnected Endpoint, whose event says that the request was flushed; may be NULL
 *
 * Any request that is posted to @ep afterwards finds the context valid, so that the consumer can
 * send it to the peer at once. A context of an earlier bind ends with the call, as for
 * dat_rmr_free(). The request EVD of @ep gets a DAT_RMR_BIND_COMPLETION_EVENT.
 *
 * The LMR cannot be freed (DAT_INVALID_STATE) while the RMR is bound, and until the bind has
 * completed.
 *
 * Context: process; sleeps, because each bind makes a region of the device. dat_lmr_fmr() opens
 * memory to peers in any context.
 *
 * Return: DAT_SUCCESS or an error code. DAT_LENGTH_ERROR if the part has more pages than a region
 * of the device; DAT_PROTECTION_VIOLATION for another PZ or a part that is not within the LMR.
 */
DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *local,
			DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, DAT_EP_HANDLE ep,
			DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
			DAT_RMR_CONTEXT *rmr_context);
/**
 * dat_rmr_free() - free an RMR
 * @rmr: RMR
 *
 * On return, the context of a bind is not valid any more. The call waits for a bind that was not
 * carried out yet. If the peer holds it up for a second, the connection of its EP is broken.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr);

#endif /* _RDMA_KDAT_RMR_H */

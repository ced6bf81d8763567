/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Protection Zones (PZs). */
#ifndef _RDMA_KDAT_PZ_H
#define _RDMA_KDAT_PZ_H

#include <rdma/kdat/types.h>

typedef struct dat_pz_param {
	DAT_IA_HANDLE ia_handle;
} DAT_PZ_PARAM;

/**
 * dat_pz_create() - create a PZ
 * @ia: IA
 * @pz: out: the PZ, which the consumer frees with dat_pz_free()
 *
 * LMRs, RMRs, SRQs and EPs of one PZ may be used together, and no others.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz);
/**
 * dat_pz_query() - query the parameters of a PZ
 * @pz: PZ
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz, u64 mask, DAT_PZ_PARAM *param);
/**
 * dat_pz_free() - free a PZ
 * @pz: PZ
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (DAT_INVALID_STATE_PZ_IN_USE) while an
 * LMR, RMR, SRQ or EP belongs to it.
 */
DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz);

#endif /* _RDMA_KDAT_PZ_H */

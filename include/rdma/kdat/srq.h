/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Shared Receive Queues (SRQs): receives that any of several Endpoints takes. */
#ifndef _RDMA_KDAT_SRQ_H
#define _RDMA_KDAT_SRQ_H

#include <rdma/kdat/lmr.h>
#include <rdma/kdat/types.h>

#define DAT_SRQ_LW_DEFAULT		0

typedef u32 DAT_SRQ_STATE;
#define DAT_SRQ_STATE_ERROR		0
#define DAT_SRQ_STATE_OPERATIONAL	1
#define DAT_SRQ_STATE_SHUTDOWN		2

/**
 * struct dat_srq_attr - attributes of an SRQ
 * @max_recv_dtos: number of receives that the SRQ holds
 * @max_recv_iov: maximum number of segments of a receive
 * @low_watermark: DAT_SRQ_LW_DEFAULT, as there are no receives yet; see dat_srq_set_lw()
 */
typedef struct dat_srq_attr {
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
} DAT_SRQ_ATTR;

/**
 * struct dat_srq_param - parameters of an SRQ
 * @ia_handle: IA of the SRQ
 * @srq_state: DAT_SRQ_STATE_OPERATIONAL
 * @pz_handle: PZ
 * @max_recv_dtos: number of receives that the SRQ holds
 * @max_recv_iov: maximum number of segments of a receive
 * @low_watermark: low watermark, or 0
 * @available_dto_count: number of receives that an EP may take
 * @outstanding_dto_count: number of receives whose event the consumer has not taken
 */
typedef struct dat_srq_param {
	DAT_IA_HANDLE ia_handle;
	DAT_SRQ_STATE srq_state;
	DAT_PZ_HANDLE pz_handle;
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
	DAT_COUNT available_dto_count;
	DAT_COUNT outstanding_dto_count;
} DAT_SRQ_PARAM;

/**
 * dat_srq_create() - create an SRQ
 * @ia: IA
 * @pz: PZ
 * @attr: attributes
 * @srq: out: the SRQ
 *
 * Return: DAT_SUCCESS or an error code. DAT_MODEL_NOT_SUPPORTED if the device has no SRQs.
 */
DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, const DAT_SRQ_ATTR *attr,
			  DAT_SRQ_HANDLE *srq);
/**
 * dat_srq_post_recv() - post a receive to an SRQ
 * @srq: SRQ
 * @segments: number of segments
 * @local: segments; may be NULL if @segments is 0
 * @cookie: cookie of the completion
 *
 * Context: any. If the caller may not sleep, slots of receives that were lost with their connection
 * are not looked for.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INSUFFICIENT_RESOURCES if the SRQ is full.
 */
DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT segments, const DAT_LMR_TRIPLET *local,
			     DAT_DTO_COOKIE cookie);
/**
 * dat_srq_query() - query the parameters of an SRQ
 * @srq: SRQ
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq, u64 mask, DAT_SRQ_PARAM *param);
/**
 * dat_srq_resize() - change the number of receives that an SRQ holds
 * @srq: SRQ
 * @qlen: new number
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE if more receives are outstanding, or
 * below the low watermark; DAT_MODEL_NOT_SUPPORTED if the driver cannot lengthen the SRQ.
 */
DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT qlen);
/**
 * dat_srq_set_lw() - set the low watermark of an SRQ
 * @srq: SRQ
 * @low_watermark: number of receives; 0 turns the watermark off
 *
 * When fewer receives are available, the asynchronous EVD gets one event, with the SRQ as its
 * object and the reason DAT_SRQ_LOW_WATERMARK_EVENT. Its number is DAT_ASYNC_ERROR_EP_BROKEN, as
 * DAT has none for SRQs.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT low_watermark);
/**
 * dat_srq_free() - free an SRQ
 * @srq: SRQ
 *
 * Receives that no EP has taken are dropped without events.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE while an EP uses the SRQ.
 */
DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq);

#endif /* _RDMA_KDAT_SRQ_H */

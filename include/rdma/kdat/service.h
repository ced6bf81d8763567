/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Public, Reserved and Common Service Points (PSPs, RSPs, CSPs). */
#ifndef _RDMA_KDAT_SERVICE_H
#define _RDMA_KDAT_SERVICE_H

#include <rdma/kdat/types.h>

typedef u32 DAT_PSP_FLAGS;
#define DAT_PSP_CONSUMER_FLAG		0	/* the consumer supplies the EP of each accept */
#define DAT_PSP_PROVIDER_FLAG		1	/* each request comes with a new EP */
/* Also takes requests that processes hand off, see dat_cr_handoff(). Not a flag of DAT. */
#define KDAPL_PSP_HANDOFF_FLAG		0x100

typedef struct dat_psp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_PSP_FLAGS psp_flags;
} DAT_PSP_PARAM;

typedef struct dat_rsp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_EP_HANDLE ep_handle;
} DAT_RSP_PARAM;

/* Protocol of a CSP. Each member is 0 or that of a stream socket of the address's family. */
typedef struct dat_comm {
	u32 domain;
	u32 type;
	u32 protocol;
} DAT_COMM;

/**
 * struct dat_csp_param - parameters of a CSP
 * @ia_handle: IA of the CSP
 * @comm: protocol
 * @address: address that the CSP listens at, including the port
 * @evd_handle: EVD for connection requests
 */
typedef struct dat_csp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COMM comm;
	struct __kernel_sockaddr_storage address;
	DAT_EVD_HANDLE evd_handle;
} DAT_CSP_PARAM;

/**
 * dat_psp_create() - create a Public Service Point (PSP)
 * @ia: IA
 * @conn_qual: connection qualifier to listen for
 * @evd: EVD for connection requests, created with DAT_EVD_CR_FLAG
 * @flags: DAT_PSP_CONSUMER_FLAG or DAT_PSP_PROVIDER_FLAG, and KDAPL_PSP_HANDOFF_FLAG
 * @psp: out: the PSP
 *
 * Return: DAT_SUCCESS or an error code. DAT_CONN_QUAL_IN_USE if another service point listens for
 * @conn_qual.
 */
DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EVD_HANDLE evd,
			  DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp);
/**
 * dat_psp_create_any() - create a PSP with a free connection qualifier
 * @ia: IA
 * @conn_qual: out: connection qualifier of the PSP
 * @evd: as of dat_psp_create()
 * @flags: as of dat_psp_create()
 * @psp: out: the PSP
 *
 * Return: DAT_SUCCESS or an error code. DAT_CONN_QUAL_UNAVAILABLE if none is free.
 */
DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *conn_qual, DAT_EVD_HANDLE evd,
			      DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp);
/**
 * dat_psp_query() - query the parameters of a PSP
 * @psp: PSP
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp, u64 mask, DAT_PSP_PARAM *param);
/**
 * dat_psp_free() - free a PSP
 * @psp: PSP
 *
 * No request arrives any more. Those that have arrived stay, and may be answered.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp);
/**
 * dat_rsp_create() - create a Reserved Service Point (RSP)
 * @ia: IA
 * @conn_qual: connection qualifier to listen for
 * @ep: EP reserved for the request; DAT_HANDLE_NULL to have the request come with a new EP
 * @evd: EVD for the connection request
 * @rsp: out: the RSP
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep,
			  DAT_EVD_HANDLE evd, DAT_RSP_HANDLE *rsp);
/**
 * dat_rsp_query() - query the parameters of an RSP
 * @rsp: RSP
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp, u64 mask, DAT_RSP_PARAM *param);
/**
 * dat_rsp_free() - free an RSP
 * @rsp: RSP
 *
 * No request arrives any more, and the EP is reserved no more. Those that have arrived stay, and
 * may be answered.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp);
/**
 * dat_csp_create() - create a CSP
 * @ia: IA
 * @comm: protocol
 * @address: address to listen at. With port 0 the CSP listens at a free port, which dat_csp_query()
 *         returns.
 * @evd: EVD for connection requests
 * @csp: out: the CSP
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia, const DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			  DAT_EVD_HANDLE evd, DAT_CSP_HANDLE *csp);
/**
 * dat_csp_query() - query the parameters of a CSP
 * @csp: CSP
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp, u64 mask, DAT_CSP_PARAM *param);
/**
 * dat_csp_free() - free a CSP
 * @csp: CSP
 *
 * No request arrives any more. Those that have arrived stay, and may be answered.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp);

#endif /* _RDMA_KDAT_SERVICE_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Calls on Protection Zones and on Local and Remote Memory Regions. */
#pragma once

#include <dat2/dat_event.h>

/**
 * dat_pz_create() - Create a Protection Zone
 * @ia: the IA
 * @pz: out: the PZ
 *
 * Endpoints use memory of their own PZ only.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): no memory, or a limit of the user
 *
 * Example: memory.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz);

/**
 * dat_pz_query() - Query the parameters of a Protection Zone
 * @pz: the PZ
 * @mask: DAT_PZ_FIELD_ALL
 * @param: out: the parameters
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_PZ): @pz is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @mask has unknown bits
 *
 * Example: memory.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_pz_query(DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param);

/**
 * dat_pz_free() - Free a Protection Zone
 * @pz: the PZ
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_PZ): @pz is stale or another object
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_PZ_IN_USE): an Endpoint, a region or an SRQ uses it
 *
 * Example: memory.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_pz_free(DAT_PZ_HANDLE pz);

/**
 * dat_lmr_create() - Register memory
 * @ia: the IA
 * @mem_type: DAT_MEM_TYPE_VIRTUAL, or DAT_MEM_TYPE_LMR for the memory of another LMR, or
 *            DAT_MEM_TYPE_SHARED_VIRTUAL for memory that processes share
 * @region: address of the memory, or the LMR, or address and name of shared memory
 * @length: bytes, at least 1
 * @pz: Protection Zone
 * @privileges: a mask of DAT_MEM_PRIV_FLAGS; local reads are always allowed, and no privilege
 *              implies local writes
 * @va_type: DAT_VA_TYPE_VA: segments have the addresses of the process. DAT_VA_TYPE_ZB: they count
 *           from 0 on; then the memory begins at a page boundary
 * @lmr: out: the LMR
 * @lmr_context: out: number for the segments of this side; may be NULL
 * @rmr_context: out: number for the peer's segments; may be NULL
 * @registered_size: out: length of the registration; may be NULL
 * @registered_address: out: address of the first byte in segments; may be NULL
 *
 * The pages are pinned, and count against RLIMIT_MEMLOCK. Memory that is unmapped stays pinned, and
 * transfers go on to reach the old pages.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA, DAT_INVALID_HANDLE_PZ, DAT_INVALID_HANDLE_LMR): an
 *   object
 * * DAT_MODEL_NOT_SUPPORTED: @mem_type or @va_type; remote atomic operations on a device without;
 *   or a driver that has no zero-based memory (zb_supported in DAT_IA_ATTR)
 * * DAT_LENGTH_ERROR: @length is 0, or above that of the other LMR, or more than the device takes
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG6): unknown privileges
 * * DAT_INVALID_ADDRESS (DAT_INVALID_ADDRESS_MALFORMED): a part is not mapped, or not writable
 * * DAT_INVALID_ADDRESS (DAT_INVALID_ADDRESS_UNSUPPORTED): zero-based memory that does not begin at
 *   a page boundary
 * * DAT_PRIVILEGES_VIOLATION: RLIMIT_MEMLOCK is 0
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): above RLIMIT_MEMLOCK, no memory, or a limit
 *   of the user
 *
 * Example: memory.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region,
	       DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
	       DAT_VA_TYPE va_type, DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lmr_context,
	       DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_size,
	       DAT_VADDR *registered_address);

/**
 * dat_lmr_query() - Query the parameters of an LMR
 * @lmr: the LMR
 * @mask: DAT_LMR_FIELD_ALL
 * @param: out: the parameters
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_LMR): @lmr is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @mask has unknown bits
 *
 * Example: memory.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_lmr_query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param);

/**
 * dat_lmr_free() - Free an LMR
 * @lmr: the LMR
 *
 * DTOs that still use it fail, and break their connection.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_LMR): @lmr is stale or another object
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_LMR_IN_USE): an RMR is bound to it
 *
 * Example: memory.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_lmr_free(DAT_LMR_HANDLE lmr);

/**
 * dat_lmr_sync_rdma_read() - Make memory visible to RDMA reads of the peer
 * @ia: the IA
 * @segments: parts of LMRs of @ia
 * @count: number of segments
 *
 * Checks the segments. Nothing else is necessary, because the memory of this machine is coherent
 * with its devices; lmr_sync_req of the provider's attributes is DAT_FALSE.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @segments is NULL, or a segment that is not empty
 *   names no LMR of @ia or a byte outside it
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3): @count is above 2147483647
 *
 * Example: memory.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN count);

/**
 * dat_lmr_sync_rdma_write() - Make RDMA writes of the peer visible in memory
 * @ia: the IA
 * @segments: parts of LMRs of @ia
 * @count: number of segments
 *
 * Checks the segments, as dat_lmr_sync_rdma_read().
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_IA): @ia is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @segments is NULL, or a segment that is not empty
 *   names no LMR of @ia or a byte outside it
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG3): @count is above 2147483647
 *
 * Example: memory.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN count);

/**
 * dat_rmr_create() - Create a Remote Memory Region
 * @pz: Protection Zone
 * @rmr: out: the RMR, which is not bound yet
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_PZ): @pz is stale or another object
 * * DAT_MODEL_NOT_SUPPORTED: the device cannot register memory by a request
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_MEMORY): no memory, or a limit of the user
 *
 * Example: rmr.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr);

/**
 * dat_rmr_create_for_ep() - Create an RMR whose context is valid on one Endpoint only
 * @pz: Protection Zone
 * @rmr: not written
 *
 * Not supported: the context of a bind is valid on all Endpoints of the PZ, because the
 * registrations of the devices belong to a protection domain. rmr_scope_supported of the provider's
 * attributes is DAT_RMR_SCOPE_PZ. An Endpoint that is to be alone gets a PZ of its own.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_PZ): @pz is stale or another object
 * * DAT_MODEL_NOT_SUPPORTED: @pz is a Protection Zone
 *
 * Example: rmr.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr);

/**
 * dat_rmr_query() - Query the parameters of an RMR
 * @rmr: the RMR
 * @mask: DAT_RMR_FIELD_ALL
 * @param: out: the parameters, with those of the last bind
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_RMR): @rmr is stale or another object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG2): @mask has unknown bits
 *
 * Example: rmr.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_rmr_query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param);

/**
 * dat_rmr_bind() - Open a part of an LMR to peers
 * @rmr: the RMR
 * @lmr: an LMR of its PZ
 * @segment: part of the LMR, with its LMR context; a length of 0 unbinds
 * @privileges: a mask of DAT_MEM_PRIV_REMOTE_READ_FLAG and DAT_MEM_PRIV_REMOTE_WRITE_FLAG; the LMR
 *              has the local ones
 * @va_type: DAT_VA_TYPE_VA
 * @ep: a connected Endpoint of the PZ, which posts the request
 * @cookie: a word that the event returns
 * @flags: a mask of DAT_COMPLETION_FLAGS
 * @rmr_context: out: number for the peer's segments
 *
 * The bind is carried out before any later DTO of the Endpoint. The context of the last bind is
 * invalid when the call returns. The driver may choose it again for a later region.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_RMR, DAT_INVALID_HANDLE_LMR, DAT_INVALID_HANDLE_EP): an
 *   object
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG4): other privileges
 * * DAT_INVALID_PARAMETER (DAT_INVALID_ARG8): @flags has an unknown value
 * * DAT_MODEL_NOT_SUPPORTED: @va_type
 * * DAT_INVALID_STATE (DAT_INVALID_STATE_EP_...): the Endpoint is neither connected nor
 *   disconnected
 * * DAT_PROTECTION_VIOLATION: another PZ, or a segment that is not in the LMR
 * * DAT_PRIVILEGES_VIOLATION (DAT_PRIVILEGES_RDMA_READ, DAT_PRIVILEGES_RDMA_WRITE): a privilege
 *   that the LMR does not have for its own side
 * * DAT_LENGTH_ERROR: more pages than the device can bind
 * * DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_TEP): max_request_dtos are outstanding
 *
 * Events:
 * * DAT_RMR_BIND_COMPLETION_EVENT: on the request EVD of the Endpoint
 *
 * Example: rmr.c
 */
DAT_EXPORT DAT_RETURN DAT_API
dat_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *segment,
	     DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, DAT_EP_HANDLE ep,
	     DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *rmr_context);

/**
 * dat_rmr_free() - Free an RMR
 * @rmr: the RMR
 *
 * Its context is invalid when the call returns.
 *
 * Errors:
 * * DAT_INVALID_HANDLE (DAT_INVALID_HANDLE_RMR): @rmr is stale or another object
 *
 * Example: rmr.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_rmr_free(DAT_RMR_HANDLE rmr);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Local Memory Regions (LMRs), and segments. */
#ifndef _RDMA_KDAT_LMR_H
#define _RDMA_KDAT_LMR_H

#include <rdma/kdat/event.h>
#include <rdma/kdat/types.h>

/*
 * Types of memory, and the member of DAT_REGION_DESCRIPTION that describes each. IA and BYPASS are
 * DAT_MODEL_NOT_SUPPORTED: they are memory of the RDMA device, and memory without its protection.
 */
typedef u32 DAT_MEM_TYPE;
#define DAT_MEM_TYPE_VIRTUAL		0	/* for_va */
#define DAT_MEM_TYPE_LMR		0x01	/* for_lmr_handle */
#define DAT_MEM_TYPE_PHYSICAL		0x10	/* for_physical */
#define DAT_MEM_TYPE_PLATFORM		0x20	/* for_platform: struct scatterlist */
#define DAT_MEM_TYPE_IA			0x40	/* for_ia */
#define DAT_MEM_TYPE_BYPASS		0x80
#define DAT_MEM_TYPE_PHYSICAL_VAR_PAGES	0x100	/* for_array */
/* Not of DAT. */
#define KDAPL_MEM_TYPE_BVEC		0x10000	/* for_platform: array of struct bio_vec */

typedef u32 DAT_MEM_PRIV_FLAGS;
#define DAT_MEM_PRIV_NONE_FLAG		0x00
#define DAT_MEM_PRIV_LOCAL_READ_FLAG	0x01
#define DAT_MEM_PRIV_REMOTE_READ_FLAG	0x02
#define DAT_MEM_PRIV_LOCAL_WRITE_FLAG	0x10
#define DAT_MEM_PRIV_REMOTE_WRITE_FLAG	0x20

typedef u32 DAT_VA_TYPE;
#define DAT_VA_TYPE_VA			0
#define DAT_VA_TYPE_ZB			1

typedef u32 DAT_MEM_OPTIMIZE_FLAGS;
#define DAT_MEM_OPTIMIZE_DONT_CARE	0
#define DAT_MEM_OPTIMIZE_IA		1
#define DAT_MEM_OPTIMIZE_MIN_EXPOSURE	2
#define DAT_MEM_OPTIMIZE_EXACT_EXPOSURE	4

/**
 * struct dat_physical_var_pages - physical pages of a chosen size
 * @page_size: size of each page, a power of two, PAGE_SIZE or more
 * @pages: array of DAT_PADDR, the physical address of each page, a multiple of @page_size
 */
typedef struct dat_physical_var_pages {
	DAT_VLEN page_size;
	void *pages;
} DAT_PHYSICAL_VAR_PAGES;
typedef u32 DAT_LMR_SCOPE;
#define DAT_LMR_SCOPE_EP		0
#define DAT_LMR_SCOPE_PZ		1
#define DAT_LMR_SCOPE_ANY		2

/**
 * union dat_region_description - memory of an LMR
 * @for_va: start of memory from kmalloc(), alloc_pages(), vmalloc() or a similar allocator, or of
 *         static data
 * @for_lmr_handle: LMR of the same IA. The new one has the first bytes of its memory, and needs it
 *         no more when the call has returned.
 * @for_platform: struct scatterlist, possibly chained, or the first element of an array of struct
 *         bio_vec. It must not be mapped for DMA. An entry may have several pages.
 * @for_array: see struct dat_physical_var_pages
 * @for_physical: array of the physical address of each page, a multiple of PAGE_SIZE
 * @for_ia: not used
 *
 * A list is read during the call only. It names at least the length of the LMR. Of the last piece
 * that the LMR needs it takes the first bytes.
 */
typedef union dat_region_description {
	void *for_va;
	DAT_LMR_HANDLE for_lmr_handle;
	void *for_platform;
	DAT_PHYSICAL_VAR_PAGES for_array;
	DAT_PADDR *for_physical;
	DAT_PADDR for_ia;
} DAT_REGION_DESCRIPTION;

/* Segment of an LMR. */
typedef struct dat_lmr_triplet {
	DAT_VADDR virtual_address;
	DAT_SEG_LENGTH segment_length;
	DAT_LMR_CONTEXT lmr_context;
} DAT_LMR_TRIPLET;

/* Segment of an RMR of the peer. */
typedef struct dat_rmr_triplet {
	DAT_VADDR virtual_address;
	DAT_SEG_LENGTH segment_length;
	DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_TRIPLET;

typedef struct dat_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_VA_TYPE va_type;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size;
	DAT_VADDR registered_address;
} DAT_LMR_PARAM;

/**
 * dat_ia_memtype_hint() - ask which regions suit the device
 * @ia: IA
 * @mem_type: type of memory
 * @length: length of the region that the consumer needs
 * @optimize: one of DAT_MEM_OPTIMIZE_*; ignored
 * @preferred_length: out: @length in whole pages, or if it is more, the length of the longest LMR
 *         that may have remote privileges; may be NULL
 * @preferred_alignment: out: the start of the region should be a multiple of it; may be NULL
 *
 * An LMR of the preferred length and alignment can have all privileges that the device supports,
 * and zero-based addresses. A longer region needs several of these.
 *
 * Return: DAT_SUCCESS; DAT_MODEL_NOT_SUPPORTED for a type of memory that is not supported;
 * DAT_LENGTH_ERROR if @length is 0 or too large for a number of whole pages; or another error code.
 */
DAT_RETURN dat_ia_memtype_hint(DAT_IA_HANDLE ia, DAT_MEM_TYPE mem_type, DAT_VLEN length,
			       DAT_MEM_OPTIMIZE_FLAGS optimize, DAT_VLEN *preferred_length,
			       DAT_VADDR *preferred_alignment);
/**
 * dat_lmr_kcreate() - create an LMR of kernel memory
 * @ia: IA
 * @mem_type: DAT_MEM_TYPE_* or KDAPL_MEM_TYPE_BVEC
 * @region: the memory
 * @length: length of the region
 * @pz: PZ
 * @privileges: local and remote privileges. Remote ones are DAT_MODEL_NOT_SUPPORTED over iWARP,
 *         and on devices whose work requests cannot register memory.
 * @va_type: DAT_VA_TYPE_VA: addresses begin at the kernel's address of the first byte, and
 *         continue from there wherever the other bytes lie. DAT_VA_TYPE_ZB: addresses begin at 0.
 * @optimize: one of DAT_MEM_OPTIMIZE_*; a hint
 * @lmr: out: the LMR
 * @lmr_context: out: context for local segments
 * @rmr_context: out: context for the peer's remote segments, 0 without remote privileges; may be
 *         NULL. It is valid for all EPs of the PZ, until the LMR is freed or a peer invalidates
 *         it.
 * @registered_size: out: length of the registered memory; may be NULL
 * @registered_address: out: address of the first byte; may be NULL
 *
 * The consumer keeps ownership of the memory. It must not free the memory before the LMR, and the
 * LMRs that were made of it, nor the LMR before the last DTO that uses it has completed.
 *
 * Without remote privileges, each page of memory that is not contiguous counts as one segment of a
 * DTO. With them, a segment of a DTO counts as one, and the LMR has DAT_IA_ATTR.max_rmr_size bytes
 * at most, less a page if it begins within one. Then all pieces but the first must begin at a page
 * boundary, and all but the last end at one; zero-based memory must begin at one.
 *
 * Return: DAT_SUCCESS; DAT_LENGTH_ERROR if @length is 0, more than the machine has, more than the
 * memory that is described, or too much for remote privileges; DAT_INVALID_ADDRESS (malformed) if
 * a part of the region is not mapped or no memory of the machine, or if @privileges has
 * DAT_MEM_PRIV_LOCAL_WRITE_FLAG, or a remote one that includes writes, and a part is text,
 * read-only or the zero page; DAT_INVALID_ADDRESS (unsupported) for memory with remote privileges
 * whose pieces do not meet at page boundaries; DAT_MODEL_NOT_SUPPORTED if the device would get a
 * copy of the memory (swiotlb), or does not see the caches of the processors; or another error
 * code.
 */
DAT_RETURN dat_lmr_kcreate(DAT_IA_HANDLE ia, DAT_MEM_TYPE mem_type,
			   DAT_REGION_DESCRIPTION region, DAT_VLEN length,
			   DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
			   DAT_VA_TYPE va_type, DAT_MEM_OPTIMIZE_FLAGS optimize,
			   DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_size,
			   DAT_VADDR *registered_address);
/**
 * dat_lmr_query() - query the parameters of an LMR
 * @lmr: LMR
 * @mask: ignored
 * @param: out: parameters
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr, u64 mask, DAT_LMR_PARAM *param);
/**
 * dat_lmr_free() - free an LMR
 * @lmr: LMR
 *
 * After success no context of the LMR is valid, and the device does not access the memory. After an
 * error the memory must stay. Nothing has changed then, except after DAT_INTERNAL_ERROR.
 *
 * Takes completions from the queues of all EPs, whose events are queued, and waits up to 100 ms for
 * requests with DAT_COMPLETION_SUPPRESS_FLAG that use the memory. Posts that name the LMR meanwhile
 * are refused with DAT_PROTECTION_VIOLATION.
 *
 * Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (LMR in use) while a DTO that names
 * memory of dat_lmr_kcreate() is outstanding on an EP or an SRQ, an RMR is bound to the memory, or
 * the completion of dat_lmr_fmr() or dat_lmr_invalidate() is outstanding; DAT_RESERVED_LMR;
 * DAT_INTERNAL_ERROR if the driver fails to destroy the region of the device: the handle is freed,
 * but the device may access the memory at any time, so the consumer must not reuse it.
 */
DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr);
/**
 * dat_lmr_sync_rdma_read() - make memory visible to RDMA Reads of the peer
 * @ia: IA
 * @local: array of @segments parts of LMRs of @ia; may be NULL if @segments is 0
 * @segments: number of segments
 *
 * Checks the segments. Nothing else is necessary: dat_lmr_kcreate() refuses memory that the kernel
 * and the device do not share without further calls. dat_lmr_fmr() accepts such memory. It is then
 * copied by the registration and by the invalidation only, and these calls refuse it. Memory of the
 * reserved LMR is not checked, and its consumer synchronizes it (dma_sync_*()). A segment of length
 * 0 names no memory.
 *
 * Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_PARAMETER (DAT_INVALID_ARG2) if @local is NULL,
 * or a segment names no LMR of @ia or a byte outside it; (DAT_INVALID_ARG3) if @segments is above
 * 2147483647. DAT_MODEL_NOT_SUPPORTED if the device may have a copy of the memory.
 */
DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *local,
				  DAT_VLEN segments);
/**
 * dat_lmr_sync_rdma_write() - make RDMA Writes of the peer visible in memory
 * @ia: IA
 * @local: array of @segments parts of LMRs of @ia; may be NULL if @segments is 0
 * @segments: number of segments
 *
 * As dat_lmr_sync_rdma_read().
 *
 * Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code: those of dat_lmr_sync_rdma_read().
 */
DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *local,
				   DAT_VLEN segments);
/**
 * kdapl_lmr_free_unused() - free an LMR that no DTO in flight uses
 * @lmr: LMR
 *
 * As dat_lmr_free(), but does not look for DTOs that name memory of dat_lmr_kcreate(): the caller
 * knows that each of them has completed, or its EP was freed, and that none is being posted. A DTO
 * with DAT_COMPLETION_SUPPRESS_FLAG has completed when a later request of its EP has. If that is
 * wrong, the device accesses memory that the consumer has freed. The cost does not depend on the
 * number of EPs and DTOs, so that a storage target can map memory for each command. Not a call of
 * DAT.
 *
 * Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (LMR in use) while an RMR is bound to the
 * memory, or the completion of dat_lmr_fmr() or dat_lmr_invalidate() is outstanding;
 * DAT_RESERVED_LMR; DAT_INTERNAL_ERROR as of dat_lmr_free().
 */
DAT_RETURN kdapl_lmr_free_unused(DAT_LMR_HANDLE lmr);

/**
 * dat_lmr_allocate() - create an LMR for memory that requests register and invalidate
 * @ia: IA
 * @pz: PZ
 * @max_pages: number of pages of the longest registration
 * @scope: DAT_LMR_SCOPE_PZ; others are DAT_MODEL_NOT_SUPPORTED
 * @lmr: out: the LMR, which is free: nothing is registered
 *
 * All that dat_lmr_fmr() needs is allocated here, but for a few words for each request.
 *
 * Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code. DAT_LENGTH_ERROR if @max_pages is 0 or more than a region
 * of the device has (max_rmr_size of the IA); DAT_MODEL_NOT_SUPPORTED if work requests of the
 * device cannot register memory.
 */
DAT_RETURN dat_lmr_allocate(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, u32 max_pages, DAT_LMR_SCOPE scope,
			    DAT_LMR_HANDLE *lmr);
/**
 * dat_lmr_fmr() - register memory by a request on the queue of an EP
 * @lmr: LMR of dat_lmr_allocate() that is free
 * @mem_type: DAT_MEM_TYPE_VIRTUAL, _PHYSICAL or _PLATFORM, or KDAPL_MEM_TYPE_BVEC; others are
 *         DAT_MODEL_NOT_SUPPORTED
 * @region: the memory. @region.for_va is a page boundary. A list is read during the call only.
 * @npages: number of pages of PAGE_SIZE, or of entries of the scatterlist or of bio_vecs. All
 *         entries but the first begin at a page boundary, and all but the last end at one.
 * @privileges: DAT_MEM_PRIV_* of this side and of peers
 * @va_type: DAT_VA_TYPE_VA: addresses begin at the kernel's address of the first byte, and
 *         continue from there wherever the other bytes lie. DAT_VA_TYPE_ZB: addresses begin at 0,
 *         and the memory at a page boundary.
 * @ep: connected EP of the same PZ
 * @cookie: cookie of the completion
 * @flags: DAT_COMPLETION_SUPPRESS_FLAG, DAT_COMPLETION_BARRIER_FENCE_FLAG,
 *         KDAPL_COMPLETION_WITH_NEXT_FLAG; UNSIGNALLED as of a DTO
 * @lmr_context: out: context for local segments; may be NULL
 * @rmr_context: out: context for the peer's segments; may be NULL
 *
 * Both contexts are valid for every later request of @ep, and for peers that get @rmr_context from
 * one. Other queues, also the receives of @ep, may use them after the completion. The request EVD
 * of @ep gets a DAT_DTO_COMPLETION_EVENT of the operation DAT_DTO_LMR_FMR.
 *
 * With KDAPL_COMPLETION_WITH_NEXT_FLAG a success has no event, and the device reports it with the
 * next request of @ep, which saves a completion. It is for a consumer that posts that request right
 * away. @lmr is in use until then: it can be registered again, or freed, when the next request has
 * completed, also if a peer has ended the registration before. If no request follows, kDAPL posts
 * one of its own, within two seconds or when the connection ends.
 *
 * The consumer keeps the memory until the completion of an invalidation: of dat_lmr_invalidate(),
 * or of a receive that names @rmr_context as invalidated (DAT_DTO_RECEIVE_WITH_INVALIDATE). The
 * pages are mapped for the device until then. The contexts of the next 255 registrations are
 * others, so an old one is not valid again before.
 *
 * A completion with another status than DAT_DTO_SUCCESS leaves the LMR free, but the peer may
 * still reach the memory: until the next dat_lmr_fmr() or dat_lmr_free() has returned. That
 * dat_lmr_fmr() replaces the region of the device. It is DAT_INSUFFICIENT_RESOURCES if the caller
 * may not sleep.
 *
 * Context: any.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (LMR in use) if memory is registered or
 * a completion is outstanding, or with the state of an EP that is not connected; DAT_LENGTH_ERROR
 * if @npages is 0 or the memory has more pages than the maximum of the LMR; DAT_MODEL_NOT_SUPPORTED
 * in a context that cannot sleep if the driver would (hns); DAT_INVALID_ADDRESS
 * (malformed) for an address that is no page boundary, not mapped or no memory of the machine, or
 * that shall be written and is text, read-only or the zero page, and for an empty entry;
 * (unsupported) for entries that do not meet at page boundaries; DAT_PROTECTION_VIOLATION for an
 * EP of another PZ; DAT_INVALID_HANDLE (LMR) also for another kind of LMR; DAT_RESERVED_LMR. With
 * an error nothing is registered, and no completion follows.
 */
DAT_RETURN dat_lmr_fmr(DAT_LMR_HANDLE lmr, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region,
		       u32 npages, DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type,
		       DAT_EP_HANDLE ep, DAT_LMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
		       DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context);
/**
 * dat_lmr_invalidate() - end a registration by a request on the queue of an EP
 * @lmr: LMR of dat_lmr_allocate() that is registered
 * @ep: connected EP of the same PZ. While the completion of dat_lmr_fmr() is outstanding, it is the
 *         EP of that call.
 * @cookie: cookie of the completion
 * @flags: as of dat_lmr_fmr(), and DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG. With either fence the
 *         request starts after earlier RDMA Reads of @ep have completed.
 *
 * Posts must not use the LMR context any more, which is refused. The request EVD of @ep gets a
 * DAT_DTO_COMPLETION_EVENT of the operation DAT_DTO_LMR_INVALIDATE. After it, no peer can reach the
 * memory, and the LMR is free. dat_lmr_fmr() says what holds after a failure.
 *
 * Context: any.
 *
 * Return: DAT_SUCCESS or an error code. DAT_INVALID_STATE (LMR free) if nothing is registered, or
 * the invalidation is outstanding; (LMR in use) if the request could overtake the registration; or
 * with the state of an EP that is not connected; DAT_PROTECTION_VIOLATION for an EP of another PZ;
 * DAT_INVALID_HANDLE (LMR) also for another kind of LMR; DAT_RESERVED_LMR.
 */
DAT_RETURN dat_lmr_invalidate(DAT_LMR_HANDLE lmr, DAT_EP_HANDLE ep, DAT_LMR_COOKIE cookie,
			      DAT_COMPLETION_FLAGS flags);
/**
 * dat_ia_reserved_lmr() - return the LMR of all memory
 * @ia: IA
 * @lmr: out: the reserved LMR, the same in each call. It cannot be freed, and belongs to no PZ
 * @lmr_context: out: context for local segments of any EP of @ia
 *
 * Addresses of its segments are DMA addresses, which the consumer has mapped for the device
 * (ib_dma_map_*()). They are not checked. No peer can use the context, and over iWARP no RDMA Read
 * (DAT_PRIVILEGES_VIOLATION): it would show the peer the key to all memory.
 *
 * Context: process; sleeps.
 *
 * Return: DAT_SUCCESS or an error code.
 */
DAT_RETURN dat_ia_reserved_lmr(DAT_IA_HANDLE ia, DAT_LMR_HANDLE *lmr,
			       DAT_LMR_CONTEXT *lmr_context);

#endif /* _RDMA_KDAT_LMR_H */

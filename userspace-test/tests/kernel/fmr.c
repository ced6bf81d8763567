// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests LMRs that requests register and invalidate. */
#include <linux/bvec.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ktest.h"

#define LOCAL		(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define ALL		(LOCAL | DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
#define DEFAULT		DAT_COMPLETION_DEFAULT_FLAG
#define SUPPRESS	DAT_COMPLETION_SUPPRESS_FLAG
#define PAGES		4
#define SIZE		(PAGES * PAGE_SIZE)

/* Pages of side 1 that are registered for side 0 of a connection. */
struct scene {
	struct pair pair;
	u8 *pages;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
};

static DAT_RETURN fmr(struct scene *scene, DAT_EP_HANDLE ep, u64 number, DAT_COMPLETION_FLAGS flags)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = scene->pages };

	return dat_lmr_fmr(scene->lmr, DAT_MEM_TYPE_VIRTUAL, region, PAGES, ALL, DAT_VA_TYPE_VA, ep,
			   cookie(number), flags, &scene->local, &scene->remote);
}

static DAT_RETURN invalidate(struct scene *scene, DAT_EP_HANDLE ep, u64 number)
{
	return dat_lmr_invalidate(scene->lmr, ep, cookie(number), DEFAULT);
}

static int make_scene(struct scene *scene, u8 *pages)
{
	scene->pages = pages;
	TRY(pair_make(&scene->pair));
	TRY(pair_connect(&scene->pair));
	OK(dat_lmr_allocate(ia, pz, PAGES, DAT_LMR_SCOPE_PZ, &scene->lmr));
	return 0;
}

/* Runs a test with pages of its own. */
static int with_pages(int (*run)(struct scene *scene))
{
	u8 *pages = alloc_pages_exact(SIZE, GFP_KERNEL | __GFP_ZERO);
	struct scene scene = {};
	int error;

	EXPECT(pages);
	error = make_scene(&scene, pages) ?: run(&scene);
	/* Ends every registration. */
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	free_pages_exact(pages, SIZE);
	return error;
}

static int registered(struct scene *scene)
{
	OK(fmr(scene, scene->pair.ep[1], 1, DEFAULT));
	return next_dto(scene->pair.dto[1], DAT_DTO_LMR_FMR, 1, 0);
}

static int invalidated(struct scene *scene)
{
	OK(invalidate(scene, scene->pair.ep[1], 2));
	return next_dto(scene->pair.dto[1], DAT_DTO_LMR_INVALIDATE, 2, 0);
}

static DAT_RETURN write_to(struct scene *scene, u64 address, DAT_RMR_CONTEXT context)
{
	const DAT_RMR_TRIPLET remote = { address, 64, context };
	DAT_LMR_TRIPLET from = pair_place(&scene->pair, 0, 64);

	return dat_ep_post_rdma_write(scene->pair.ep[0], 1, &from, cookie(3), &remote, DEFAULT);
}

/* Sends a message to side 1, so that all that was sent before has arrived. */
static int send_message(struct scene *scene)
{
	DAT_LMR_TRIPLET place = pair_place(&scene->pair, 64, 0);

	OK(dat_ep_post_recv(scene->pair.ep[1], 1, &place, cookie(4), DEFAULT));
	OK(dat_ep_post_send(scene->pair.ep[0], 1, &place, cookie(5), DEFAULT));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_SEND, 5, 0));
	return next_dto(scene->pair.dto[1], DAT_DTO_RECEIVE, 4, 0);
}

/* Side 0 writes to the last bytes of the pages, and reads them. */
static int peer_access(struct scene *scene, u64 start, u8 *bytes)
{
	const u64 address = start + SIZE - 64;
	const DAT_RMR_TRIPLET remote = { address, 64, scene->remote };
	DAT_LMR_TRIPLET to = pair_place(&scene->pair, 128, 64);

	memset(scene->pair.memory, 0x5a, 64);
	memset(scene->pair.memory + 128, 0, 64);
	OK(write_to(scene, address, scene->remote));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_RDMA_WRITE, 3, 64));
	TRY(send_message(scene));
	EXPECT(!memcmp(bytes + SIZE - 64, scene->pair.memory, 64));
	SAME(bytes[SIZE - 65], 0);
	/* Over iWARP no read into memory without a key is possible: see rdma_read_hides_rkey. */
	if (is_iwarp)
		return 0;
	OK(dat_ep_post_rdma_read(scene->pair.ep[0], 1, &to, cookie(6), &remote, DEFAULT));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_RDMA_READ, 6, 64));
	EXPECT(!memcmp((void *)to.virtual_address, scene->pair.memory, 64));
	return 0;
}

/* A write of side 0 is refused, which ends the connection. */
static int write_refused(struct scene *scene, u64 address, DAT_RMR_CONTEXT context)
{
	DAT_DTO_COMPLETION_STATUS status;
	DAT_EVENT event;

	memset(scene->pages, 0x11, SIZE);
	OK(write_to(scene, address, context));
	TRY(next_event(scene->pair.dto[0], DAT_DTO_COMPLETION_EVENT, &event));
	status = event.event_data.dto_completion_event_data.status;
	/* Over iWARP a write completes when it was sent, unless the peer's refusal arrives before. */
	if (!is_iwarp || status != DAT_DTO_ERR_LOCAL_EP)
		SAME(status, is_iwarp ? DAT_DTO_SUCCESS : DAT_DTO_ERR_REMOTE_ACCESS);
	OK(dat_evd_wait(scene->pair.connection[0], PATIENCE_US, 1, &event, NULL));
	/* Nor can a side tell a disconnect from a failure. */
	if (!is_iwarp || event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
		SAME(event.event_number, DAT_CONNECTION_EVENT_BROKEN);
	EXPECT(!memchr_inv(scene->pages, 0x11, SIZE));
	return 0;
}

/* Sends from the pages, whose context is also one of this side. */
static int local_access(struct scene *scene)
{
	DAT_LMR_TRIPLET from = { (DAT_VADDR)scene->pages + SIZE - 64, 64, scene->local };
	DAT_LMR_TRIPLET to = pair_place(&scene->pair, 256, 64);

	OK(dat_ep_post_recv(scene->pair.ep[0], 1, &to, cookie(7), DEFAULT));
	OK(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), DEFAULT));
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_SEND, 8, 64));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_RECEIVE, 7, 64));
	EXPECT(!memcmp((void *)to.virtual_address, scene->pages + SIZE - 64, 64));
	from.virtual_address++;
	REFUSED(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), DEFAULT),
		DAT_PROTECTION_VIOLATION, PROTECTION_READ);
	return 0;
}

static int access_pages(struct scene *scene)
{
	DAT_LMR_TRIPLET from = { (DAT_VADDR)scene->pages, 64 };
	DAT_LMR_PARAM param;

	TRY(registered(scene));
	OK(dat_lmr_query(scene->lmr, 0, &param));
	SAME(param.lmr_context, scene->local);
	SAME(param.rmr_context, scene->remote);
	SAME(param.length, SIZE);
	SAME(param.mem_priv, ALL);
	EXPECT(param.pz_handle == pz);
	TRY(peer_access(scene, (u64)scene->pages, scene->pages));
	TRY(local_access(scene));
	from.lmr_context = scene->local;
	OK(invalidate(scene, scene->pair.ep[1], 2));
	/* From the call on, posts may not name it. */
	REFUSED(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), DEFAULT),
		DAT_PROTECTION_VIOLATION, PROTECTION_READ);
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_LMR_INVALIDATE, 2, 0));
	OK(dat_lmr_query(scene->lmr, 0, &param));
	SAME(param.lmr_context, 0);
	SAME(param.rmr_context, 0);
	SAME(param.length, 0);
	return write_refused(scene, (u64)scene->pages, scene->remote);
}

static int fmr_of_pages(void)
{
	return with_pages(access_pages);
}

static int access_vmalloc(struct scene *scene)
{
	u8 *own = scene->pages, *pages = vmalloc(SIZE);
	int error;

	EXPECT(pages);
	memset(pages, 0, SIZE);
	scene->pages = pages;
	error = registered(scene) ?: peer_access(scene, (u64)pages, pages) ?: invalidated(scene);
	scene->pages = own;
	vfree(pages);
	return error;
}

static int fmr_of_vmalloc(void)
{
	return with_pages(access_vmalloc);
}

/* Registers memory of another type, and takes the completion. */
static int register_as(struct scene *scene, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
		       u32 count, DAT_VA_TYPE va_type)
{
	OK(dat_lmr_fmr(scene->lmr, type, region, count, ALL, va_type, scene->pair.ep[1], cookie(1),
		       DEFAULT, &scene->local, &scene->remote));
	return next_dto(scene->pair.dto[1], DAT_DTO_LMR_FMR, 1, 0);
}

/* Side 0 writes 64 bytes. */
static int peer_write(struct scene *scene, u64 address)
{
	memset(scene->pages, 0, SIZE);
	memset(scene->pair.memory, 0x5a, 64);
	OK(write_to(scene, address, scene->remote));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_RDMA_WRITE, 3, 64));
	return send_message(scene);
}

/* Bytes that were written, and no others, from an offset in the pages on. */
static int written(const struct scene *scene, size_t offset, size_t length)
{
	const u8 *start = scene->pages + offset;

	EXPECT(!memchr_inv(start, 0x5a, length));
	SAME(start[-1], 0);
	SAME(start[length], 0);
	return 0;
}

/* Registers the pages in another order. */
static int access_physical(struct scene *scene)
{
	static const unsigned int order[PAGES] = { 2, 0, 3, 1 };
	DAT_REGION_DESCRIPTION region;
	DAT_PADDR addresses[PAGES];
	DAT_LMR_TRIPLET from;
	unsigned int i;
	u64 start;

	for (i = 0; i < PAGES; i++)
		addresses[i] = virt_to_phys(scene->pages + order[i] * PAGE_SIZE);
	start = (u64)scene->pages + order[0] * PAGE_SIZE;
	region.for_physical = addresses;
	TRY(register_as(scene, DAT_MEM_TYPE_PHYSICAL, region, PAGES, DAT_VA_TYPE_VA));
	/* Across the end of the second page of the region, which is the first in memory. */
	TRY(peer_write(scene, start + 2 * PAGE_SIZE - 32));
	TRY(written(scene, PAGE_SIZE - 32, 32));
	TRY(written(scene, 3 * PAGE_SIZE, 32));
	from = (DAT_LMR_TRIPLET){ start, SIZE, scene->local };
	TRY(invalidated(scene));
	REFUSED(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), DEFAULT),
		DAT_PROTECTION_VIOLATION, PROTECTION_READ);
	/* Zero-based. */
	TRY(register_as(scene, DAT_MEM_TYPE_PHYSICAL, region, PAGES, DAT_VA_TYPE_ZB));
	TRY(peer_write(scene, PAGE_SIZE + 8));
	TRY(written(scene, 8, 64));
	return write_refused(scene, start, scene->remote);
}

static int fmr_of_physical_pages(void)
{
	return with_pages(access_physical);
}

/* Registers 100 bytes at the end of the third page, the first page, and 50 bytes of the second. */
static int access_list(struct scene *scene, DAT_MEM_TYPE type, void *list, u32 entries)
{
	const DAT_REGION_DESCRIPTION region = { .for_platform = list };
	const u64 start = (u64)scene->pages + 3 * PAGE_SIZE - 100;
	DAT_LMR_PARAM param;

	TRY(register_as(scene, type, region, entries, DAT_VA_TYPE_VA));
	OK(dat_lmr_query(scene->lmr, 0, &param));
	SAME(param.length, 150 + PAGE_SIZE);
	/* Across the end of the first entry, and up to the last byte. */
	TRY(peer_write(scene, start + 80));
	TRY(written(scene, 3 * PAGE_SIZE - 20, 20));
	EXPECT(!memchr_inv(scene->pages, 0x5a, 44));
	SAME(scene->pages[44], 0);
	TRY(peer_write(scene, start + 150 + PAGE_SIZE - 64));
	TRY(written(scene, PAGE_SIZE - 14, 64));
	TRY(invalidated(scene));
	/* Memory that does not begin at a page boundary is not zero-based. */
	REFUSED(dat_lmr_fmr(scene->lmr, type, region, entries, ALL, DAT_VA_TYPE_ZB, scene->pair.ep[1],
			    cookie(1), DEFAULT, NULL, NULL),
		DAT_INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED);
	/* Without the first page there is a gap. */
	REFUSED(dat_lmr_fmr(scene->lmr, type, region, entries - 1, ALL, DAT_VA_TYPE_ZB,
			    scene->pair.ep[1], cookie(1), DEFAULT, NULL, NULL),
		DAT_INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED);
	TRY(register_as(scene, type, region, entries, DAT_VA_TYPE_VA));
	/* One byte beyond the last. */
	return write_refused(scene, start + 150 + PAGE_SIZE - 63, scene->remote);
}

static int access_scatterlist(struct scene *scene)
{
	struct scatterlist list[3];

	sg_init_table(list, ARRAY_SIZE(list));
	sg_set_buf(&list[0], scene->pages + 3 * PAGE_SIZE - 100, 100);
	sg_set_buf(&list[1], scene->pages, PAGE_SIZE);
	sg_set_buf(&list[2], scene->pages + PAGE_SIZE, 50);
	return access_list(scene, DAT_MEM_TYPE_PLATFORM, list, ARRAY_SIZE(list));
}

static int fmr_of_scatterlist(void)
{
	return with_pages(access_scatterlist);
}

static int access_bvecs(struct scene *scene)
{
	/* An offset may exceed its page, and one element has what two of the scatterlist have. */
	struct bio_vec list[2];

	bvec_set_page(&list[0], virt_to_page(scene->pages), 100, 3 * PAGE_SIZE - 100);
	bvec_set_page(&list[1], virt_to_page(scene->pages), PAGE_SIZE + 50, 0);
	return access_list(scene, KDAPL_MEM_TYPE_BVEC, list, ARRAY_SIZE(list));
}

static int fmr_of_bvecs(void)
{
	return with_pages(access_bvecs);
}

/* Lists that are refused. */
static int refuse_lists(struct scene *scene)
{
	DAT_REGION_DESCRIPTION region;
	struct scatterlist list[2];

#define REFUSED_LIST(count, type, subtype)						\
	REFUSED(dat_lmr_fmr(scene->lmr, DAT_MEM_TYPE_PLATFORM, region, count, ALL, DAT_VA_TYPE_VA, \
			    scene->pair.ep[1], cookie(1), DEFAULT, NULL, NULL), type, subtype)
	region.for_platform = list;
	sg_init_table(list, ARRAY_SIZE(list));
	sg_set_buf(&list[0], scene->pages, 100);
	sg_set_buf(&list[1], scene->pages + PAGE_SIZE, PAGE_SIZE);
	REFUSED_LIST(2, DAT_INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED);
	sg_set_buf(&list[0], scene->pages, PAGE_SIZE);
	sg_set_buf(&list[1], scene->pages + PAGE_SIZE + 1, 10);
	REFUSED_LIST(2, DAT_INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED);
	sg_set_buf(&list[1], scene->pages + PAGE_SIZE, 0);
	REFUSED_LIST(2, DAT_INVALID_ADDRESS, INVALID_ADDRESS_MALFORMED);
	/* The list ends before. */
	sg_set_buf(&list[1], scene->pages + PAGE_SIZE, PAGE_SIZE);
	REFUSED_LIST(3, DAT_INVALID_ADDRESS, INVALID_ADDRESS_MALFORMED);
	REFUSED_LIST(PAGES + 1, DAT_LENGTH_ERROR, 0);
	/* Five pages in two entries. */
	sg_set_buf(&list[1], scene->pages, SIZE);
	REFUSED_LIST(2, DAT_LENGTH_ERROR, 0);
	sg_set_page(&list[1], ZERO_PAGE(0), PAGE_SIZE, 0);
	REFUSED_LIST(2, DAT_INVALID_ADDRESS, INVALID_ADDRESS_MALFORMED);
	region.for_platform = NULL;
	REFUSED_LIST(2, DAT_INVALID_PARAMETER, INVALID_ARG(3));
#undef REFUSED_LIST
	return registered(scene);
}

static int fmr_lists(void)
{
	return with_pages(refuse_lists);
}

/* The contexts of an earlier registration do not work while the next one does. */
static int register_again(struct scene *scene)
{
	DAT_RMR_CONTEXT old_remote;
	DAT_LMR_CONTEXT old_local;
	DAT_LMR_TRIPLET from;

	TRY(registered(scene));
	old_remote = scene->remote;
	old_local = scene->local;
	TRY(invalidated(scene));
	TRY(registered(scene));
	EXPECT(scene->remote != old_remote && scene->local != old_local);
	/* The region of the device is the same. */
	SAME(scene->remote >> 8, old_remote >> 8);
	TRY(peer_access(scene, (u64)scene->pages, scene->pages));
	from = (DAT_LMR_TRIPLET){ (DAT_VADDR)scene->pages, 64, old_local };
	REFUSED(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), DEFAULT),
		DAT_PROTECTION_VIOLATION, PROTECTION_READ);
	return write_refused(scene, (u64)scene->pages, old_remote);
}

static int fmr_old_context(void)
{
	return with_pages(register_again);
}

/* Posts all requests at once. */
static int pipeline(struct scene *scene)
{
	const DAT_COMPLETION_FLAGS fences = DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG |
					    DAT_COMPLETION_BARRIER_FENCE_FLAG;
	DAT_LMR_TRIPLET to = pair_place(&scene->pair, 256, 64);
	DAT_LMR_TRIPLET from;
	unsigned int round;

	/* Over iWARP the passive side sends only after it has received a message. */
	TRY(send_message(scene));
	for (round = 0; round < 20; round++) {
		memset(scene->pages, round + 1, SIZE);
		OK(dat_ep_post_recv(scene->pair.ep[0], 1, &to, cookie(7), DEFAULT));
		OK(fmr(scene, scene->pair.ep[1], 1, SUPPRESS));
		from = (DAT_LMR_TRIPLET){ (DAT_VADDR)scene->pages + SIZE - 64, 64, scene->local };
		OK(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), SUPPRESS));
		OK(dat_lmr_invalidate(scene->lmr, scene->pair.ep[1], cookie(2),
				      SUPPRESS | (round % 2 ? fences : 0)));
		TRY(next_dto(scene->pair.dto[0], DAT_DTO_RECEIVE, 7, 64));
		EXPECT(!memchr_inv((void *)to.virtual_address, round + 1, 64));
		/* Its completion has no event. A registration takes it when it is there. */
		UNTIL(dat_lmr_fmr(scene->lmr, DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION){},
				  PAGES, 0, DAT_VA_TYPE_VA, scene->pair.ep[1], cookie(1), DEFAULT,
				  NULL, NULL) ==
		      (DAT_CLASS_ERROR | DAT_INVALID_ADDRESS | INVALID_ADDRESS_MALFORMED));
	}
	OK(fmr(scene, scene->pair.ep[1], 1, SUPPRESS));
	/* So does a free, which is refused before. */
	UNTIL(!dat_lmr_free(scene->lmr));
	return 0;
}

static int fmr_pipelined(void)
{
	return with_pages(pipeline);
}

/* Sends a message that invalidates a context. */
static int remote_invalidation(struct scene *scene, DAT_RMR_CONTEXT context)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_LMR_TRIPLET place = pair_place(&scene->pair, 0, 64);
	DAT_EVENT event;

	OK(dat_ep_post_recv(scene->pair.ep[1], 1, &place, cookie(4), DEFAULT));
	OK(dat_ep_post_send_with_invalidate(scene->pair.ep[0], 1, &place, cookie(5), DEFAULT, DAT_TRUE,
					    context));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_SEND, 5, 64));
	TRY(next_event(scene->pair.dto[1], DAT_DTO_COMPLETION_EVENT, &event));
	dto = &event.event_data.dto_completion_event_data;
	SAME(dto->status, DAT_DTO_SUCCESS);
	SAME(dto->operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	SAME(dto->rmr_context, context);
	return 0;
}

/* The peer invalidates the context, and the LMR is free. */
static int peer_invalidates(struct scene *scene)
{
	DAT_LMR_TRIPLET from = { (DAT_VADDR)scene->pages, 64 };
	DAT_LMR_TRIPLET to = pair_place(&scene->pair, 256, 64);
	DAT_RMR_CONTEXT old;
	unsigned int round;

	for (round = 0; round < 3; round++) {
		TRY(registered(scene));
		TRY(peer_access(scene, (u64)scene->pages, scene->pages));
		memset(scene->pages, 0, SIZE);
		REFUSED(fmr(scene, scene->pair.ep[1], 1, DEFAULT), DAT_INVALID_STATE,
			INVALID_STATE_LMR_IN_USE);
		from.lmr_context = scene->local;
		old = scene->remote;
		TRY(remote_invalidation(scene, scene->remote));
		REFUSED(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), DEFAULT),
			DAT_PROTECTION_VIOLATION, PROTECTION_READ);
		REFUSED(invalidate(scene, scene->pair.ep[1], 2), DAT_INVALID_STATE,
			INVALID_STATE_LMR_FREE);
	}
	/* The registration has no event. The peer gets the context by a message that follows it. */
	OK(dat_ep_post_recv(scene->pair.ep[0], 1, &to, cookie(7), DEFAULT));
	OK(fmr(scene, scene->pair.ep[1], 1, SUPPRESS));
	from.lmr_context = scene->local;
	OK(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), SUPPRESS));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_RECEIVE, 7, 64));
	TRY(remote_invalidation(scene, scene->remote));
	TRY(registered(scene));
	return write_refused(scene, (u64)scene->pages, old);
}

static int fmr_remote_invalidate(void)
{
	return with_pages(peer_invalidates);
}

static int next_flushed(DAT_EVD_HANDLE evd, DAT_DTOS operation)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	TRY(next_event(evd, DAT_DTO_COMPLETION_EVENT, &event));
	dto = &event.event_data.dto_completion_event_data;
	SAME(dto->status, DAT_DTO_ERR_FLUSHED);
	SAME(dto->operation, operation);
	return 0;
}

static int disconnect(struct scene *scene)
{
	unsigned int side;
	DAT_EVENT event;

	OK(dat_ep_disconnect(scene->pair.ep[0], DAT_CLOSE_ABRUPT_FLAG));
	for (side = 0; side < 2; side++)
		TRY(next_event(scene->pair.connection[side], DAT_CONNECTION_EVENT_DISCONNECTED, &event));
	return 0;
}

static int connect_again(struct scene *scene)
{
	OK(dat_ep_reset(scene->pair.ep[0]));
	OK(dat_ep_reset(scene->pair.ep[1]));
	return pair_connect(&scene->pair);
}

/* After the end of the connection the LMR is flushed, and registered on the next one. */
static int flush(struct scene *scene)
{
	DAT_RMR_CONTEXT old;

	TRY(registered(scene));
	old = scene->remote;
	TRY(disconnect(scene));
	/* It is still registered. */
	REFUSED(fmr(scene, scene->pair.ep[1], 1, DEFAULT), DAT_INVALID_STATE,
		INVALID_STATE_LMR_IN_USE);
	OK(invalidate(scene, scene->pair.ep[1], 2));
	TRY(next_flushed(scene->pair.dto[1], DAT_DTO_LMR_INVALIDATE));
	REFUSED(invalidate(scene, scene->pair.ep[1], 2), DAT_INVALID_STATE, INVALID_STATE_LMR_FREE);
	/* A registration on a disconnected Endpoint is flushed too. */
	OK(fmr(scene, scene->pair.ep[1], 1, DEFAULT));
	TRY(next_flushed(scene->pair.dto[1], DAT_DTO_LMR_FMR));
	TRY(connect_again(scene));
	TRY(registered(scene));
	EXPECT(scene->remote != old);
	TRY(peer_access(scene, (u64)scene->pages, scene->pages));
	/* A registration outlives its connection. */
	TRY(disconnect(scene));
	TRY(connect_again(scene));
	memset(scene->pages, 0, SIZE);
	TRY(peer_access(scene, (u64)scene->pages, scene->pages));
	TRY(invalidated(scene));
	/* The key that was flushed is dead. */
	return write_refused(scene, (u64)scene->pages, old);
}

static int fmr_flushed(void)
{
	return with_pages(flush);
}

/* The requests of a connection that the peer has left are flushed by the queue pair, or complete. */
static int flush_outstanding(struct scene *scene)
{
	unsigned int round;
	DAT_EVENT event;

	for (round = 0; round < 10; round++) {
		DAT_LMR_TRIPLET from = pair_place(&scene->pair, 0, 64);
		DAT_DTO_COMPLETION_STATUS status;

		/*
		 * It has no receive, so the requests that follow it are outstanding at the end. Over iWARP
		 * it would end the connection.
		 */
		if (!is_iwarp)
			OK(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), SUPPRESS));
		OK(fmr(scene, scene->pair.ep[1], 1, DEFAULT));
		if (round % 2)
			OK(invalidate(scene, scene->pair.ep[1], 2));
		REFUSED(dat_lmr_free(scene->lmr), DAT_INVALID_STATE, INVALID_STATE_LMR_IN_USE);
		OK(dat_ep_disconnect(scene->pair.ep[1], DAT_CLOSE_ABRUPT_FLAG));
		do {
			TRY(next_event(scene->pair.dto[1], DAT_DTO_COMPLETION_EVENT, &event));
			status = event.event_data.dto_completion_event_data.status;
		} while (event.event_data.dto_completion_event_data.operation !=
			 (round % 2 ? DAT_DTO_LMR_INVALIDATE : DAT_DTO_LMR_FMR));
		TRY(next_event(scene->pair.connection[1], DAT_CONNECTION_EVENT_DISCONNECTED, &event));
		OK(dat_evd_wait(scene->pair.connection[0], PATIENCE_US, 1, &event, NULL));
		TRY(connect_again(scene));
		if (!status && !(round % 2))
			TRY(invalidated(scene));
		memset(scene->pages, 0, SIZE);
		TRY(registered(scene));
		TRY(peer_access(scene, (u64)scene->pages, scene->pages));
		TRY(invalidated(scene));
	}
	return 0;
}

static int fmr_flushed_outstanding(void)
{
	return with_pages(flush_outstanding);
}

static int rounds(struct scene *scene)
{
	DAT_RMR_CONTEXT last = 0, first = 0;
	unsigned int round;

	for (round = 0; round < 1000; round++) {
		TRY(registered(scene));
		first = first ?: scene->remote;
		/* Another key each time, of one region of the device. */
		EXPECT(scene->remote != last);
		SAME(scene->remote >> 8, first >> 8);
		last = scene->remote;
		TRY(invalidated(scene));
	}
	TRY(registered(scene));
	return peer_access(scene, (u64)scene->pages, scene->pages);
}

static int fmr_thousand_rounds(void)
{
	return with_pages(rounds);
}

/* Refusals for the state of the LMR or of the Endpoint. */
static int refuse_states(struct scene *scene)
{
	DAT_EP_HANDLE unconnected, stranger;
	struct pair *pair = &scene->pair;
	struct scene other = *scene;
	DAT_PZ_HANDLE other_pz;

	OK(dat_ep_create(ia, pz, pair->dto[0], pair->dto[0], pair->connection[0], NULL, &unconnected));
	OK(dat_pz_create(ia, &other_pz));
	OK(dat_ep_create(ia, other_pz, pair->dto[0], pair->dto[0], pair->connection[0], NULL,
			 &stranger));
	OK(dat_lmr_allocate(ia, other_pz, PAGES, DAT_LMR_SCOPE_PZ, &other.lmr));
	REFUSED(invalidate(scene, pair->ep[1], 2), DAT_INVALID_STATE, INVALID_STATE_LMR_FREE);
	REFUSED(fmr(scene, unconnected, 1, DEFAULT), DAT_INVALID_STATE, INVALID_STATE_EP_UNCONNECTED);
	REFUSED(fmr(&other, pair->ep[1], 1, DEFAULT), DAT_PROTECTION_VIOLATION, 0);
	/* None of them has changed the LMR. */
	TRY(registered(scene));
	REFUSED(fmr(scene, pair->ep[1], 1, DEFAULT), DAT_INVALID_STATE, INVALID_STATE_LMR_IN_USE);
	REFUSED(invalidate(scene, unconnected, 2), DAT_INVALID_STATE, INVALID_STATE_EP_UNCONNECTED);
	OK(dat_lmr_free(other.lmr));
	REFUSED(fmr(&other, pair->ep[1], 1, DEFAULT), DAT_INVALID_HANDLE, INVALID_HANDLE_LMR);
	/* The peer's Endpoint may end the registration of this one. */
	OK(invalidate(scene, pair->ep[0], 2));
	REFUSED(invalidate(scene, pair->ep[1], 2), DAT_INVALID_STATE, INVALID_STATE_LMR_FREE);
	REFUSED(fmr(scene, pair->ep[1], 1, DEFAULT), DAT_INVALID_STATE, INVALID_STATE_LMR_IN_USE);
	REFUSED(dat_lmr_free(scene->lmr), DAT_INVALID_STATE, INVALID_STATE_LMR_IN_USE);
	TRY(next_dto(pair->dto[0], DAT_DTO_LMR_INVALIDATE, 2, 0));
	/* While the registration is outstanding, only its own Endpoint does. */
	OK(fmr(scene, pair->ep[1], 1, DEFAULT));
	REFUSED(invalidate(scene, pair->ep[0], 2), DAT_INVALID_STATE, INVALID_STATE_LMR_IN_USE);
	OK(invalidate(scene, pair->ep[1], 2));
	TRY(next_dto(pair->dto[1], DAT_DTO_LMR_FMR, 1, 0));
	TRY(next_dto(pair->dto[1], DAT_DTO_LMR_INVALIDATE, 2, 0));
	OK(dat_lmr_free(scene->lmr));
	return 0;
}

static int fmr_states(void)
{
	return with_pages(refuse_states);
}

/* An Endpoint of another PZ does not end a registration. */
static int refuse_zone(struct scene *scene)
{
	DAT_PZ_HANDLE own = pz;
	struct pair other = {};

	TRY(registered(scene));
	OK(dat_pz_create(ia, &pz));
	TRY(pair_make(&other));
	TRY(pair_connect(&other));
	REFUSED(invalidate(scene, other.ep[0], 2), DAT_PROTECTION_VIOLATION, 0);
	pz = own;
	memset(scene->pages, 0, SIZE);
	TRY(peer_access(scene, (u64)scene->pages, scene->pages));
	TRY(invalidated(scene));
	return 0;
}

static int fmr_zones(void)
{
	return with_pages(refuse_zone);
}

/* Refusals of arguments. */
static int refuse_arguments(struct scene *scene)
{
	const DAT_REGION_DESCRIPTION none = {};
	DAT_REGION_DESCRIPTION region = { .for_va = scene->pages };
	DAT_EP_HANDLE ep = scene->pair.ep[1];
	DAT_LMR_HANDLE lmr = scene->lmr, plain;
	DAT_LMR_CONTEXT context;
	DAT_PADDR address;

#define FMR(lmr, type, region, count, privileges, va_type, ep, flags)			\
	dat_lmr_fmr(lmr, type, region, count, privileges, va_type, ep, cookie(1), flags, NULL, NULL)
#define VIRTUAL		DAT_MEM_TYPE_VIRTUAL
#define PHYSICAL	DAT_MEM_TYPE_PHYSICAL
	REFUSED(dat_lmr_allocate(ia, pz, 0, DAT_LMR_SCOPE_PZ, &plain), DAT_LENGTH_ERROR, 0);
	REFUSED(dat_lmr_allocate(ia, pz, U32_MAX, DAT_LMR_SCOPE_PZ, &plain), DAT_LENGTH_ERROR, 0);
	REFUSED(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_EP, &plain), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_ANY, &plain), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(dat_lmr_allocate(ia, ep, 1, DAT_LMR_SCOPE_PZ, &plain), DAT_INVALID_HANDLE,
		INVALID_HANDLE_PZ);
	REFUSED(dat_lmr_allocate(pz, pz, 1, DAT_LMR_SCOPE_PZ, &plain), DAT_INVALID_HANDLE,
		INVALID_HANDLE_IA);
	REFUSED(FMR(ep, VIRTUAL, region, 1, ALL, 0, ep, 0), DAT_INVALID_HANDLE, INVALID_HANDLE_LMR);
	REFUSED(FMR(lmr, VIRTUAL, region, 1, ALL, 0, lmr, 0), DAT_INVALID_HANDLE, INVALID_HANDLE_EP);
	REFUSED(FMR(lmr, 1, region, 1, ALL, 0, ep, 0), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(FMR(lmr, 0x80, region, 1, ALL, 0, ep, 0), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(FMR(lmr, VIRTUAL, region, 1, ALL, 2, ep, 0), DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(FMR(lmr, VIRTUAL, region, 0, ALL, 0, ep, 0), DAT_LENGTH_ERROR, 0);
	REFUSED(FMR(lmr, VIRTUAL, region, PAGES + 1, ALL, 0, ep, 0), DAT_LENGTH_ERROR, 0);
	REFUSED(FMR(lmr, VIRTUAL, none, 1, ALL, 0, ep, 0), DAT_INVALID_ADDRESS,
		INVALID_ADDRESS_MALFORMED);
	region.for_va = scene->pages + 8;
	REFUSED(FMR(lmr, VIRTUAL, region, 1, ALL, 0, ep, 0), DAT_INVALID_ADDRESS,
		INVALID_ADDRESS_MALFORMED);
	region.for_va = page_address(ZERO_PAGE(0));
	REFUSED(FMR(lmr, VIRTUAL, region, 1, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 0, ep, 0),
		DAT_INVALID_ADDRESS, INVALID_ADDRESS_MALFORMED);
	address = U64_MAX & PAGE_MASK;
	region.for_physical = &address;
	REFUSED(FMR(lmr, PHYSICAL, region, 1, ALL, 0, ep, 0), DAT_INVALID_ADDRESS,
		INVALID_ADDRESS_MALFORMED);
	REFUSED(FMR(lmr, PHYSICAL, region, 0, ALL, 0, ep, 0), DAT_LENGTH_ERROR, 0);
	address = virt_to_phys(scene->pages) + 8;
	REFUSED(FMR(lmr, PHYSICAL, region, 1, ALL, 0, ep, 0), DAT_INVALID_ADDRESS,
		INVALID_ADDRESS_MALFORMED);
	REFUSED(dat_lmr_invalidate(ep, ep, cookie(1), 0), DAT_INVALID_HANDLE, INVALID_HANDLE_LMR);
	REFUSED(dat_lmr_invalidate(lmr, lmr, cookie(1), 0), DAT_INVALID_HANDLE, INVALID_HANDLE_EP);
	/* Another kind of LMR. */
	OK(register_memory(pair_memory, PAGE_SIZE, LOCAL, &plain, &context));
	region.for_va = scene->pages;
	REFUSED(FMR(plain, VIRTUAL, region, 1, ALL, 0, ep, 0), DAT_INVALID_HANDLE, INVALID_HANDLE_LMR);
	REFUSED(dat_lmr_invalidate(plain, ep, cookie(1), 0), DAT_INVALID_HANDLE, INVALID_HANDLE_LMR);
#undef PHYSICAL
#undef VIRTUAL
#undef FMR
	return registered(scene);
}

static int fmr_refusals(void)
{
	return with_pages(refuse_arguments);
}

/* Without privileges of peers, a write of the peer is refused. */
static int refuse_peer(struct scene *scene)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = scene->pages };
	const DAT_RMR_TRIPLET source = { .segment_length = 64 };
	DAT_LMR_TRIPLET place;

	OK(dat_lmr_fmr(scene->lmr, DAT_MEM_TYPE_VIRTUAL, region, 1, DAT_MEM_PRIV_LOCAL_READ_FLAG,
		       DAT_VA_TYPE_VA, scene->pair.ep[1], cookie(1), DEFAULT, &scene->local,
		       &scene->remote));
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_LMR_FMR, 1, 0));
	/* Nor may this side write to it. */
	place = (DAT_LMR_TRIPLET){ (DAT_VADDR)scene->pages, 64, scene->local };
	REFUSED(dat_ep_post_recv(scene->pair.ep[1], 1, &place, cookie(4), DEFAULT),
		DAT_PRIVILEGES_VIOLATION, PRIVILEGES_WRITE);
	TRY(invalidated(scene));
	OK(dat_lmr_fmr(scene->lmr, DAT_MEM_TYPE_VIRTUAL, region, 1, LOCAL, DAT_VA_TYPE_VA,
		       scene->pair.ep[1], cookie(1), DEFAULT, &scene->local, &scene->remote));
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_LMR_FMR, 1, 0));
	/* Over iWARP an RDMA read requires the privilege of remote writes. */
	place.lmr_context = scene->local;
	if (is_iwarp)
		REFUSED(dat_ep_post_rdma_read(scene->pair.ep[1], 1, &place, cookie(6), &source, DEFAULT),
			DAT_PRIVILEGES_VIOLATION, PRIVILEGES_RDMA_WRITE);
	return write_refused(scene, (u64)scene->pages, scene->remote);
}

static int fmr_privileges(void)
{
	return with_pages(refuse_peer);
}

/* Reads the pages of side 1 into pages of side 0, over iWARP too. */
static int read_between(struct scene *scene)
{
	DAT_LMR_TRIPLET to = pair_place(&scene->pair, 0, 0);
	struct scene sink = *scene;
	DAT_RMR_TRIPLET from;

	OK(dat_lmr_allocate(ia, pz, PAGES, DAT_LMR_SCOPE_PZ, &sink.lmr));
	sink.pages = alloc_pages_exact(SIZE, GFP_KERNEL | __GFP_ZERO);
	EXPECT(sink.pages);
	memset(scene->pages, 0x77, SIZE);
	TRY(registered(scene));
	OK(fmr(&sink, scene->pair.ep[0], 1, DEFAULT));
	from = (DAT_RMR_TRIPLET){ (DAT_VADDR)scene->pages, SIZE, scene->remote };
	to = (DAT_LMR_TRIPLET){ (DAT_VADDR)sink.pages, SIZE, sink.local };
	/* Right after the registration, on the same queue. */
	OK(dat_ep_post_rdma_read(scene->pair.ep[0], 1, &to, cookie(6), &from, DEFAULT));
	OK(dat_lmr_invalidate(sink.lmr, scene->pair.ep[0], cookie(2),
			      DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_LMR_FMR, 1, 0));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_RDMA_READ, 6, SIZE));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_LMR_INVALIDATE, 2, 0));
	EXPECT(!memchr_inv(sink.pages, 0x77, SIZE));
	OK(dat_lmr_free(sink.lmr));
	free_pages_exact(sink.pages, SIZE);
	return 0;
}

static int fmr_read_destination(void)
{
	return with_pages(read_between);
}

/* The reserved LMR. The DMA addresses of a virtual device are those of the kernel. */
static int use_reserved(struct scene *scene)
{
	const DAT_RMR_TRIPLET remote = { (DAT_VADDR)scene->pages, 64, 0 };
	DAT_LMR_TRIPLET from = { (DAT_VADDR)scene->pages, 64 };
	DAT_LMR_TRIPLET to = pair_place(&scene->pair, 256, 64);
	DAT_LMR_HANDLE lmr, again;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT bound;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_PARAM param;
	DAT_HANDLE_TYPE type;
	DAT_RETURN ret;
	DAT_EVENT event;

	REFUSED(dat_ia_reserved_lmr(pz, &lmr, &context), DAT_INVALID_HANDLE, INVALID_HANDLE_IA);
	/* Its context means nothing before the first call. */
	from.lmr_context = 1;
	REFUSED(dat_ep_post_send(scene->pair.ep[0], 1, &from, cookie(8), DEFAULT),
		DAT_PROTECTION_VIOLATION, PROTECTION_READ);
	OK(dat_ia_reserved_lmr(ia, &lmr, &context));
	OK(dat_ia_reserved_lmr(ia, &again, &from.lmr_context));
	EXPECT(lmr == again && context == from.lmr_context);
	OK(dat_get_handle_type(lmr, &type));
	SAME(type, DAT_HANDLE_TYPE_LMR);
	OK(dat_lmr_query(lmr, 0, &param));
	SAME(param.lmr_context, context);
	SAME(param.rmr_context, 0);
	EXPECT(!param.pz_handle);
	memset(scene->pages, 0x3c, 64);
	OK(dat_ep_post_recv(scene->pair.ep[1], 1, &to, cookie(7), DEFAULT));
	OK(dat_ep_post_send(scene->pair.ep[0], 1, &from, cookie(8), DEFAULT));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_SEND, 8, 64));
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_RECEIVE, 7, 64));
	EXPECT(!memchr_inv((void *)to.virtual_address, 0x3c, 64));
	REFUSED(dat_lmr_free(lmr), DAT_RESERVED_LMR, 0);
	REFUSED(dat_lmr_invalidate(lmr, scene->pair.ep[1], cookie(1), DEFAULT), DAT_RESERVED_LMR, 0);
	REFUSED(dat_lmr_fmr(lmr, DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION){}, 1, ALL,
			    DAT_VA_TYPE_VA, scene->pair.ep[1], cookie(1), DEFAULT, NULL, NULL),
		DAT_RESERVED_LMR, 0);
	OK(dat_rmr_create(pz, &rmr));
	REFUSED(dat_rmr_bind(rmr, lmr, &from, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
			     scene->pair.ep[1], cookie(1), DEFAULT, &bound), DAT_RESERVED_LMR, 0);
	/* An LMR of dat_lmr_allocate() has a remote context by itself. */
	REFUSED(dat_rmr_bind(rmr, scene->lmr, &from, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
			     scene->pair.ep[1], cookie(1), DEFAULT, &bound),
		DAT_MODEL_NOT_SUPPORTED, 0);
	/* An RDMA read over iWARP would show the key to the peer. */
	ret = dat_ep_post_rdma_read(scene->pair.ep[0], 1, &from, cookie(6), &remote, DEFAULT);
	if (is_iwarp)
		REFUSED(ret, DAT_PRIVILEGES_VIOLATION, PRIVILEGES_RDMA_WRITE);
	else
		OK(ret);
	if (!is_iwarp)
		TRY(next_event(scene->pair.dto[0], DAT_DTO_COMPLETION_EVENT, &event));
	/* It is no object that a graceful close would find. */
	TRY(ktest_renew());
	OK(dat_ia_reserved_lmr(ia, &lmr, &context));
	OK(dat_pz_free(pz));
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	return 0;
}

static int reserved_lmr(void)
{
	return with_pages(use_reserved);
}

const struct ktest fmr_tests[] = {
	{ "fmr_of_pages", fmr_of_pages },
	{ "fmr_of_vmalloc", fmr_of_vmalloc },
	{ "fmr_of_physical_pages", fmr_of_physical_pages },
	{ "fmr_of_scatterlist", fmr_of_scatterlist },
	{ "fmr_of_bvecs", fmr_of_bvecs },
	{ "fmr_lists", fmr_lists },
	{ "fmr_old_context", fmr_old_context },
	{ "fmr_pipelined", fmr_pipelined },
	{ "fmr_remote_invalidate", fmr_remote_invalidate },
	{ "fmr_flushed", fmr_flushed },
	{ "fmr_flushed_outstanding", fmr_flushed_outstanding },
	{ "fmr_thousand_rounds", fmr_thousand_rounds },
	{ "fmr_states", fmr_states },
	{ "fmr_zones", fmr_zones },
	{ "fmr_refusals", fmr_refusals },
	{ "fmr_privileges", fmr_privileges },
	{ "fmr_read_destination", fmr_read_destination },
	{ "reserved_lmr", reserved_lmr },
	{}
};

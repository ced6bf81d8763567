// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests LMRs that requests register and invalidate. */
#include <linux/mm.h>
#include <linux/string.h>

#include "fmr.h"

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
		DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
	return 0;
}

static int access_pages(struct scene *scene)
{
	DAT_LMR_TRIPLET from = { (DAT_VADDR)scene->pages, 64 };
	DAT_LMR_PARAM param;

	TRY(fmr_registered(scene));
	OK(dat_lmr_query(scene->lmr, 0, &param));
	SAME(param.lmr_context, scene->local);
	SAME(param.rmr_context, scene->remote);
	SAME(param.length, SIZE);
	SAME(param.mem_priv, ALL);
	EXPECT(param.pz_handle == pz);
	TRY(fmr_peer_access(scene, (u64)scene->pages, scene->pages));
	TRY(local_access(scene));
	from.lmr_context = scene->local;
	OK(fmr_invalidate(scene, scene->pair.ep[1], 2));
	/* From the call on, posts may not name it. */
	REFUSED(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), DEFAULT),
		DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_LMR_INVALIDATE, 2, 0));
	OK(dat_lmr_query(scene->lmr, 0, &param));
	SAME(param.lmr_context, 0);
	SAME(param.rmr_context, 0);
	SAME(param.length, 0);
	return fmr_write_refused(scene, (u64)scene->pages, scene->remote);
}

static int fmr_of_pages(void)
{
	return fmr_with_pages(access_pages);
}

/* The contexts of an earlier registration do not work while the next one does. */
static int register_again(struct scene *scene)
{
	DAT_RMR_CONTEXT old_remote;
	DAT_LMR_CONTEXT old_local;
	DAT_LMR_TRIPLET from;

	TRY(fmr_registered(scene));
	old_remote = scene->remote;
	old_local = scene->local;
	TRY(fmr_invalidated(scene));
	TRY(fmr_registered(scene));
	EXPECT(scene->remote != old_remote && scene->local != old_local);
	/* The region of the device is the same. */
	SAME(scene->remote >> 8, old_remote >> 8);
	TRY(fmr_peer_access(scene, (u64)scene->pages, scene->pages));
	from = (DAT_LMR_TRIPLET){ (DAT_VADDR)scene->pages, 64, old_local };
	REFUSED(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), DEFAULT),
		DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
	return fmr_write_refused(scene, (u64)scene->pages, old_remote);
}

static int fmr_old_context(void)
{
	return fmr_with_pages(register_again);
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
	TRY(fmr_send_message(scene));
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
		      (DAT_CLASS_ERROR | DAT_INVALID_ADDRESS | DAT_INVALID_ADDRESS_MALFORMED));
	}
	OK(fmr(scene, scene->pair.ep[1], 1, SUPPRESS));
	/* So does a free, which is refused before. */
	UNTIL(!dat_lmr_free(scene->lmr));
	return 0;
}

static int fmr_pipelined(void)
{
	return fmr_with_pages(pipeline);
}

static int rounds(struct scene *scene)
{
	DAT_RMR_CONTEXT last = 0, first = 0;
	unsigned int round;

	for (round = 0; round < 1000; round++) {
		TRY(fmr_registered(scene));
		first = first ?: scene->remote;
		/* Another key each time, of one region of the device. */
		EXPECT(scene->remote != last);
		SAME(scene->remote >> 8, first >> 8);
		last = scene->remote;
		TRY(fmr_invalidated(scene));
	}
	TRY(fmr_registered(scene));
	return fmr_peer_access(scene, (u64)scene->pages, scene->pages);
}

static int fmr_thousand_rounds(void)
{
	return fmr_with_pages(rounds);
}

/*
 * Suppressed requests take all slots of the Endpoint, and no thread takes their completions. A
 * registration does so itself.
 */
static int fill_slots(struct scene *scene)
{
	/* On soft-RoCE a registration takes two slots. */
	const DAT_EP_ATTR attr = { .max_recv_dtos = 8, .max_request_dtos = is_iwarp ? 2 : 4 };
	DAT_LMR_TRIPLET place = pair_place(&scene->pair, 64, 0);
	struct pair *pair = &scene->pair;
	struct scene other = *scene;
	DAT_EVD_HANDLE requests;

	OK(dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, &requests));
	OK(dat_ep_disconnect(pair->ep[0], DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ep_free(pair->ep[1]));
	OK(dat_ep_free(pair->ep[0]));
	OK(dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL,
			   DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, &pair->connection[0]));
	OK(dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL,
			   DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, &pair->connection[1]));
	OK(dat_ep_create(ia, pz, pair->dto[0], pair->dto[0], pair->connection[0], NULL,
			 &pair->ep[0]));
	OK(dat_ep_create(ia, pz, pair->dto[1], requests, pair->connection[1], &attr, &pair->ep[1]));
	TRY(pair_connect(pair));
	TRY(fmr_send_message(scene));
	OK(dat_ep_post_recv(pair->ep[0], 1, &place, cookie(7), DEFAULT));
	OK(fmr(scene, pair->ep[1], 1, SUPPRESS));
	OK(dat_ep_post_send(pair->ep[1], 1, &place, cookie(8), SUPPRESS));
	TRY(next_dto(pair->dto[0], DAT_DTO_RECEIVE, 7, 0));
	/* Its arrival tells that the peer has confirmed the other one. */
	TRY(fmr_send_message(scene));
	OK(dat_lmr_allocate(ia, pz, PAGES, DAT_LMR_SCOPE_PZ, &other.lmr));
	OK(fmr(&other, pair->ep[1], 1, SUPPRESS));
	return 0;
}

static int fmr_takes_completions(void)
{
	return fmr_with_pages(fill_slots);
}

static struct scene *shared;
static atomic_t registrations;

/* Returns whether a call was refused only because another thread was faster. */
static bool is_late(DAT_RETURN ret)
{
	return ret == (DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_LMR_IN_USE) ||
	       ret == (DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_LMR_FREE) ||
	       ret == (DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
}

static int register_in_turns(unsigned int number)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = shared->pages };
	DAT_EP_HANDLE ep = shared->pair.ep[1];
	unsigned int round;
	DAT_RETURN ret;

	for (round = 0; round < 300; round++) {
		ret = dat_lmr_fmr(shared->lmr, DAT_MEM_TYPE_VIRTUAL, region, PAGES, ALL,
				  DAT_VA_TYPE_VA, ep, cookie(1), SUPPRESS, NULL, NULL);
		if (ret && !is_late(ret))
			return FAIL("registration: %08x", ret);
		if (!ret)
			atomic_inc(&registrations);
		ret = dat_lmr_invalidate(shared->lmr, ep, cookie(2), SUPPRESS);
		if (ret && !is_late(ret))
			return FAIL("invalidation: %08x", ret);
		if (!ret)
			atomic_dec(&registrations);
	}
	return 0;
}

/* Threads register and invalidate one LMR. Each registration has one invalidation. */
static int race(struct scene *scene)
{
	struct ktest_thread threads[3];
	unsigned int i;
	int error = 0;

	shared = scene;
	atomic_set(&registrations, 0);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		error = ktest_start(&threads[i], register_in_turns, i) ?: error;
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		error = ktest_join(&threads[i]) ?: error;
	TRY(error);
	if (atomic_read(&registrations) == 1)
		UNTIL(!dat_lmr_invalidate(scene->lmr, scene->pair.ep[1], cookie(2), SUPPRESS));
	else
		SAME(atomic_read(&registrations), 0);
	/* The write of the peer is ordered with the registration only by its completion. */
	UNTIL(!fmr(scene, scene->pair.ep[1], 1, DEFAULT));
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_LMR_FMR, 1, 0));
	return fmr_peer_access(scene, (u64)scene->pages, scene->pages);
}

static int fmr_race(void)
{
	return fmr_with_pages(race);
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
		DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	TRY(fmr_invalidated(scene));
	OK(dat_lmr_fmr(scene->lmr, DAT_MEM_TYPE_VIRTUAL, region, 1, LOCAL, DAT_VA_TYPE_VA,
		       scene->pair.ep[1], cookie(1), DEFAULT, &scene->local, &scene->remote));
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_LMR_FMR, 1, 0));
	/* Over iWARP an RDMA read requires the privilege of remote writes. */
	place.lmr_context = scene->local;
	if (is_iwarp)
		REFUSED(dat_ep_post_rdma_read(scene->pair.ep[1], 1, &place, cookie(6), &source,
					      DEFAULT),
			DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	return fmr_write_refused(scene, (u64)scene->pages, scene->remote);
}

static int fmr_privileges(void)
{
	return fmr_with_pages(refuse_peer);
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
	TRY(fmr_registered(scene));
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
	return fmr_with_pages(read_between);
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

	REFUSED(dat_ia_reserved_lmr(pz, &lmr, &context), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	/* Its context means nothing before the first call. */
	from.lmr_context = 1;
	REFUSED(dat_ep_post_send(scene->pair.ep[0], 1, &from, cookie(8), DEFAULT),
		DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
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
	REFUSED(dat_lmr_invalidate(lmr, scene->pair.ep[1], cookie(1), DEFAULT), DAT_RESERVED_LMR,
		0);
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
		REFUSED(ret, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
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
	return fmr_with_pages(use_reserved);
}

const struct ktest fmr_tests[] = {
	{ "fmr_of_pages", fmr_of_pages },
	{ "fmr_old_context", fmr_old_context },
	{ "fmr_pipelined", fmr_pipelined },
	{ "fmr_thousand_rounds", fmr_thousand_rounds },
	{ "fmr_takes_completions", fmr_takes_completions },
	{ "fmr_race", fmr_race },
	{ "fmr_privileges", fmr_privileges },
	{ "fmr_read_destination", fmr_read_destination },
	{ "reserved_lmr", reserved_lmr },
	{}
};

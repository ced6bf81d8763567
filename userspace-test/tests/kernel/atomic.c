// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests posts in contexts that cannot sleep. */
#include <linux/string.h>

#include "contexts.h"
#include "fmr.h"

#define LENGTH	64

/* Objects of the calls in one context, and the codes that they have returned. */
struct posts {
	struct scene *scene;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE unconnected;
	DAT_COUNT posted;
	DAT_RETURN codes[7];
};

/* Posts a receive, a send, a list, an RDMA read and a receive of an SRQ. */
static void post_all(void *data)
{
	struct posts *posts = data;
	struct pair *pair = &posts->scene->pair;
	DAT_LMR_TRIPLET to = pair_place(pair, 0, LENGTH);
	DAT_LMR_TRIPLET from = pair_place(pair, 4096, LENGTH);
	const DAT_RMR_TRIPLET remote = { (DAT_VADDR)posts->scene->pages, LENGTH,
					 posts->scene->remote };
	DAT_LIST_DTO list[2] = {
		{ .operation = DAT_DTO_RDMA_WRITE, .segments = 1, .local = &from,
		  .cookie = cookie(3), .remote = remote },
		{ .operation = DAT_DTO_SEND, .segments = 1, .local = &from, .cookie = cookie(4) },
	};

	posts->codes[0] = dat_ep_post_recv(pair->ep[1], 1, &to, cookie(1), DEFAULT);
	posts->codes[1] = dat_ep_post_send(pair->ep[0], 1, &from, cookie(2), DEFAULT);
	posts->codes[2] = dat_ep_post_recv(pair->ep[1], 1, &to, cookie(5), DEFAULT);
	posts->codes[3] = kdapl_ep_post_list(pair->ep[0], 2, list, &posts->posted);
	posts->codes[4] = dat_ep_post_rdma_write(pair->ep[0], 1, &from, cookie(6), &remote,
						 DEFAULT);
	posts->codes[5] = dat_srq_post_recv(posts->srq, 1, &to, cookie(7));
}

static int all_posted(void *data)
{
	struct posts *posts = data;
	struct pair *pair = &posts->scene->pair;
	unsigned int i;

	for (i = 0; i < 6; i++)
		OK(posts->codes[i]);
	SAME(posts->posted, 2);
	TRY(next_dto(pair->dto[1], DAT_DTO_RECEIVE, 1, LENGTH));
	TRY(next_dto(pair->dto[1], DAT_DTO_RECEIVE, 5, LENGTH));
	TRY(next_dto(pair->dto[0], DAT_DTO_SEND, 2, LENGTH));
	TRY(next_dto(pair->dto[0], DAT_DTO_RDMA_WRITE, 3, LENGTH));
	TRY(next_dto(pair->dto[0], DAT_DTO_SEND, 4, LENGTH));
	return next_dto(pair->dto[0], DAT_DTO_RDMA_WRITE, 6, LENGTH);
}

static int post_in_each(struct scene *scene)
{
	const DAT_SRQ_ATTR attr = { .max_recv_dtos = 16, .max_recv_iov = 1 };
	struct posts posts = { .scene = scene };
	unsigned int context;

	TRY(fmr_registered(scene));
	OK(dat_srq_create(ia, pz, &attr, &posts.srq));
	for (context = 0; context < CONTEXTS; context++) {
		call_in(context, post_all, &posts);
		TRY(all_posted(&posts));
	}
	return 0;
}

static int atomic_posts(void)
{
	return fmr_with_pages(post_in_each);
}

/* Registers memory, and tells the peer by a message. */
static void register_now(void *data)
{
	struct posts *posts = data;
	struct pair *pair = &posts->scene->pair;
	DAT_LMR_TRIPLET place = pair_place(pair, 64, 0);

	posts->codes[0] = fmr(posts->scene, pair->ep[1], 1, DEFAULT);
	posts->codes[1] = dat_ep_post_recv(pair->ep[0], 1, &place, cookie(4), DEFAULT);
	posts->codes[2] = dat_ep_post_send(pair->ep[1], 1, &place, cookie(5), DEFAULT);
	posts->codes[3] = fmr(posts->scene, pair->ep[1], 2, DEFAULT);
}

static int registered(struct posts *posts)
{
	struct pair *pair = &posts->scene->pair;

	OK(posts->codes[0]);
	OK(posts->codes[1]);
	OK(posts->codes[2]);
	REFUSED(posts->codes[3], DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	TRY(next_dto(pair->dto[1], DAT_DTO_LMR_FMR, 1, 0));
	TRY(next_dto(pair->dto[1], DAT_DTO_SEND, 5, 0));
	TRY(next_dto(pair->dto[0], DAT_DTO_RECEIVE, 4, 0));
	TRY(fmr_peer_access(posts->scene, (u64)posts->scene->pages, posts->scene->pages));
	memset(posts->scene->pages, 0, SIZE);
	return 0;
}

static void invalidate_now(void *data)
{
	struct posts *posts = data;
	DAT_EP_HANDLE ep = posts->scene->pair.ep[1];

	posts->codes[0] = fmr_invalidate(posts->scene, ep, 3);
	posts->codes[1] = fmr_invalidate(posts->scene, ep, 3);
}

static int invalidated(struct posts *posts)
{
	OK(posts->codes[0]);
	REFUSED(posts->codes[1], DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_FREE);
	return next_dto(posts->scene->pair.dto[1], DAT_DTO_LMR_INVALIDATE, 3, 0);
}

static int register_in_each(struct scene *scene)
{
	struct posts posts = { .scene = scene };
	unsigned int context;

	for (context = 0; context < CONTEXTS; context++) {
		call_in(context, register_now, &posts);
		TRY(registered(&posts));
		call_in(context, invalidate_now, &posts);
		TRY(invalidated(&posts));
	}
	return 0;
}

static int atomic_registrations(void)
{
	return fmr_with_pages(register_in_each);
}

static void register_once(void *data)
{
	struct posts *posts = data;

	posts->codes[0] = fmr(posts->scene, posts->scene->pair.ep[1], 1, DEFAULT);
}

static int be_refused_in_each(struct scene *scene)
{
	struct posts posts = { .scene = scene };
	unsigned int context;

	for (context = 0; context < CONTEXTS; context++) {
		call_in(context, register_once, &posts);
		REFUSED(posts.codes[0], DAT_MODEL_NOT_SUPPORTED, 0);
	}
	return 0;
}

/* The device passes for one whose driver sleeps. */
static int atomic_sleeping_driver(void)
{
	return fmr_with_pages(be_refused_in_each);
}

/* Posts more sends than an Endpoint takes, and to an Endpoint that was freed. */
static void post_too_much(void *data)
{
	struct posts *posts = data;
	struct pair *pair = &posts->scene->pair;
	DAT_LMR_TRIPLET place = pair_place(pair, 0, 0);
	const DAT_LIST_DTO send = { .operation = DAT_DTO_SEND, .cookie = cookie(1) };

	posts->posted = 0;
	do {
		posts->codes[0] = dat_ep_post_send(pair->ep[0], 1, &place, cookie(1), SUPPRESS);
	} while (!posts->codes[0] && ++posts->posted < 100000);
	posts->codes[1] = kdapl_ep_post_list(pair->ep[0], 1, &send, NULL);
	posts->codes[2] = fmr(posts->scene, pair->ep[0], 2, DEFAULT);
	posts->codes[3] = dat_ep_post_send(NULL, 1, &place, cookie(1), DEFAULT);
	posts->codes[4] = kdapl_ep_post_list(NULL, 1, &send, NULL);
	posts->codes[5] = dat_srq_post_recv(pair->ep[0], 1, &place, cookie(1));
	posts->codes[6] = dat_ep_post_recv(posts->unconnected, 1, &place, cookie(1), DEFAULT);
}

/* The peer has no receives, so that nothing completes. */
static int refuse_in_each(struct scene *scene)
{
	const DAT_RETURN full = DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP;
	struct posts posts = { .scene = scene };
	unsigned int context;

	OK(dat_ep_create(ia, pz, scene->pair.dto[0], scene->pair.dto[0], scene->pair.connection[0],
			 NULL, &posts.unconnected));
	for (context = 0; context < CONTEXTS; context++) {
		call_in(context, post_too_much, &posts);
		EXPECT(context ? posts.posted == 0 : posts.posted > 0);
		REFUSED(posts.codes[0], full, 0);
		REFUSED(posts.codes[1], full, 0);
		REFUSED(posts.codes[2], full, 0);
		REFUSED(posts.codes[3], DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		REFUSED(posts.codes[4], DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		REFUSED(posts.codes[5], DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
		REFUSED(posts.codes[6], DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
	}
	return 0;
}

static int atomic_refusals(void)
{
	return fmr_with_pages(refuse_in_each);
}

#define ENDS	100

/* Handles of objects that another thread frees. */
static struct {
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_SRQ_HANDLE srq;
	DAT_LMR_TRIPLET place;
	u8 *pages;
	bool over;
	atomic_t posted;
} prey;

static void post_to_prey(void *data)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = prey.pages };
	/* The posts refuse a place of which half is another one's. */
	DAT_LMR_TRIPLET place = data_race(prey.place);
	DAT_EP_HANDLE ep = READ_ONCE(prey.ep);
	const DAT_LIST_DTO list[2] = {
		{ .operation = DAT_DTO_RECEIVE, .segments = 1, .local = &place },
		{ .operation = DAT_DTO_RECEIVE, .segments = 1, .local = &place },
	};
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;

	if (!dat_ep_post_send(ep, 1, &place, cookie(1), DEFAULT))
		atomic_inc(&prey.posted);
	kdapl_ep_post_list(ep, 2, list, NULL);
	dat_srq_post_recv(READ_ONCE(prey.srq), 1, &place, cookie(1));
	dat_lmr_fmr(READ_ONCE(prey.lmr), DAT_MEM_TYPE_VIRTUAL, region, PAGES, ALL, DAT_VA_TYPE_VA,
		    ep, cookie(1), DEFAULT, &local, &remote);
	dat_lmr_invalidate(READ_ONCE(prey.lmr), ep, cookie(1), DEFAULT);
}

static int post_until_over(unsigned int context)
{
	while (!READ_ONCE(prey.over)) {
		call_in(context, post_to_prey, NULL);
		cond_resched();
	}
	return 0;
}

/* Makes objects, and frees them in this order, or by the close of the adapter. */
static int live_and_end(unsigned int round)
{
	const DAT_SRQ_ATTR attr = { .max_recv_dtos = 16, .max_recv_iov = 1 };
	struct pair pair = {};
	DAT_LMR_HANDLE lmr;
	DAT_SRQ_HANDLE srq;

	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	OK(dat_lmr_allocate(ia, pz, PAGES, DAT_LMR_SCOPE_PZ, &lmr));
	OK(dat_srq_create(ia, pz, &attr, &srq));
	data_race(prey.place = pair_place(&pair, 0, 8));
	WRITE_ONCE(prey.srq, srq);
	WRITE_ONCE(prey.lmr, lmr);
	WRITE_ONCE(prey.ep, pair.ep[round % 2]);
	usleep_range(100, 500 + 10 * round);
	if (round % 4 < 2) {
		OK(dat_srq_free(srq));
		OK(dat_ep_free(pair.ep[round % 2]));
		/* A request may be about to be refused. */
		UNTIL(DAT_GET_TYPE(dat_lmr_free(lmr)) != DAT_INVALID_STATE);
	}
	return ktest_renew();
}

static int end_beside_posts(struct scene *scene)
{
	struct ktest_thread threads[2];
	unsigned int round, i;
	int error = 0, other;

	memset(&prey, 0, sizeof(prey));
	prey.pages = scene->pages;
	for (i = 0; i < 2; i++)
		TRY(ktest_start(&threads[i], post_until_over, i ? CONTEXTS - 1 : 2));
	for (round = 0; round < ENDS && !error; round++)
		error = live_and_end(round);
	WRITE_ONCE(prey.over, true);
	for (i = 0; i < 2; i++) {
		other = ktest_join(&threads[i]);
		error = error ?: other;
	}
	if (error)
		return error;
	EXPECT(atomic_read(&prey.posted) > 0);
	return 0;
}

static int atomic_ends(void)
{
	return fmr_with_pages(end_beside_posts);
}

const struct ktest atomic_tests[] = {
	{ "atomic_posts", atomic_posts },
	{ "atomic_registrations", atomic_registrations },
	{ "atomic_sleeping_driver", atomic_sleeping_driver },
	{ "atomic_refusals", atomic_refusals },
	{ "atomic_ends", atomic_ends },
	{}
};

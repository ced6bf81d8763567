// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Reaches the limits of posts, lengths and queues that the adapter tells, and no more. */
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ktest.h"

#define DEFAULT		DAT_COMPLETION_DEFAULT_FLAG
/* The largest number of segments of any driver: KDAPL_IOV_MAX. */
#define MOST_SEGMENTS	32

struct scene {
	struct pair pair;
	DAT_SRQ_HANDLE srq;
	/* Posts that succeeded. */
	DAT_COUNT posted;
};

/* Makes a connection whose queues are as long as an Endpoint's can be, and its lists too. */
static int make_scene(struct scene *scene)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = ia_attr.max_message_size,
		.max_rdma_size = ia_attr.max_rdma_size,
		.max_recv_dtos = ia_attr.max_dto_per_ep,
		.max_request_dtos = ia_attr.max_dto_per_ep,
		.max_recv_iov = ia_attr.max_iov_segments_per_dto,
		.max_request_iov = ia_attr.max_iov_segments_per_dto,
		.max_rdma_read_in = 1,
		.max_rdma_read_out = 1,
		.max_rdma_read_iov = ia_attr.max_iov_segments_per_rdma_read,
		.max_rdma_write_iov = ia_attr.max_iov_segments_per_rdma_write,
	};
	struct pair *pair = &scene->pair;
	unsigned int side;

	memset(scene, 0, sizeof(*scene));
	EXPECT(ia_attr.max_iov_segments_per_dto <= MOST_SEGMENTS);
	TRY(pair_make(pair));
	for (side = 0; side < 2; side++) {
		OK(dat_evd_kcreate(ia, ia_attr.max_evd_qlen, DAT_UPCALL_DISABLE, NULL,
				   DAT_EVD_DTO_FLAG, &pair->dto[side]));
		OK(dat_ep_create(ia, pz, pair->dto[side], pair->dto[side], pair->connection[side],
				 &attr, &pair->ep[side]));
	}
	return pair_connect(pair);
}

/* Repeats a post until it is refused for lack of resources of this kind. */
static int until_full(struct scene *scene, DAT_RETURN (*post)(struct scene *scene), u32 subtype,
		      DAT_COUNT most)
{
	DAT_RETURN ret;

	EXPECT(most > 0);
	for (scene->posted = 0; scene->posted <= most; scene->posted++) {
		ret = post(scene);
		if (ret)
			break;
	}
	SAME(scene->posted, most);
	SAME(ret, DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | subtype);
	return 0;
}

static DAT_RETURN post_receive(struct scene *scene)
{
	const DAT_LMR_TRIPLET to = pair_place(&scene->pair, 0, 8);

	return dat_ep_post_recv(scene->pair.ep[1], 1, &to, cookie(1), DEFAULT);
}

static DAT_RETURN post_to_srq(struct scene *scene)
{
	const DAT_LMR_TRIPLET to = pair_place(&scene->pair, 0, 8);

	return dat_srq_post_recv(scene->srq, 1, &to, cookie(3));
}

static int limits_of_queues(void)
{
	const DAT_SRQ_ATTR attr = { .max_recv_dtos = ia_attr.max_recv_per_srq,
				    .max_recv_iov = ia_attr.max_iov_segments_per_srq };
	DAT_SRQ_PARAM param;
	struct scene scene;

	TRY(make_scene(&scene));
	TRY(until_full(&scene, post_receive, DAT_RESOURCE_TEP, ia_attr.max_dto_per_ep));
	EXPECT(ia_attr.max_srqs > 0);
	OK(dat_srq_create(ia, pz, &attr, &scene.srq));
	OK(dat_srq_query(scene.srq, 0, &param));
	SAME(param.max_recv_dtos, ia_attr.max_recv_per_srq);
	SAME(param.max_recv_iov, ia_attr.max_iov_segments_per_srq);
	TRY(until_full(&scene, post_to_srq, DAT_RESOURCE_SRQ, ia_attr.max_recv_per_srq));
	OK(dat_srq_query(scene.srq, 0, &param));
	SAME(param.available_dto_count, ia_attr.max_recv_per_srq);
	return 0;
}

/* Posts a DTO of as many segments as it may have. One more is refused. */
static int segments_of(const struct pair *pair, DAT_DTOS operation, DAT_COUNT most,
		       const DAT_RMR_TRIPLET *remote)
{
	DAT_LMR_TRIPLET list[MOST_SEGMENTS + 1];
	const DAT_EP_HANDLE ep = pair->ep[0];
	DAT_COUNT i, count;
	DAT_RETURN ret;

	EXPECT(most > 0 && most <= MOST_SEGMENTS);
	for (i = 0; i <= most; i++)
		list[i] = pair_place(pair, 16 * i, 8);
	for (count = most + 1; count >= most; count--) {
		if (operation == DAT_DTO_SEND)
			ret = dat_ep_post_send(ep, count, list, cookie(4), DEFAULT);
		else if (operation == DAT_DTO_RDMA_WRITE)
			ret = dat_ep_post_rdma_write(ep, count, list, cookie(4), remote, DEFAULT);
		else
			ret = dat_ep_post_rdma_read(ep, count, list, cookie(4), remote, DEFAULT);
		if (count > most)
			REFUSED(ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	}
	OK(ret);
	return next_dto(pair->dto[0], operation, 4, 8 * most);
}

static int limits_of_segments(void)
{
	DAT_LMR_TRIPLET list[MOST_SEGMENTS + 1];
	const DAT_COUNT most = ia_attr.max_iov_segments_per_dto;
	struct scene scene;
	DAT_RMR_TRIPLET remote;
	struct lmr lmr;
	DAT_COUNT i;

	TRY(make_scene(&scene));
	for (i = 0; i <= most; i++)
		list[i] = pair_place(&scene.pair, 16 * i, 8);
	REFUSED(dat_ep_post_recv(scene.pair.ep[1], most + 1, list, cookie(5), DEFAULT),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	OK(dat_ep_post_recv(scene.pair.ep[1], most, list, cookie(5), DEFAULT));
	TRY(segments_of(&scene.pair, DAT_DTO_SEND, most, NULL));
	TRY(next_dto(scene.pair.dto[1], DAT_DTO_RECEIVE, 5, 8 * most));
	/* Over iWARP kernel memory has no remote privileges, nor is it read into. */
	if (is_iwarp)
		return 0;
	OK(lmr_make_virtual(pair_memory + PAIR_MEMORY / 2, 4096, LOCAL_FLAGS | REMOTE_FLAGS,
			    &lmr));
	remote = (DAT_RMR_TRIPLET){ lmr.address, 4096, lmr.remote };
	TRY(segments_of(&scene.pair, DAT_DTO_RDMA_WRITE, ia_attr.max_iov_segments_per_rdma_write,
			&remote));
	return segments_of(&scene.pair, DAT_DTO_RDMA_READ, ia_attr.max_iov_segments_per_rdma_read,
			   &remote);
}

/*
 * Segments of a message of @length bytes. The context of all memory has no bounds, so they share
 * their memory, which nothing accesses.
 */
static DAT_COUNT divide(DAT_LMR_TRIPLET *list, DAT_LMR_CONTEXT context, u64 length)
{
	const DAT_COUNT count = ia_attr.max_iov_segments_per_dto;
	const u64 each = length / count;
	DAT_COUNT i;

	for (i = 0; i < count; i++)
		list[i] = (DAT_LMR_TRIPLET){ (u64)pair_memory, each, context };
	list[0].segment_length += length % count;
	return count;
}

/* An attribute above its limit is refused. make_scene() has the limits. */
static int longer_attributes(const struct pair *pair)
{
	const DAT_EP_ATTR attrs[] = {
		{ .max_message_size = ia_attr.max_message_size + 1 },
		{ .max_rdma_size = ia_attr.max_rdma_size + 1 },
	};
	DAT_EP_HANDLE ep;
	unsigned int i;

	/* Over siw the limit is the largest number. */
	for (i = 0; i < ARRAY_SIZE(attrs) && !is_iwarp; i++)
		REFUSED(dat_ep_create(ia, pz, pair->dto[0], pair->dto[0], pair->connection[0],
				      &attrs[i], &ep), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(6));
	return 0;
}

static int limits_of_lengths(void)
{
	DAT_LMR_TRIPLET list[MOST_SEGMENTS];
	const DAT_RMR_TRIPLET remote = {};
	DAT_LMR_CONTEXT context;
	struct scene scene;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_COUNT count;

	TRY(make_scene(&scene));
	TRY(longer_attributes(&scene.pair));
	ep = scene.pair.ep[1];
	OK(dat_ia_reserved_lmr(ia, &lmr, &context));
	count = divide(list, context, ia_attr.max_message_size + 1ULL);
	REFUSED(dat_ep_post_recv(ep, count, list, cookie(6), DEFAULT), DAT_LENGTH_ERROR, 0);
	REFUSED(dat_ep_post_send(ep, count, list, cookie(6), DEFAULT), DAT_LENGTH_ERROR, 0);
	count = divide(list, context, ia_attr.max_rdma_size + 1ULL);
	REFUSED(dat_ep_post_rdma_write(ep, count, list, cookie(6), &remote, DEFAULT),
		DAT_LENGTH_ERROR, 0);
	/* No message arrives at this receive. */
	count = divide(list, context, ia_attr.max_message_size);
	OK(dat_ep_post_recv(ep, count, list, cookie(6), DEFAULT));
	return 0;
}

/* Binds an RMR to as many bytes as it may have. One more is refused. */
static int longest_bind(struct scene *scene, u8 *memory)
{
	const DAT_VLEN longest = ia_attr.max_rmr_size;
	DAT_LMR_TRIPLET part = { (u64)memory, longest + 1 };
	DAT_RMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;

	OK(register_memory(memory, longest + PAGE_SIZE, LOCAL_FLAGS, &lmr, &part.lmr_context));
	OK(dat_rmr_create(pz, &rmr));
	REFUSED(dat_rmr_bind(rmr, lmr, &part, REMOTE_FLAGS, DAT_VA_TYPE_VA, scene->pair.ep[1],
			     cookie(7), DEFAULT, &context), DAT_LENGTH_ERROR, 0);
	part.segment_length--;
	OK(dat_rmr_bind(rmr, lmr, &part, REMOTE_FLAGS, DAT_VA_TYPE_VA, scene->pair.ep[1],
			cookie(7), DEFAULT, &context));
	return next_event(scene->pair.dto[1], DAT_RMR_BIND_COMPLETION_EVENT, &event);
}

/* Requests register as many pages as a region of the device has. */
static int longest_registration(void)
{
	const u32 pages = ia_attr.max_rmr_size / PAGE_SIZE;
	DAT_LMR_HANDLE lmr;

	SAME(ia_attr.max_rmr_size % PAGE_SIZE, 0);
	REFUSED(dat_lmr_allocate(ia, pz, pages + 1, DAT_LMR_SCOPE_PZ, &lmr), DAT_LENGTH_ERROR, 0);
	OK(dat_lmr_allocate(ia, pz, pages, DAT_LMR_SCOPE_PZ, &lmr));
	return 0;
}

static int limits_of_remote_memory(void)
{
	struct scene scene;
	u8 *memory;
	int error;

	TRY(make_scene(&scene));
	TRY(longest_registration());
	memory = vmalloc(ia_attr.max_rmr_size + PAGE_SIZE);
	EXPECT(memory);
	error = longest_bind(&scene, memory);
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	vfree(memory);
	return error;
}

/* An asynchronous EVD is as long as any other. */
static int limits_of_events(void)
{
	const DAT_COUNT most = ia_attr.max_evd_qlen;
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_COUNT posted = 0;
	DAT_IA_HANDLE other;
	DAT_RETURN ret;

	REFUSED(dat_ia_open(ia_attr.adapter_name, most + 1, &evd, &other),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	OK(dat_ia_open(ia_attr.adapter_name, most, &evd, &other));
	OK(dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG));
	TRY(make_evd(most, DAT_UPCALL_DISABLE, NULL, &evd));
	while (!(ret = post_number(evd, posted)) && posted <= most)
		posted++;
	SAME(posted, most);
	SAME(DAT_GET_TYPE(ret), DAT_QUEUE_FULL);
	return 0;
}

const struct ktest limit_tests[] = {
	{ "limits_of_queues", limits_of_queues },
	{ "limits_of_segments", limits_of_segments },
	{ "limits_of_lengths", limits_of_lengths },
	{ "limits_of_remote_memory", limits_of_remote_memory },
	{ "limits_of_events", limits_of_events },
	{}
};

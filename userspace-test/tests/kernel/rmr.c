// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests Remote Memory Regions of kernel memory. */
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ktest.h"

#define LOCAL		(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define REMOTE		(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
#define DEFAULT		DAT_COMPLETION_DEFAULT_FLAG

/* Memory of side 1 that is open to side 0 of a connection. */
struct scene {
	struct pair pair;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_TRIPLET part;
	DAT_RMR_CONTEXT context;
};

static DAT_RETURN bind(struct scene *scene, const DAT_LMR_TRIPLET *part, u64 number,
		       DAT_RMR_CONTEXT *context)
{
	return dat_rmr_bind(scene->rmr, scene->lmr, part, REMOTE, DAT_VA_TYPE_VA, scene->pair.ep[1],
			    cookie(number), DEFAULT, context);
}

/* Takes the completion of a bind. */
static int bound(struct scene *scene, u64 number)
{
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *data;
	DAT_EVENT event;

	TRY(next_event(scene->pair.dto[1], DAT_RMR_BIND_COMPLETION_EVENT, &event));
	data = &event.event_data.rmr_completion_event_data;
	EXPECT(data->rmr_handle == scene->rmr);
	SAME(data->user_cookie.as_64, number);
	SAME(data->status, DAT_DTO_SUCCESS);
	return 0;
}

/* Opens the part from start + offset on. */
static int open_part(struct scene *scene, u8 *start, size_t whole, size_t offset,
		     DAT_SEG_LENGTH length)
{
	TRY(pair_make(&scene->pair));
	TRY(pair_connect(&scene->pair));
	OK(register_memory(start, whole, LOCAL, &scene->lmr, &scene->part.lmr_context));
	scene->part.virtual_address = (DAT_VADDR)start + offset;
	scene->part.segment_length = length;
	OK(dat_rmr_create(pz, &scene->rmr));
	OK(bind(scene, &scene->part, 1, &scene->context));
	EXPECT(scene->context);
	return bound(scene, 1);
}

static int post_write(struct scene *scene, u64 address, DAT_SEG_LENGTH length)
{
	const DAT_RMR_TRIPLET remote = { address, length, scene->context };
	DAT_LMR_TRIPLET from = pair_place(&scene->pair, 0, length);

	OK(dat_ep_post_rdma_write(scene->pair.ep[0], 1, &from, cookie(2), &remote, DEFAULT));
	return 0;
}

/* Writes to an address of side 1. */
static int write_to(struct scene *scene, u64 address, DAT_SEG_LENGTH length)
{
	DAT_LMR_TRIPLET place = pair_place(&scene->pair, 0, 0);

	TRY(post_write(scene, address, length));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_RDMA_WRITE, 2, length));
	/* Over iWARP the data may arrive after the completion, but before a message. */
	OK(dat_ep_post_recv(scene->pair.ep[1], 1, &place, cookie(3), DEFAULT));
	OK(dat_ep_post_send(scene->pair.ep[0], 1, &place, cookie(4), DEFAULT));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_SEND, 4, 0));
	return next_dto(scene->pair.dto[1], DAT_DTO_RECEIVE, 3, 0);
}

/* Writes to an address of side 1, which ends the connection. */
static int write_refused(struct scene *scene, u64 address, DAT_SEG_LENGTH length)
{
	DAT_DTO_COMPLETION_STATUS status;
	DAT_EVENT event;

	TRY(post_write(scene, address, length));
	TRY(next_event(scene->pair.dto[0], DAT_DTO_COMPLETION_EVENT, &event));
	status = event.event_data.dto_completion_event_data.status;
	/*
	 * Over iWARP a write completes when it was sent, unless the peer's refusal arrives before.
	 */
	if (!is_iwarp || status != DAT_DTO_ERR_LOCAL_EP)
		SAME(status, is_iwarp ? DAT_DTO_SUCCESS : DAT_DTO_ERR_REMOTE_ACCESS);
	OK(dat_evd_wait(scene->pair.connection[0], PATIENCE_US, 1, &event, NULL));
	/* Nor can a side tell a disconnect from a failure. */
	if (!is_iwarp || event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
		SAME(event.event_number, DAT_CONNECTION_EVENT_BROKEN);
	return 0;
}

/* Reads the part. Over iWARP no read is possible: see rdma_read_hides_rkey. */
static int read_back(struct scene *scene)
{
	const DAT_SEG_LENGTH length = scene->part.segment_length;
	const DAT_RMR_TRIPLET remote = { scene->part.virtual_address, length, scene->context };
	DAT_LMR_TRIPLET to = pair_place(&scene->pair, PAIR_MEMORY / 2, length);

	if (is_iwarp)
		return 0;
	OK(dat_ep_post_rdma_read(scene->pair.ep[0], 1, &to, cookie(3), &remote, DEFAULT));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_RDMA_READ, 3, length));
	EXPECT(!memcmp((void *)to.virtual_address, (void *)scene->part.virtual_address, length));
	return 0;
}

/* The context is not valid after an unbind, and the LMR is free then. */
static int unbind(struct scene *scene)
{
	const DAT_LMR_TRIPLET none = {};
	DAT_RMR_CONTEXT context;
	DAT_RMR_PARAM param;

	OK(dat_rmr_query(scene->rmr, 0, &param));
	EXPECT(param.ia_handle == ia && param.pz_handle == pz);
	SAME(param.rmr_context, scene->context);
	SAME(param.mem_priv, REMOTE);
	SAME(param.lmr_triplet.virtual_address, scene->part.virtual_address);
	REFUSED(dat_lmr_free(scene->lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	OK(bind(scene, &none, 4, &context));
	SAME(context, 0);
	TRY(bound(scene, 4));
	OK(dat_rmr_query(scene->rmr, 0, &param));
	SAME(param.rmr_context, 0);
	TRY(write_refused(scene, scene->part.virtual_address, 8));
	OK(dat_rmr_free(scene->rmr));
	OK(dat_lmr_free(scene->lmr));
	return 0;
}

/* Accesses bytes 150 to 150 + 2 pages of memory that begins within a page. */
static int access_memory(u8 *start, size_t whole)
{
	const size_t offset = 150, length = 2 * PAGE_SIZE;
	struct scene scene = {};
	u8 *part = start + offset;

	memset(start, 0x11, whole);
	TRY(open_part(&scene, start, whole, offset, length));
	memset(scene.pair.memory, 0x5a, length);
	TRY(write_to(&scene, (u64)part, length));
	EXPECT(!memcmp(part, scene.pair.memory, length));
	SAME(part[-1], 0x11);
	SAME(part[length], 0x11);
	memset(part + 100, 0x77, PAGE_SIZE);
	TRY(read_back(&scene));
	TRY(unbind(&scene));
	SAME(part[0], 0x5a);
	return 0;
}

static int rmr_of_kernel_memory(void)
{
	const size_t whole = 4 * PAGE_SIZE - 100;
	u8 *pages = vmalloc(4 * PAGE_SIZE);
	int error;

	EXPECT(pages);
	error = access_memory(pages + 100, whole) ?: ktest_renew();
	vfree(pages);
	TRY(error);
	pages = alloc_pages_exact(4 * PAGE_SIZE, GFP_KERNEL);
	EXPECT(pages);
	error = access_memory(pages + 100, whole);
	free_pages_exact(pages, 4 * PAGE_SIZE);
	return error;
}

/* A write to one byte outside either end moves no byte, and ends the connection. */
static int rmr_bounds(void)
{
	u8 *memory = (u8 *)__get_free_page(GFP_KERNEL);
	unsigned int end;
	int error = 0;

	EXPECT(memory);
	for (end = 0; end < 2 && !error; end++) {
		struct scene scene = {};

		memset(memory, 0x11, PAGE_SIZE);
		error = open_part(&scene, memory, PAGE_SIZE, 64, 128);
		if (!error)
			error = write_refused(&scene, (u64)memory + 63 + end * 2, 128);
		if (!error && memchr_inv(memory, 0x11, PAGE_SIZE))
			error = FAIL("bytes were written");
		if (!error)
			error = ktest_renew();
	}
	free_page((unsigned long)memory);
	return error;
}

/* Reads side 0's memory into the part of side 1, over iWARP too. */
static int read_into_part(struct scene *scene)
{
	const DAT_SEG_LENGTH length = scene->part.segment_length;
	DAT_LMR_TRIPLET place = pair_place(&scene->pair, 0, length);
	DAT_LMR_TRIPLET empty = pair_place(&scene->pair, 0, 0);
	DAT_RMR_TRIPLET remote = { place.virtual_address, length, 0 };
	DAT_RMR_TRIPLET local = { scene->part.virtual_address, length, scene->context };
	DAT_RMR_HANDLE source;
	DAT_LMR_HANDLE lmr;
	DAT_EVENT event;

	OK(register_memory(pair_memory, PAIR_MEMORY, LOCAL, &lmr, &place.lmr_context));
	OK(dat_rmr_create(pz, &source));
	OK(dat_rmr_bind(source, lmr, &place, DAT_MEM_PRIV_REMOTE_READ_FLAG,
			DAT_VA_TYPE_VA, scene->pair.ep[0], cookie(5), DEFAULT,
			&remote.rmr_context));
	TRY(next_event(scene->pair.dto[0], DAT_RMR_BIND_COMPLETION_EVENT, &event));
	/* Over iWARP the passive side sends only after it has received a message. */
	OK(dat_ep_post_recv(scene->pair.ep[1], 1, &empty, cookie(6), DEFAULT));
	OK(dat_ep_post_send(scene->pair.ep[0], 1, &empty, cookie(7), DEFAULT));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_SEND, 7, 0));
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_RECEIVE, 6, 0));
	OK(dat_ep_post_rdma_read_to_rmr(scene->pair.ep[1], &local, cookie(8), &remote, DEFAULT));
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_RDMA_READ, 8, length));
	EXPECT(!memcmp((void *)local.virtual_address, (void *)remote.virtual_address, length));
	REFUSED(dat_ep_post_rdma_read_to_rmr(scene->pair.ep[1], NULL, cookie(9), &remote, DEFAULT),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	REFUSED(dat_ep_post_rdma_read_to_rmr(scene->pair.ep[1], &local, cookie(9), NULL, DEFAULT),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(4));
	/* Both sides have one PZ. The other RMR is bound for reading only. */
	REFUSED(dat_ep_post_rdma_read_to_rmr(scene->pair.ep[1], &remote, cookie(9), &remote,
					     DEFAULT),
		DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	REFUSED(dat_ep_post_rdma_read_to_rmr(scene->lmr, &local, cookie(9), &remote, DEFAULT),
		DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	local.virtual_address--;
	REFUSED(dat_ep_post_rdma_read_to_rmr(scene->pair.ep[1], &local, cookie(9), &remote,
					     DEFAULT),
		DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
	OK(dat_rmr_free(scene->rmr));
	OK(dat_lmr_free(scene->lmr));
	return 0;
}

static int rmr_read_destination(void)
{
	const size_t offset = 150, length = 2 * PAGE_SIZE;
	u8 *pages = vmalloc(4 * PAGE_SIZE);
	struct scene scene = {};
	int error;

	EXPECT(pages);
	memset(pages, 0x11, 4 * PAGE_SIZE);
	error = open_part(&scene, pages, 4 * PAGE_SIZE, offset, length);
	if (!error) {
		memset(scene.pair.memory, 0x3c, length);
		error = read_into_part(&scene);
	}
	if (!error && (pages[offset - 1] != 0x11 || pages[offset + length] != 0x11))
		error = FAIL("bytes beside the part were written");
	vfree(pages);
	return error;
}

/* A send of the peer invalidates the context, and the receive tells it. */
static int rmr_remote_invalidate(void)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	u8 *memory = pair_memory + PAIR_MEMORY / 2;
	struct scene scene = {};
	DAT_LMR_TRIPLET place;
	DAT_EVENT event;

	TRY(open_part(&scene, memory, PAGE_SIZE, 0, PAGE_SIZE));
	TRY(write_to(&scene, (u64)memory, 64));
	place = pair_place(&scene.pair, 0, 64);
	OK(dat_ep_post_recv(scene.pair.ep[1], 1, &place, cookie(5), DEFAULT));
	OK(dat_ep_post_send_with_invalidate(scene.pair.ep[0], 1, &place, cookie(6), DEFAULT,
					    DAT_TRUE, scene.context));
	TRY(next_dto(scene.pair.dto[0], DAT_DTO_SEND, 6, 64));
	TRY(next_event(scene.pair.dto[1], DAT_DTO_COMPLETION_EVENT, &event));
	dto = &event.event_data.dto_completion_event_data;
	SAME(dto->status, DAT_DTO_SUCCESS);
	SAME(dto->operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	SAME(dto->rmr_context, scene.context);
	/* Without DAT_TRUE it is a plain send. */
	OK(dat_ep_post_recv(scene.pair.ep[1], 1, &place, cookie(7), DEFAULT));
	OK(dat_ep_post_send_with_invalidate(scene.pair.ep[0], 1, &place, cookie(8), DEFAULT,
					    DAT_FALSE, scene.context));
	TRY(next_dto(scene.pair.dto[0], DAT_DTO_SEND, 8, 64));
	TRY(next_dto(scene.pair.dto[1], DAT_DTO_RECEIVE, 7, 64));
	return write_refused(&scene, (u64)memory, 64);
}

static int rmr_refusals(void)
{
	DAT_LMR_TRIPLET part = {};
	struct scene scene = {};
	DAT_RMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_PARAM param;
	DAT_PZ_HANDLE other;
	DAT_RMR_HANDLE rmr;

#define BIND(rmr, lmr, part, privileges, va_type, ep, flags)				\
	dat_rmr_bind(rmr, lmr, part, privileges, va_type, ep, cookie(1), flags, &context)

	TRY(open_part(&scene, pair_memory, PAGE_SIZE, 0, PAGE_SIZE));
	part = scene.part;
	rmr = scene.rmr;
	lmr = scene.lmr;
	REFUSED(dat_rmr_create(pz, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	REFUSED(dat_rmr_create(lmr, &rmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	REFUSED(dat_rmr_query(rmr, 0, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	REFUSED(dat_rmr_query(lmr, 0, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	REFUSED(dat_rmr_free(lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	REFUSED(BIND(lmr, lmr, &part, REMOTE, 0, scene.pair.ep[1], 0),
		DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	REFUSED(BIND(rmr, rmr, &part, REMOTE, 0, scene.pair.ep[1], 0),
		DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	REFUSED(BIND(rmr, lmr, &part, REMOTE, 0, rmr, 0), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_EP);
	REFUSED(BIND(rmr, lmr, NULL, REMOTE, 0, scene.pair.ep[1], 0),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	REFUSED(BIND(rmr, lmr, &part, LOCAL, 0, scene.pair.ep[1], 0),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(4));
	REFUSED(BIND(rmr, lmr, &part, REMOTE, DAT_VA_TYPE_ZB, scene.pair.ep[1], 0),
		DAT_MODEL_NOT_SUPPORTED, 0);
	REFUSED(BIND(rmr, lmr, &part, REMOTE, 0, scene.pair.ep[1], 0x80),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(8));
	part.segment_length++;
	REFUSED(BIND(rmr, lmr, &part, REMOTE, 0, scene.pair.ep[1], 0), DAT_PROTECTION_VIOLATION, 0);
	part.segment_length--;
	part.lmr_context++;
	REFUSED(BIND(rmr, lmr, &part, REMOTE, 0, scene.pair.ep[1], 0), DAT_PROTECTION_VIOLATION, 0);
	OK(register_memory(pair_memory, PAGE_SIZE, DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr,
			   &part.lmr_context));
	REFUSED(BIND(rmr, lmr, &part, REMOTE, 0, scene.pair.ep[1], 0),
		DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	OK(dat_pz_create(ia, &other));
	OK(dat_rmr_create(other, &rmr));
	REFUSED(BIND(rmr, scene.lmr, &scene.part, REMOTE, 0, scene.pair.ep[1], 0),
		DAT_PROTECTION_VIOLATION, 0);
#undef BIND
	/* None of them ended the bind. */
	return write_to(&scene, (u64)pair_memory, 64);
}

const struct ktest rmr_tests[] = {
	{ "rmr_of_kernel_memory", rmr_of_kernel_memory },
	{ "rmr_bounds", rmr_bounds },
	{ "rmr_read_destination", rmr_read_destination },
	{ "rmr_remote_invalidate", rmr_remote_invalidate },
	{ "rmr_refusals", rmr_refusals },
	{}
};

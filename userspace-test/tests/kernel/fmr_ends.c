// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the ends of registrations by the peer, and by the end of a connection. */
#include <linux/string.h>

#include "fmr.h"

/* Sends a message that invalidates a context. */
static int remote_invalidation(struct scene *scene, DAT_RMR_CONTEXT context)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_LMR_TRIPLET place = pair_place(&scene->pair, 0, 64);
	DAT_EVENT event;

	OK(dat_ep_post_recv(scene->pair.ep[1], 1, &place, cookie(4), DEFAULT));
	OK(dat_ep_post_send_with_invalidate(scene->pair.ep[0], 1, &place, cookie(5), DEFAULT,
					    DAT_TRUE, context));
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
		TRY(fmr_registered(scene));
		TRY(fmr_peer_access(scene, (u64)scene->pages, scene->pages));
		memset(scene->pages, 0, SIZE);
		REFUSED(fmr(scene, scene->pair.ep[1], 1, DEFAULT), DAT_INVALID_STATE,
			DAT_INVALID_STATE_LMR_IN_USE);
		from.lmr_context = scene->local;
		old = scene->remote;
		TRY(remote_invalidation(scene, scene->remote));
		REFUSED(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), DEFAULT),
			DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
		REFUSED(fmr_invalidate(scene, scene->pair.ep[1], 2), DAT_INVALID_STATE,
			DAT_INVALID_STATE_LMR_FREE);
	}
	/* The registration has no event. The peer gets the context by a message that follows it. */
	OK(dat_ep_post_recv(scene->pair.ep[0], 1, &to, cookie(7), DEFAULT));
	OK(fmr(scene, scene->pair.ep[1], 1, SUPPRESS));
	from.lmr_context = scene->local;
	OK(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), SUPPRESS));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_RECEIVE, 7, 64));
	TRY(remote_invalidation(scene, scene->remote));
	TRY(fmr_registered(scene));
	return fmr_write_refused(scene, (u64)scene->pages, old);
}

static int fmr_remote_invalidate(void)
{
	return fmr_with_pages(peer_invalidates);
}

/* The peer writes to the pages, and invalidates their context, in one list. */
static int list_invalidates(struct scene *scene)
{
	DAT_LMR_TRIPLET from = pair_place(&scene->pair, 0, 64),
		to = pair_place(&scene->pair, 256, 64);
	DAT_LIST_DTO list[2] = {
		{ DAT_DTO_RDMA_WRITE, SUPPRESS, 1, &from, cookie(5) },
		{ KDAPL_DTO_SEND_WITH_INVALIDATE, DEFAULT, 1, &from, cookie(6) },
	};
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_COUNT posted;
	DAT_EVENT event;

	TRY(fmr_registered(scene));
	memset(scene->pages, 0, SIZE);
	memset(scene->pair.memory, 0x77, 64);
	list[0].remote = (DAT_RMR_TRIPLET){ (u64)scene->pages, 64, scene->remote };
	/* Of a send with invalidate, only the context counts. */
	list[1].remote = (DAT_RMR_TRIPLET){ 1, 1, scene->remote };
	OK(dat_ep_post_recv(scene->pair.ep[1], 1, &to, cookie(4), DEFAULT));
	OK(kdapl_ep_post_list(scene->pair.ep[0], 2, list, &posted));
	SAME(posted, 2);
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_SEND, 6, 64));
	TRY(next_event(scene->pair.dto[1], DAT_DTO_COMPLETION_EVENT, &event));
	dto = &event.event_data.dto_completion_event_data;
	SAME(dto->status, DAT_DTO_SUCCESS);
	SAME(dto->operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	SAME(dto->rmr_context, scene->remote);
	EXPECT(!memchr_inv(scene->pages, 0x77, 64));
	REFUSED(fmr_invalidate(scene, scene->pair.ep[1], 2), DAT_INVALID_STATE,
		DAT_INVALID_STATE_LMR_FREE);
	return 0;
}

static int fmr_list_invalidate(void)
{
	return fmr_with_pages(list_invalidates);
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
		TRY(next_event(scene->pair.connection[side], DAT_CONNECTION_EVENT_DISCONNECTED,
			       &event));
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

	TRY(fmr_registered(scene));
	old = scene->remote;
	TRY(disconnect(scene));
	/* It is still registered. */
	REFUSED(fmr(scene, scene->pair.ep[1], 1, DEFAULT), DAT_INVALID_STATE,
		DAT_INVALID_STATE_LMR_IN_USE);
	OK(fmr_invalidate(scene, scene->pair.ep[1], 2));
	TRY(next_flushed(scene->pair.dto[1], DAT_DTO_LMR_INVALIDATE));
	REFUSED(fmr_invalidate(scene, scene->pair.ep[1], 2), DAT_INVALID_STATE,
		DAT_INVALID_STATE_LMR_FREE);
	/* A registration on a disconnected Endpoint is flushed too. */
	OK(fmr(scene, scene->pair.ep[1], 1, DEFAULT));
	TRY(next_flushed(scene->pair.dto[1], DAT_DTO_LMR_FMR));
	TRY(connect_again(scene));
	TRY(fmr_registered(scene));
	EXPECT(scene->remote != old);
	TRY(fmr_peer_access(scene, (u64)scene->pages, scene->pages));
	/* A registration outlives its connection. */
	TRY(disconnect(scene));
	TRY(connect_again(scene));
	memset(scene->pages, 0, SIZE);
	TRY(fmr_peer_access(scene, (u64)scene->pages, scene->pages));
	TRY(fmr_invalidated(scene));
	/* The key that was flushed is dead. */
	return fmr_write_refused(scene, (u64)scene->pages, old);
}

static int fmr_flushed(void)
{
	return fmr_with_pages(flush);
}

/*
 * The requests of a connection that the peer has left are flushed by the queue pair, or complete.
 */
static int flush_outstanding(struct scene *scene)
{
	unsigned int round;
	DAT_EVENT event;

	for (round = 0; round < 10; round++) {
		DAT_LMR_TRIPLET from = pair_place(&scene->pair, 0, 64);
		DAT_DTO_COMPLETION_STATUS status;

		/*
		 * It has no receive, so the requests that follow it are outstanding at the end.
		 * Over iWARP it would end the connection.
		 */
		if (!is_iwarp)
			OK(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), SUPPRESS));
		OK(fmr(scene, scene->pair.ep[1], 1, DEFAULT));
		if (round % 2)
			OK(fmr_invalidate(scene, scene->pair.ep[1], 2));
		REFUSED(dat_lmr_free(scene->lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
		OK(dat_ep_disconnect(scene->pair.ep[1], DAT_CLOSE_ABRUPT_FLAG));
		do {
			TRY(next_event(scene->pair.dto[1], DAT_DTO_COMPLETION_EVENT, &event));
			status = event.event_data.dto_completion_event_data.status;
		} while (event.event_data.dto_completion_event_data.operation !=
			 (round % 2 ? DAT_DTO_LMR_INVALIDATE : DAT_DTO_LMR_FMR));
		TRY(next_event(scene->pair.connection[1], DAT_CONNECTION_EVENT_DISCONNECTED,
			       &event));
		OK(dat_evd_wait(scene->pair.connection[0], PATIENCE_US, 1, &event, NULL));
		TRY(connect_again(scene));
		if (!status && !(round % 2))
			TRY(fmr_invalidated(scene));
		memset(scene->pages, 0, SIZE);
		TRY(fmr_registered(scene));
		TRY(fmr_peer_access(scene, (u64)scene->pages, scene->pages));
		TRY(fmr_invalidated(scene));
	}
	return 0;
}

static int fmr_flushed_outstanding(void)
{
	return fmr_with_pages(flush_outstanding);
}

/* The Endpoint of an outstanding registration is freed. */
static int free_endpoint(struct scene *scene)
{
	DAT_LMR_TRIPLET from = pair_place(&scene->pair, 0, 64);
	struct pair next = {};

	if (!is_iwarp)
		OK(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(8), DEFAULT));
	OK(fmr(scene, scene->pair.ep[1], 1, DEFAULT));
	OK(dat_ep_free(scene->pair.ep[1]));
	TRY(pair_make(&next));
	TRY(pair_connect(&next));
	scene->pair = next;
	/* Over iWARP the registration may have completed before. */
	if (is_iwarp && dat_lmr_invalidate(scene->lmr, next.ep[1], cookie(2),
					   DEFAULT) == DAT_SUCCESS)
		TRY(next_dto(next.dto[1], DAT_DTO_LMR_INVALIDATE, 2, 0));
	TRY(fmr_registered(scene));
	TRY(fmr_peer_access(scene, (u64)scene->pages, scene->pages));
	return fmr_invalidated(scene);
}

static int fmr_endpoint_freed(void)
{
	return fmr_with_pages(free_endpoint);
}

#define RACES	400

/* A registration that one thread ends while another frees its LMR. */
static struct {
	struct scene *scene;
	atomic_t ready;
	DAT_RETURN ended;
} race;

static void meet(void)
{
	atomic_inc(&race.ready);
	while (atomic_read(&race.ready) < 2)
		cond_resched();
}

static int invalidate_beside_free(unsigned int delay)
{
	meet();
	ndelay(delay);
	race.ended = fmr_invalidate(race.scene, race.scene->pair.ep[1], 2);
	return 0;
}

/*
 * Both may succeed if the invalidation completes before the free begins. After a success of
 * dat_lmr_free() no request may be outstanding.
 */
static int free_beside_invalidate(struct scene *scene)
{
	struct ktest_thread thread;
	DAT_BOOLEAN is_idle;
	unsigned int round;
	DAT_RETURN freed;

	for (round = 0; round < RACES; round++) {
		TRY(fmr_registered(scene));
		race.scene = scene;
		atomic_set(&race.ready, 0);
		TRY(ktest_start(&thread, invalidate_beside_free, round % 40 * 100));
		meet();
		freed = dat_lmr_free(scene->lmr);
		TRY(ktest_join(&thread));
		if (freed) {
			REFUSED(freed, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
			OK(race.ended);
		} else if (race.ended) {
			REFUSED(race.ended, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
		} else {
			OK(dat_ep_get_status(scene->pair.ep[1], NULL, NULL, &is_idle));
			EXPECT(is_idle);
		}
		if (!race.ended)
			TRY(next_dto(scene->pair.dto[1], DAT_DTO_LMR_INVALIDATE, 2, 0));
		if (!freed)
			OK(dat_lmr_allocate(ia, pz, PAGES, DAT_LMR_SCOPE_PZ, &scene->lmr));
	}
	return 0;
}

static int fmr_free_beside_invalidate(void)
{
	return fmr_with_pages(free_beside_invalidate);
}

const struct ktest fmr_end_tests[] = {
	{ "fmr_free_beside_invalidate", fmr_free_beside_invalidate },
	{ "fmr_remote_invalidate", fmr_remote_invalidate },
	{ "fmr_list_invalidate", fmr_list_invalidate },
	{ "fmr_flushed", fmr_flushed },
	{ "fmr_flushed_outstanding", fmr_flushed_outstanding },
	{ "fmr_endpoint_freed", fmr_endpoint_freed },
	{}
};

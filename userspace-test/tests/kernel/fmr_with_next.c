// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests registrations whose success is reported with the next request of the EP. */
#include "fmr.h"

#define WITH_NEXT	KDAPL_COMPLETION_WITH_NEXT_FLAG
#define ROUNDS		300
#define BYTES		64

/* Side 1 sends a message, and side 0 gets it. */
static int send_after(struct scene *scene, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET from = pair_place(&scene->pair, 0, BYTES),
		to = pair_place(&scene->pair, 256, BYTES);

	OK(dat_ep_post_recv(scene->pair.ep[0], 1, &to, cookie(1), DEFAULT));
	OK(dat_ep_post_send(scene->pair.ep[1], 1, &from, cookie(2), flags));
	return next_dto(scene->pair.dto[0], DAT_DTO_RECEIVE, 1, BYTES);
}

/* Side 0 invalidates the context. */
static int answer(struct scene *scene)
{
	DAT_LMR_TRIPLET from = pair_place(&scene->pair, 256, BYTES);

	OK(dat_ep_post_send_with_invalidate(scene->pair.ep[0], 1, &from, cookie(3), DEFAULT,
					    DAT_TRUE, scene->remote));
	return next_dto(scene->pair.dto[0], DAT_DTO_SEND, 3, BYTES);
}

/*
 * Side 1 gets the completion of its send, unless that is suppressed, and the answer. The send may
 * complete after the answer to it.
 */
static int next_all(struct scene *scene, unsigned int sends)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	unsigned int answers = 1;
	DAT_EVENT event;

	while (sends || answers) {
		TRY(next_event(scene->pair.dto[1], DAT_DTO_COMPLETION_EVENT, &event));
		dto = &event.event_data.dto_completion_event_data;
		SAME(dto->status, DAT_DTO_SUCCESS);
		if (dto->operation == DAT_DTO_SEND && sends) {
			sends--;
			continue;
		}
		SAME(dto->operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
		SAME(dto->rmr_context, scene->remote);
		SAME(answers, 1);
		answers--;
	}
	REFUSED(dat_evd_dequeue(scene->pair.dto[1], &event), DAT_QUEUE_EMPTY, 0);
	return 0;
}

/* Registers, sends the context to the peer, which invalidates it: again and again. */
static int reuse(struct scene *scene)
{
	DAT_LMR_TRIPLET place = pair_place(&scene->pair, 512, BYTES);
	unsigned int round;

	for (round = 0; round < ROUNDS; round++) {
		OK(dat_ep_post_recv(scene->pair.ep[1], 1, &place, cookie(4), DEFAULT));
		OK(fmr(scene, scene->pair.ep[1], 5, WITH_NEXT));
		REFUSED(fmr(scene, scene->pair.ep[1], 5, WITH_NEXT), DAT_INVALID_STATE,
			DAT_INVALID_STATE_LMR_IN_USE);
		TRY(send_after(scene, DEFAULT));
		TRY(answer(scene));
		TRY(next_all(scene, 1));
	}
	/* The next request has no event. So nothing says when the LMR is free. */
	for (round = 0; round < 20; round++) {
		OK(dat_ep_post_recv(scene->pair.ep[1], 1, &place, cookie(4), DEFAULT));
		UNTIL(!fmr(scene, scene->pair.ep[1], 5, WITH_NEXT));
		TRY(send_after(scene, SUPPRESS));
		TRY(answer(scene));
		TRY(next_all(scene, 0));
	}
	UNTIL(!dat_lmr_free(scene->lmr));
	return 0;
}

static int fmr_with_next(void)
{
	return fmr_with_pages(reuse);
}

/* No request follows, or one that is refused. */
static int alone(struct scene *scene)
{
	DAT_LMR_TRIPLET unknown = pair_place(&scene->pair, 0, BYTES);
	unsigned int round;

	for (round = 0; round < 20; round++) {
		OK(fmr(scene, scene->pair.ep[1], 5, WITH_NEXT));
		TRY(fmr_invalidated(scene));
	}
	unknown.lmr_context ^= 0x5a5a;
	OK(fmr(scene, scene->pair.ep[1], 5, WITH_NEXT));
	REFUSED(dat_ep_post_send(scene->pair.ep[1], 1, &unknown, cookie(2), DEFAULT),
		DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
	/* The peer may use the context after a message that follows the registration. */
	TRY(send_after(scene, DEFAULT));
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_SEND, 2, BYTES));
	TRY(fmr_peer_access(scene, (u64)scene->pages, scene->pages));
	TRY(fmr_invalidated(scene));
	/* kDAPL ends the registration by a request of its own, a second or two later. */
	OK(fmr(scene, scene->pair.ep[1], 5, WITH_NEXT));
	UNTIL(!dat_lmr_free(scene->lmr));
	return 0;
}

static int fmr_with_no_next(void)
{
	return fmr_with_pages(alone);
}

/* The connection ends before a request follows. */
static int ends(struct scene *scene)
{
	unsigned int round, side;
	DAT_EVENT event;

	for (round = 0; round < 10; round++) {
		OK(fmr(scene, scene->pair.ep[1], 5, WITH_NEXT));
		OK(dat_ep_disconnect(scene->pair.ep[round % 2], DAT_CLOSE_ABRUPT_FLAG));
		for (side = 0; side < 2; side++)
			TRY(next_event(scene->pair.connection[side],
				       DAT_CONNECTION_EVENT_DISCONNECTED, &event));
		UNTIL(!dat_lmr_free(scene->lmr));
		/* It may have been flushed. */
		if (!dat_evd_dequeue(scene->pair.dto[1], &event))
			SAME(event.event_data.dto_completion_event_data.status,
			     DAT_DTO_ERR_FLUSHED);
		OK(dat_lmr_allocate(ia, pz, PAGES, DAT_LMR_SCOPE_PZ, &scene->lmr));
		OK(dat_ep_reset(scene->pair.ep[0]));
		OK(dat_ep_reset(scene->pair.ep[1]));
		TRY(pair_connect(&scene->pair));
	}
	OK(fmr(scene, scene->pair.ep[1], 5, WITH_NEXT));
	OK(dat_ep_free(scene->pair.ep[1]));
	UNTIL(!dat_lmr_free(scene->lmr));
	return 0;
}

static int fmr_with_next_ends(void)
{
	return fmr_with_pages(ends);
}

const struct ktest fmr_with_next_tests[] = {
	{ "fmr_with_next", fmr_with_next },
	{ "fmr_with_no_next", fmr_with_no_next },
	{ "fmr_with_next_ends", fmr_with_next_ends },
	{}
};

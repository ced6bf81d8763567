// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* A connection, and pages that a request registers. */
#include <linux/mm.h>
#include <linux/string.h>

#include "fmr.h"

DAT_RETURN fmr(struct scene *scene, DAT_EP_HANDLE ep, u64 number, DAT_COMPLETION_FLAGS flags)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = scene->pages };

	return dat_lmr_fmr(scene->lmr, DAT_MEM_TYPE_VIRTUAL, region, PAGES, ALL, DAT_VA_TYPE_VA, ep,
			   cookie(number), flags, &scene->local, &scene->remote);
}

DAT_RETURN fmr_invalidate(struct scene *scene, DAT_EP_HANDLE ep, u64 number)
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

int fmr_with_pages(int (*run)(struct scene *scene))
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

int fmr_registered(struct scene *scene)
{
	OK(fmr(scene, scene->pair.ep[1], 1, DEFAULT));
	return next_dto(scene->pair.dto[1], DAT_DTO_LMR_FMR, 1, 0);
}

int fmr_invalidated(struct scene *scene)
{
	OK(fmr_invalidate(scene, scene->pair.ep[1], 2));
	return next_dto(scene->pair.dto[1], DAT_DTO_LMR_INVALIDATE, 2, 0);
}

DAT_RETURN fmr_write_to(struct scene *scene, u64 address, DAT_RMR_CONTEXT context)
{
	const DAT_RMR_TRIPLET remote = { address, 64, context };
	DAT_LMR_TRIPLET from = pair_place(&scene->pair, 0, 64);

	return dat_ep_post_rdma_write(scene->pair.ep[0], 1, &from, cookie(3), &remote, DEFAULT);
}

int fmr_send_message(struct scene *scene)
{
	DAT_LMR_TRIPLET place = pair_place(&scene->pair, 64, 0);

	OK(dat_ep_post_recv(scene->pair.ep[1], 1, &place, cookie(4), DEFAULT));
	OK(dat_ep_post_send(scene->pair.ep[0], 1, &place, cookie(5), DEFAULT));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_SEND, 5, 0));
	return next_dto(scene->pair.dto[1], DAT_DTO_RECEIVE, 4, 0);
}

int fmr_peer_access(struct scene *scene, u64 start, u8 *bytes)
{
	const u64 address = start + SIZE - 64;
	const DAT_RMR_TRIPLET remote = { address, 64, scene->remote };
	DAT_LMR_TRIPLET to = pair_place(&scene->pair, 128, 64);

	memset(scene->pair.memory, 0x5a, 64);
	memset(scene->pair.memory + 128, 0, 64);
	OK(fmr_write_to(scene, address, scene->remote));
	TRY(next_dto(scene->pair.dto[0], DAT_DTO_RDMA_WRITE, 3, 64));
	TRY(fmr_send_message(scene));
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

int fmr_write_refused(struct scene *scene, u64 address, DAT_RMR_CONTEXT context)
{
	DAT_DTO_COMPLETION_STATUS status;
	DAT_EVENT event;

	memset(scene->pages, 0x11, SIZE);
	OK(fmr_write_to(scene, address, context));
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
	EXPECT(!memchr_inv(scene->pages, 0x11, SIZE));
	return 0;
}

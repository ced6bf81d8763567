// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tests the removal of the device under a connection with traffic. A program in user
 * space deletes it at stage 1.
 */
#include <linux/string.h>

#include "ktest.h"

static struct {
	atomic_t over, catastrophic, flushed, others;
	DAT_HANDLE object;
} gone;

static void watch(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	switch (event->event_number) {
	case DAT_CONNECTION_EVENT_BROKEN:
	/* The peer is on the same device, and may be removed a little earlier. */
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		atomic_inc(&gone.over);
		break;
	case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
		gone.object = event->event_data.asynch_error_event_data.dat_handle;
		atomic_inc(&gone.catastrophic);
		break;
	case DAT_DTO_COMPLETION_EVENT:
		atomic_inc(&gone.flushed);
		break;
	default:
		atomic_inc(&gone.others);
	}
}

/* Makes an LMR that is registered, and one that is free. */
static int make_registrations(const struct pair *pair, DAT_LMR_HANDLE *lmr)
{
	DAT_REGION_DESCRIPTION region = { .for_va = PTR_ALIGN(pair_memory, PAGE_SIZE) };
	unsigned int i;

	for (i = 0; i < 2; i++)
		OK(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_PZ, &lmr[i]));
	OK(dat_lmr_fmr(lmr[0], DAT_MEM_TYPE_VIRTUAL, region, 1, DAT_MEM_PRIV_REMOTE_READ_FLAG,
		       DAT_VA_TYPE_VA, pair->ep[0], cookie(1), DAT_COMPLETION_DEFAULT_FLAG, NULL,
		       NULL));
	return next_dto(pair->dto[0], DAT_DTO_LMR_FMR, 1, 0);
}

/* After the removal of the device, they can be freed only. */
static int free_registrations(const struct pair *pair, const DAT_LMR_HANDLE *lmr)
{
	DAT_REGION_DESCRIPTION region = { .for_va = PTR_ALIGN(pair_memory, PAGE_SIZE) };
	DAT_LMR_HANDLE late;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		REFUSED(dat_lmr_invalidate(lmr[i], pair->ep[0], cookie(1),
					   DAT_COMPLETION_DEFAULT_FLAG),
			DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
		REFUSED(dat_lmr_fmr(lmr[i], DAT_MEM_TYPE_VIRTUAL, region, 1, 0, DAT_VA_TYPE_VA,
				    pair->ep[0], cookie(1), DAT_COMPLETION_DEFAULT_FLAG, NULL,
				    NULL),
			DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
		OK(dat_lmr_free(lmr[i]));
	}
	REFUSED(dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_PZ, &late),
		DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	return 0;
}

/* An adapter without objects reports the removal once, and names itself. */
static int idle_is_told(DAT_IA_HANDLE idle, DAT_EVD_HANDLE evd)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	TRY(next_event(evd, DAT_ASYNC_ERROR_IA_CATASTROPHIC, &event));
	data = &event.event_data.asynch_error_event_data;
	EXPECT(data->dat_handle == idle && data->reason == 0);
	REFUSED(dat_evd_wait(evd, QUIET_MS * USEC_PER_MSEC, 1, &event, NULL), DAT_TIMEOUT_EXPIRED,
		0);
	OK(dat_ia_close(idle, DAT_CLOSE_GRACEFUL_FLAG));
	return 0;
}

static int device_removal(void)
{
	const DAT_UPCALL_OBJECT watcher = { .upcall_func = watch };
	DAT_EVD_HANDLE late, idle_evd = DAT_HANDLE_NULL;
	struct pair pair = {};
	DAT_LMR_TRIPLET place;
	DAT_LMR_HANDLE lmr[2];
	DAT_IA_HANDLE idle;
	unsigned int side;

	memset(&gone, 0, sizeof(gone));
	OK(dat_ia_open(ia_attr.adapter_name, 8, &idle_evd, &idle));
	TRY(pair_make(&pair));
	TRY(pair_connect(&pair));
	TRY(make_registrations(&pair, lmr));
	OK(dat_evd_modify_upcall(async_evd, DAT_UPCALL_SINGLE_INSTANCE, &watcher,
				 DAT_UPCALL_INVOC_ANY));
	place = pair_place(&pair, 0, 64);
	for (side = 0; side < 2; side++) {
		OK(dat_evd_modify_upcall(pair.dto[side], DAT_UPCALL_MANY, &watcher,
					 DAT_UPCALL_INVOC_ANY));
		OK(dat_evd_modify_upcall(pair.connection[side], DAT_UPCALL_SINGLE_INSTANCE,
					 &watcher, DAT_UPCALL_INVOC_ANY));
		OK(dat_ep_post_recv(pair.ep[side], 1, &place, cookie(0),
				    DAT_COMPLETION_DEFAULT_FLAG));
	}
	WRITE_ONCE(ktest_stage, 1);
	UNTIL(atomic_read(&gone.catastrophic) == 1);
	UNTIL(atomic_read(&gone.over) == 2);
	UNTIL(atomic_read(&gone.flushed) == 2);
	TRY(idle_is_told(idle, idle_evd));
	SAME(atomic_read(&gone.catastrophic), 1);
	SAME(atomic_read(&gone.over), 2);
	SAME(atomic_read(&gone.others), 0);
	EXPECT(gone.object == ia);
	/* Handles stay valid, but their device is removed. */
	REFUSED(dat_ep_post_send(pair.ep[0], 1, &place, cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	REFUSED(dat_evd_kcreate(ia, 4, DAT_UPCALL_DISABLE, NULL, DAT_EVD_SOFTWARE_FLAG, &late),
		DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	TRY(free_registrations(&pair, lmr));
	OK(dat_evd_modify_upcall(pair.dto[0], DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
				 DAT_UPCALL_INVOC_ANY));
	OK(dat_ep_free(pair.ep[0]));
	return 0;
}

const struct ktest removal_tests[] = {
	{ "device_removal", device_removal },
	{}
};

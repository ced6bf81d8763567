// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests every exported call in one thread while another closes the adapter. */
#include <linux/sched.h>
#include <linux/string.h>

#include "calls.h"
#include "ktest.h"

/* Calls until the close at most: each may create an object. */
#define MOST	50

/* Microseconds from the first call to the close. */
static const unsigned int delays[] = { 0, 20, 150, 1000 };

static struct {
	const struct call *call;
	atomic_t ready;
	bool closed;
} race;

/* Returns when both threads are here. */
static void meet(void)
{
	atomic_inc(&race.ready);
	while (atomic_read(&race.ready) < 2)
		cond_resched();
}

static int call_until_closed(unsigned int unused)
{
	unsigned int calls;
	DAT_RETURN ret;

	meet();
	for (calls = 0; calls < MOST && !READ_ONCE(race.closed); calls++) {
		race.call->make();
		cond_resched();
	}
	UNTIL(READ_ONCE(race.closed));
	ret = race.call->make();
	if (DAT_GET_TYPE(ret) != DAT_INVALID_HANDLE)
		return FAIL("%s after the close: %08x", race.call->name, ret);
	return 0;
}

static int close_all(void)
{
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	/* The other thread may have closed this one. */
	dat_ia_close(call_second_adapter(), DAT_CLOSE_ABRUPT_FLAG);
	return 0;
}

static int close_beside(const struct call *call, unsigned int delay)
{
	static struct ktest_thread thread;
	int error;

	TRY(call_prepare(call));
	race.call = call;
	race.closed = false;
	atomic_set(&race.ready, 0);
	TRY(ktest_start(&thread, call_until_closed, 0));
	meet();
	udelay(delay);
	error = close_all();
	WRITE_ONCE(race.closed, true);
	return ktest_join(&thread) ?: error;
}

/* Returns whether a call has no handle of an adapter or an object. */
static bool has_no_handle(const struct call *call)
{
	return !strcmp(call->name, "dat_ia_openv") ||
	       !strcmp(call->name, "kdapl_ia_open_net") || !strcmp(call->name, "dat_strerror");
}

static int close_beside_each_call(void)
{
	const struct call *call;
	unsigned int i;

	/* Each round opens its own adapter. */
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	for (call = calls; call->name; call++) {
		if (has_no_handle(call) || !call_is_supported(call))
			continue;
		for (i = 0; i < ARRAY_SIZE(delays); i++)
			TRY(close_beside(call, delays[i]));
	}
	return 0;
}

const struct ktest close_tests[] = {
	{ "close_beside_each_call", close_beside_each_call },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests upcalls against changes of the policy, frees and closes. */
#include <linux/string.h>

#include "ktest.h"

#define EVENTS	20000
#define THREADS	2
#define CHANGES	400

static struct {
	atomic_t calls, running, late, twice;
	u8 times[EVENTS];
	/* Set when no upcall may be in progress or begin. */
	bool closed;
	/* Set when at most one upcall may be in progress. */
	bool single;
	struct completion entered, hold;
	DAT_RETURN from_within[3];
} seen;

static DAT_EVD_HANDLE evd;

static void count(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	unsigned long number = number_of(event);

	if (READ_ONCE(seen.closed))
		atomic_inc(&seen.late);
	if (atomic_inc_return(&seen.running) > 1 && READ_ONCE(seen.single))
		atomic_inc(&seen.twice);
	if (number < EVENTS)
		seen.times[number]++;
	if (number % 64 == 0)
		usleep_range(10, 20);
	if (READ_ONCE(seen.closed))
		atomic_inc(&seen.late);
	atomic_dec(&seen.running);
	atomic_inc(&seen.calls);
}

static const DAT_UPCALL_OBJECT counter = { .upcall_func = count };

static int begin(DAT_COUNT qlen, DAT_UPCALL_POLICY policy, const DAT_UPCALL_OBJECT *upcall)
{
	memset(&seen, 0, sizeof(seen));
	init_completion(&seen.entered);
	init_completion(&seen.hold);
	return make_evd(qlen, policy, upcall, &evd);
}

static int post_many(unsigned int thread)
{
	unsigned long number;

	for (number = thread; number < EVENTS; number += THREADS) {
		TRY(post_surely(evd, number));
		/* Races occur when the queue runs empty. */
		if (number % 7 == thread)
			cond_resched();
	}
	return 0;
}

static int set(DAT_UPCALL_POLICY policy, DAT_UPCALL_FLAG flag)
{
	OK(dat_evd_modify_upcall(evd, policy, DAT_UPCALL_SAME, flag));
	return 0;
}

/* Disables and enables upcalls while events arrive. */
static int change(unsigned int round)
{
	if (round % 4 == 3) {
		WRITE_ONCE(seen.single, false);
		TRY(set(DAT_UPCALL_MANY, DAT_UPCALL_INVOC_ANY));
		usleep_range(50, 100);
		TRY(set(DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_ANY));
		WRITE_ONCE(seen.single, true);
	}
	/* The change of the policy must keep pending upcalls. */
	TRY(set(DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY));
	TRY(set(DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_NEW));
	usleep_range(20, 200);
	TRY(set(DAT_UPCALL_DISABLE, DAT_UPCALL_INVOC_ANY));
	if (round % 2)
		return 0;
	TRY(set(DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_ANY));
	SAME(atomic_read(&seen.running), 0);
	WRITE_ONCE(seen.closed, true);
	usleep_range(20, 50);
	WRITE_ONCE(seen.closed, false);
	return 0;
}

static int upcall_enable_and_disable(void)
{
	struct ktest_thread threads[THREADS];
	unsigned int number, round;
	int error = 0;

	TRY(begin(64, DAT_UPCALL_SINGLE_INSTANCE, &counter));
	seen.single = true;
	for (number = 0; number < THREADS; number++)
		error = ktest_start(&threads[number], post_many, number) ?: error;
	for (round = 0; !error && round < CHANGES; round++)
		error = change(round);
	/* Without upcalls the posts would wait for room. */
	dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_SAME,
			      DAT_UPCALL_INVOC_ANY);
	for (number = 0; number < THREADS; number++)
		error = ktest_join(&threads[number]) ?: error;
	TRY(error);
	UNTIL(atomic_read(&seen.calls) >= EVENTS);
	SAME(atomic_read(&seen.late), 0);
	SAME(atomic_read(&seen.twice), 0);
	for (number = 0; number < EVENTS; number++)
		if (seen.times[number] != 1)
			return FAIL("event %u has %u upcalls", number, seen.times[number]);
	return 0;
}

/* Makes the calls that would wait for their own upcall, and then waits for `hold`. */
static void linger(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	seen.from_within[0] = dat_evd_modify_upcall(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
						    DAT_UPCALL_INVOC_ANY);
	seen.from_within[1] = dat_evd_free(evd);
	seen.from_within[2] = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	complete(&seen.entered);
	wait_for_completion(&seen.hold);
	atomic_inc(&seen.calls);
}

static const DAT_UPCALL_OBJECT lingerer = { .upcall_func = linger };

static int tear_down(unsigned int unused)
{
	TRY(set(DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_ANY));
	/* The call returns after the upcall. */
	SAME(atomic_read(&seen.calls), 1);
	return 0;
}

static int free_it(unsigned int unused)
{
	OK(dat_evd_free(evd));
	SAME(atomic_read(&seen.calls), 1);
	return 0;
}

static int close_it(unsigned int unused)
{
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	SAME(atomic_read(&seen.calls), 1);
	return 0;
}

/* Checks that a call waits for an upcall in progress. */
static int waits_for_upcall(int (*wait)(unsigned int unused))
{
	struct ktest_thread waiter;

	TRY(begin(4, DAT_UPCALL_SINGLE_INSTANCE, &lingerer));
	OK(post_number(evd, 0));
	EXPECT(wait_for_completion_timeout(&seen.entered, patience * HZ));
	TRY(ktest_start(&waiter, wait, 0));
	msleep(QUIET_MS);
	/* Checked first: a failure must not leave the upcall waiting. */
	if (completion_done(&waiter.over)) {
		complete_all(&seen.hold);
		return FAIL("the call did not wait");
	}
	complete_all(&seen.hold);
	TRY(ktest_join(&waiter));
	SAME(seen.from_within[0],
	     DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_IN_USE);
	SAME(seen.from_within[1],
	     DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_IN_USE);
	SAME(seen.from_within[2],
	     DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_IA_IN_USE);
	return 0;
}

static int upcall_teardown_waits(void)
{
	return waits_for_upcall(tear_down);
}

static int upcall_delays_evd_free(void)
{
	return waits_for_upcall(free_it);
}

static int upcall_delays_ia_close(void)
{
	return waits_for_upcall(close_it);
}

/* Disables upcalls during an upcall, and enables them again: at most one is in progress. */
static int upcall_disabled_within_itself(void)
{
	TRY(begin(8, DAT_UPCALL_SINGLE_INSTANCE, &lingerer));
	OK(post_number(evd, 0));
	EXPECT(wait_for_completion_timeout(&seen.entered, patience * HZ));
	TRY(set(DAT_UPCALL_DISABLE, DAT_UPCALL_INVOC_ANY));
	OK(post_number(evd, 1));
	TRY(set(DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY));
	OK(post_number(evd, 2));
	msleep(QUIET_MS);
	SAME(try_wait_for_completion(&seen.entered), false);
	complete_all(&seen.hold);
	UNTIL(atomic_read(&seen.calls) == 3);
	return 0;
}

/* A slow upcall, for a close with hundreds of pending upcalls. */
static void dawdle(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (READ_ONCE(seen.closed))
		atomic_inc(&seen.late);
	usleep_range(500, 1000);
	/* The post may be refused, but must be safe. */
	post_number(event->evd_handle, 0);
	if (READ_ONCE(seen.closed))
		atomic_inc(&seen.late);
	atomic_inc(&seen.calls);
}

static int upcall_none_after_close(void)
{
	const DAT_UPCALL_OBJECT dawdler = { .upcall_func = dawdle };
	const DAT_UPCALL_POLICY policies[] = { DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_MANY };
	DAT_EVD_HANDLE stale;
	unsigned int round, number;
	int calls;

	for (round = 0; round < ARRAY_SIZE(policies); round++) {
		TRY(begin(512, policies[round], &dawdler));
		for (number = 0; number < 500; number++)
			OK(post_number(evd, number));
		UNTIL(atomic_read(&seen.calls) >= 3);
		stale = evd;
		OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
		WRITE_ONCE(seen.closed, true);
		calls = atomic_read(&seen.calls);
		msleep(QUIET_MS);
		SAME(atomic_read(&seen.late), 0);
		SAME(atomic_read(&seen.calls), calls);
		REFUSED(post_number(stale, 0), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
		TRY(ktest_reopen());
	}
	return 0;
}

/* EVD that the upcall waits on. The wait must not delay the close of the adapter. */
static DAT_EVD_HANDLE other;

static void wait_on_other(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EVENT never;

	complete(&seen.entered);
	seen.from_within[0] = dat_evd_wait(other, DAT_TIMEOUT_INFINITE, 1, &never, NULL);
	atomic_inc(&seen.calls);
}

static int close_ends_wait_of_upcall(void)
{
	const DAT_UPCALL_OBJECT waiter = { .upcall_func = wait_on_other };

	TRY(begin(4, DAT_UPCALL_SINGLE_INSTANCE, &waiter));
	TRY(make_evd(4, DAT_UPCALL_DISABLE, NULL, &other));
	OK(post_number(evd, 0));
	EXPECT(wait_for_completion_timeout(&seen.entered, patience * HZ));
	msleep(QUIET_MS);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	SAME(atomic_read(&seen.calls), 1);
	SAME(seen.from_within[0], DAT_CLASS_ERROR | DAT_ABORT);
	return 0;
}

const struct ktest race_tests[] = {
	{ "upcall_enable_and_disable", upcall_enable_and_disable },
	{ "upcall_teardown_waits", upcall_teardown_waits },
	{ "upcall_delays_evd_free", upcall_delays_evd_free },
	{ "upcall_delays_ia_close", upcall_delays_ia_close },
	{ "upcall_disabled_within_itself", upcall_disabled_within_itself },
	{ "upcall_none_after_close", upcall_none_after_close },
	{ "close_ends_wait_of_upcall", close_ends_wait_of_upcall },
	{}
};

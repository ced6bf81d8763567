// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the promises of each policy. */
#include <linux/string.h>

#include "ktest.h"

#define EVENTS	4000

/* Observations of a test's upcalls. */
static struct {
	atomic_t calls, running, most, without_event, strange;
	/* Number of upcalls of each event. */
	u8 times[EVENTS];
	/* Last event of each posting thread. `overtaken` is set if their order was wrong. */
	int last[POSTERS];
	bool overtaken;
	/* The upcall waits for this completion if it is set. */
	struct completion *hold;
	atomic_t entered;
} seen;

static DAT_EVD_HANDLE evd;

static void enter(void)
{
	int running = atomic_inc_return(&seen.running), most = atomic_read(&seen.most);

	while (running > most && !atomic_try_cmpxchg(&seen.most, &most, running))
		;
	atomic_inc(&seen.entered);
	if (seen.hold)
		wait_for_completion(seen.hold);
}

static void leave(void)
{
	atomic_dec(&seen.running);
	/* Pairs with calls(), so that its caller reads the counts of this upcall. */
	atomic_inc_return_release(&seen.calls);
}

static int calls(void)
{
	return atomic_read_acquire(&seen.calls);
}

static void account(const DAT_EVENT *event)
{
	unsigned long number = number_of(event);

	if (event->event_number != DAT_SOFTWARE_EVENT || event->evd_handle != evd ||
	    number >= EVENTS) {
		atomic_inc(&seen.strange);
		return;
	}
	/* Upcalls may run at the same time, and a test reads the counts meanwhile. */
	WRITE_ONCE(seen.times[number], READ_ONCE(seen.times[number]) + 1);
	if ((int)number <= READ_ONCE(seen.last[number % POSTERS]))
		WRITE_ONCE(seen.overtaken, true);
	WRITE_ONCE(seen.last[number % POSTERS], number);
}

static void happened(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	enter();
	if (instance != &seen)
		atomic_inc(&seen.strange);
	if (event)
		account(event);
	else
		atomic_inc(&seen.without_event);
	leave();
}

static const DAT_UPCALL_OBJECT upcall = { .instance_data = &seen, .upcall_func = happened };

static int begin(DAT_COUNT qlen, DAT_UPCALL_POLICY policy)
{
	memset(&seen, 0, sizeof(seen));
	memset(seen.last, -1, sizeof(seen.last));
	return make_evd(qlen, policy, &upcall, &evd);
}

static int each_once(void)
{
	unsigned int number;

	SAME(atomic_read(&seen.strange), 0);
	for (number = 0; number < EVENTS; number++)
		if (seen.times[number] != 1)
			return FAIL("event %u has %u upcalls", number, seen.times[number]);
	return 0;
}

static int upcall_single_instance(void)
{
	TRY(begin(256, DAT_UPCALL_SINGLE_INSTANCE));
	TRY(post_from_threads(evd, EVENTS));
	UNTIL(calls() >= EVENTS);
	TRY(each_once());
	SAME(atomic_read(&seen.most), 1);
	EXPECT(!seen.overtaken);
	SAME(atomic_read(&seen.without_event), 0);
	return 0;
}

static int upcall_many(void)
{
	DECLARE_COMPLETION_ONSTACK(hold);

	TRY(begin(256, DAT_UPCALL_MANY));
	seen.hold = &hold;
	OK(post_number(evd, 0));
	OK(post_number(evd, 1));
	OK(post_number(evd, 2));
	/* All three upcalls begin before the first returns. */
	UNTIL(atomic_read(&seen.entered) == 3);
	SAME(calls(), 0);
	complete_all(&hold);
	UNTIL(calls() == 3);
	memset(seen.times, 0, sizeof(seen.times));
	TRY(post_from_threads(evd, EVENTS));
	UNTIL(calls() >= EVENTS + 3);
	return each_once();
}

/* Dequeues all events. */
static void take_all(void *instance, const DAT_EVENT *none, DAT_BOOLEAN more)
{
	DAT_EVENT event;

	enter();
	if (none || !more)
		atomic_inc(&seen.strange);
	while (!dat_evd_dequeue(evd, &event))
		account(&event);
	leave();
}

static unsigned int accounted(void)
{
	unsigned int number, sum = 0;

	for (number = 0; number < EVENTS; number++)
		sum += READ_ONCE(seen.times[number]);
	return sum;
}

static int upcall_notify(void)
{
	const DAT_UPCALL_OBJECT taker = { .upcall_func = take_all };
	DAT_EVENT event;

	/* An upcall that dequeues nothing is called once for each arrival, and the events stay. */
	TRY(begin(256, DAT_UPCALL_DISABLE));
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_NOTIFY, DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW));
	OK(post_number(evd, 0));
	UNTIL(atomic_read(&seen.without_event) == 1);
	msleep(QUIET_MS);
	SAME(atomic_read(&seen.without_event), 1);
	OK(post_number(evd, 1));
	UNTIL(atomic_read(&seen.without_event) == 2);
	OK(dat_evd_dequeue(evd, &event));
	SAME(number_of(&event), 0);
	OK(dat_evd_dequeue(evd, &event));
	SAME(number_of(&event), 1);
	REFUSED(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY, 0);
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_NOTIFY, &taker, DAT_UPCALL_INVOC_NEW));
	TRY(post_from_threads(evd, EVENTS));
	UNTIL(accounted() >= EVENTS);
	TRY(each_once());
	SAME(atomic_read(&seen.most), 1);
	return 0;
}

static int upcall_disable(void)
{
	DAT_EVENT event;

	TRY(begin(16, DAT_UPCALL_DISABLE));
	OK(post_number(evd, 0));
	OK(post_number(evd, 1));
	OK(post_number(evd, 2));
	msleep(QUIET_MS);
	SAME(calls(), 0);
	OK(dat_evd_dequeue(evd, &event));
	SAME(number_of(&event), 0);
	/*
	 * INVOC_NEW makes upcalls for later events only. The first of them brings the queued ones.
	 */
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_SAME,
				 DAT_UPCALL_INVOC_NEW));
	msleep(QUIET_MS);
	SAME(calls(), 0);
	OK(post_number(evd, 3));
	UNTIL(calls() == 3);
	EXPECT(seen.times[1] == 1 && seen.times[2] == 1 && seen.times[3] == 1 && !seen.overtaken);
	/* INVOC_ANY makes an upcall for the queued event. */
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_DISABLE, DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW));
	OK(post_number(evd, 4));
	msleep(QUIET_MS);
	SAME(calls(), 3);
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_SAME,
				 DAT_UPCALL_INVOC_ANY));
	UNTIL(seen.times[4] == 1);
	return 0;
}

static int upcall_bad_arguments(void)
{
	const DAT_UPCALL_OBJECT nothing = {};
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE other;
	DAT_EVENT event;

	REFUSED(dat_evd_kcreate(ia, 4, DAT_UPCALL_SINGLE_INSTANCE, NULL, DAT_EVD_SOFTWARE_FLAG,
				&other),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(4));
	REFUSED(dat_evd_kcreate(ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &nothing, DAT_EVD_SOFTWARE_FLAG,
				&other),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(4));
	REFUSED(dat_evd_kcreate(ia, 4, 3, &upcall, DAT_EVD_SOFTWARE_FLAG, &other),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	REFUSED(dat_evd_kcreate(ia, 4, -2, &upcall, DAT_EVD_SOFTWARE_FLAG, &other),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	REFUSED(dat_evd_kcreate(ia, 0, DAT_UPCALL_DISABLE, NULL, DAT_EVD_SOFTWARE_FLAG, &other),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(2));
	REFUSED(dat_evd_kcreate(ia, 4, DAT_UPCALL_DISABLE, NULL, 0, &other),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(5));
	REFUSED(dat_evd_kcreate(ia, 4, DAT_UPCALL_DISABLE, NULL, DAT_EVD_SOFTWARE_FLAG, NULL),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(6));
	TRY(make_evd(4, DAT_UPCALL_DISABLE, NULL, &evd));
	REFUSED(dat_evd_modify_upcall(evd, DAT_UPCALL_MANY, DAT_UPCALL_SAME, DAT_UPCALL_INVOC_ANY),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(3));
	REFUSED(dat_evd_modify_upcall(evd, DAT_UPCALL_MANY, &upcall, 2),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG(4));
	OK(dat_evd_query(evd, 0, &param));
	SAME(param.upcall_policy, DAT_UPCALL_DISABLE);
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_MANY, &upcall, DAT_UPCALL_INVOC_ANY));
	OK(dat_evd_query(evd, 0, &param));
	SAME(param.upcall_policy, DAT_UPCALL_MANY);
	SAME(param.evd_qlen, 4);
	SAME(param.evd_flags, DAT_EVD_SOFTWARE_FLAG);
	EXPECT(param.ia_handle == ia);
	/* An EVD has upcalls or a waiter. */
	REFUSED(dat_evd_wait(evd, 0, 1, &event, NULL), DAT_INVALID_STATE,
		DAT_INVALID_STATE_EVD_UNWAITABLE);
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME, DAT_UPCALL_INVOC_ANY));
	OK(dat_evd_query(evd, 0, &param));
	SAME(param.upcall_policy, DAT_UPCALL_TEARDOWN);
	REFUSED(dat_evd_wait(evd, 0, 1, &event, NULL), DAT_TIMEOUT_EXPIRED, 0);
	return 0;
}

static int wait_for_event(unsigned int number)
{
	DAT_EVENT event;

	OK(dat_evd_wait(evd, PATIENCE_US, 1, &event, NULL));
	SAME(number_of(&event), 7);
	return 0;
}

static int upcall_refused_during_wait(void)
{
	struct ktest_thread waiter;
	DAT_RETURN ret;

	TRY(begin(4, DAT_UPCALL_DISABLE));
	TRY(ktest_start(&waiter, wait_for_event, 0));
	msleep(QUIET_MS);
	ret = dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_SAME,
				    DAT_UPCALL_INVOC_ANY);
	OK(post_number(evd, 7));
	TRY(ktest_join(&waiter));
	SAME(ret, DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_WAITER);
	SAME(calls(), 0);
	return 0;
}

/* Posts another event in each upcall, without end. Used after more events than a budget. */
static void bring_another(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	atomic_inc(&seen.calls);
	post_number(event->evd_handle, number_of(event) + 1);
}

static int upcall_budget(void)
{
	const DAT_UPCALL_OBJECT endless = { .upcall_func = bring_another };
	unsigned long number;
	DAT_EVD_HANDLE other;

	TRY(begin(EVENTS, DAT_UPCALL_DISABLE));
	for (number = 0; number < EVENTS; number++)
		OK(post_number(evd, number));
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_SAME,
				 DAT_UPCALL_INVOC_ANY));
	UNTIL(calls() == EVENTS);
	TRY(each_once());
	EXPECT(!seen.overtaken);
	TRY(make_evd(4, DAT_UPCALL_SINGLE_INSTANCE, &endless, &other));
	OK(post_number(other, 0));
	UNTIL(calls() > EVENTS + 1000);
	OK(dat_evd_modify_upcall(other, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
				 DAT_UPCALL_INVOC_ANY));
	return 0;
}

const struct ktest upcall_tests[] = {
	{ "upcall_single_instance", upcall_single_instance },
	{ "upcall_many", upcall_many },
	{ "upcall_notify", upcall_notify },
	{ "upcall_disable", upcall_disable },
	{ "upcall_bad_arguments", upcall_bad_arguments },
	{ "upcall_refused_during_wait", upcall_refused_during_wait },
	{ "upcall_budget", upcall_budget },
	{}
};

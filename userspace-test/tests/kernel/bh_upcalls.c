// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests upcalls in soft interrupts, with software events. */
#include <linux/bottom_half.h>
#include <linux/preempt.h>
#include <linux/string.h>

#include "ktest.h"

#define EVENTS	4000
#define BUDGET	8
/* Events on each EVD of the test of the budget: twelve runs, and one of four events. */
#define QUEUED	(12 * BUDGET + 4)

/* Observations of a test's upcalls. */
static struct {
	atomic_t calls, running, strange, outside, ended;
	u8 times[EVENTS];
	int last[POSTERS];
	/* The EVD of each upcall, in their order. */
	u8 order[2 * QUEUED];
	/* Codes of calls that an upcall must not make. */
	DAT_RETURN refused[5];
	bool is_open;
} seen;

static DAT_EVD_HANDLE evds[2];
#define evd	evds[0]

static void enter(void)
{
	if (in_task() || !in_serving_softirq())
		atomic_inc(&seen.outside);
	if (atomic_inc_return(&seen.running) != 1)
		atomic_inc(&seen.strange);
}

static void leave(void)
{
	atomic_dec(&seen.running);
	/* Pairs with calls(), so that its caller reads the observations of this upcall. */
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
	    number >= EVENTS || (int)number <= seen.last[number % POSTERS]) {
		atomic_inc(&seen.strange);
		return;
	}
	WRITE_ONCE(seen.times[number], seen.times[number] + 1);
	seen.last[number % POSTERS] = number;
}

static void happened(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	enter();
	account(event);
	leave();
}

/* Dequeues all events, without one of its own. */
static void take_all(void *instance, const DAT_EVENT *none, DAT_BOOLEAN more)
{
	DAT_EVENT event;

	enter();
	if (none)
		atomic_inc(&seen.strange);
	while (!dat_evd_dequeue(evd, &event))
		account(&event);
	leave();
}

static int begin(DAT_COUNT qlen, DAT_UPCALL_POLICY policy, DAT_UPCALL_FUNC function)
{
	const DAT_UPCALL_OBJECT upcall = { .upcall_func = function };

	memset(&seen, 0, sizeof(seen));
	memset(seen.last, -1, sizeof(seen.last));
	OK(kdapl_evd_create_bh(ia, qlen, policy, &upcall, BUDGET, DAT_EVD_SOFTWARE_FLAG, &evd));
	return 0;
}

/* Posts all numbers from several threads, and waits until each was taken once. */
static int storm(void)
{
	unsigned int number;

	TRY(post_from_threads(evd, EVENTS));
	for (number = 0; number < EVENTS; number++)
		UNTIL(READ_ONCE(seen.times[number]) == 1);
	UNTIL(!atomic_read(&seen.running));
	SAME(atomic_read(&seen.strange), 0);
	SAME(atomic_read(&seen.outside), 0);
	return 0;
}

static int bh_single_instance(void)
{
	TRY(begin(256, DAT_UPCALL_SINGLE_INSTANCE, happened));
	TRY(storm());
	UNTIL(calls() == EVENTS);
	return 0;
}

static int bh_notify(void)
{
	DAT_EVENT event;

	TRY(begin(256, DAT_UPCALL_NOTIFY, take_all));
	TRY(storm());
	REFUSED(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY, 0);
	return 0;
}

/* Changes of the policy and of the queue length keep the events, in their order. */
static int bh_changes(void)
{
	DAT_EVENT event;

	TRY(begin(8, DAT_UPCALL_DISABLE, happened));
	OK(post_number(evd, 0));
	OK(post_number(evd, 1));
	OK(post_number(evd, 2));
	OK(dat_evd_resize(evd, 1024));
	REFUSED(dat_evd_resize(evd, 1), DAT_INVALID_STATE, 0);
	msleep(QUIET_MS);
	SAME(calls(), 0);
	OK(dat_evd_wait(evd, PATIENCE_US, 1, &event, NULL));
	SAME(number_of(&event), 0);
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_SAME,
				 DAT_UPCALL_INVOC_ANY));
	UNTIL(calls() == 2);
	EXPECT(seen.times[1] == 1 && seen.times[2] == 1);
	REFUSED(dat_evd_wait(evd, 0, 1, &event, NULL), DAT_INVALID_STATE,
		DAT_INVALID_STATE_EVD_UNWAITABLE);
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_DISABLE, DAT_UPCALL_SAME, DAT_UPCALL_INVOC_ANY));
	OK(post_number(evd, 4));
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_SAME,
				 DAT_UPCALL_INVOC_NEW));
	msleep(QUIET_MS);
	SAME(calls(), 2);
	OK(post_number(evd, 5));
	UNTIL(calls() == 4);
	SAME(atomic_read(&seen.strange), 0);
	SAME(atomic_read(&seen.outside), 0);
	return 0;
}

static void record(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	unsigned int call = atomic_read(&seen.calls);

	enter();
	if (call < ARRAY_SIZE(seen.order))
		seen.order[call] = event->evd_handle == evds[1];
	leave();
}

/* Two EVDs with many events have runs of the budget in turns. */
static int bh_budget(void)
{
	const DAT_UPCALL_OBJECT upcall = { .upcall_func = record };
	unsigned int i, failed = 0;

	TRY(begin(QUEUED, DAT_UPCALL_DISABLE, record));
	OK(kdapl_evd_create_bh(ia, QUEUED, DAT_UPCALL_DISABLE, &upcall, BUDGET,
			       DAT_EVD_SOFTWARE_FLAG, &evds[1]));
	/* INVOC_NEW looks for no event, so that nothing runs yet. */
	for (i = 0; i < 2; i++)
		OK(dat_evd_modify_upcall(evds[i], DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_SAME,
					 DAT_UPCALL_INVOC_NEW));
	/* No upcall is made on this processor before all events are queued. */
	local_bh_disable();
	for (i = 0; i < 2 * QUEUED; i++)
		failed += post_number(evds[i / QUEUED], i) != DAT_SUCCESS;
	local_bh_enable();
	SAME(failed, 0);
	UNTIL(calls() == 2 * QUEUED);
	for (i = 0; i < 2 * QUEUED; i++) {
		unsigned int turn = i < 24 * BUDGET ? i / BUDGET : i / 4;

		if (seen.order[i] != turn % 2)
			return FAIL("upcall %u is of EVD %u", i, seen.order[i]);
	}
	SAME(atomic_read(&seen.outside), 0);
	return 0;
}

/* Queues the next event in each upcall, without end. Refused while the EVD is being freed. */
static void bring_another(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (!READ_ONCE(seen.is_open))
		atomic_inc(&seen.ended);
	enter();
	post_number(event->evd_handle, 0);
	leave();
}

static int endless(void)
{
	TRY(begin(8, DAT_UPCALL_SINGLE_INSTANCE, bring_another));
	WRITE_ONCE(seen.is_open, true);
	OK(post_number(evd, 0));
	UNTIL(calls() > 1000);
	return 0;
}

/* No upcall follows. */
static int over(void)
{
	WRITE_ONCE(seen.is_open, false);
	msleep(QUIET_MS);
	SAME(atomic_read(&seen.ended), 0);
	SAME(atomic_read(&seen.running), 0);
	SAME(atomic_read(&seen.strange), 0);
	SAME(atomic_read(&seen.outside), 0);
	return 0;
}

static int bh_ends(void)
{
	TRY(endless());
	OK(dat_evd_modify_upcall(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME, DAT_UPCALL_INVOC_ANY));
	TRY(over());
	TRY(endless());
	OK(dat_evd_free(evd));
	TRY(over());
	TRY(endless());
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return over();
}

/* Makes the calls that would wait for this upcall, and others that sleep. */
static void do_forbidden(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EVENT none;

	enter();
	seen.refused[0] = dat_evd_free(evd);
	seen.refused[1] = dat_evd_modify_upcall(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
						DAT_UPCALL_INVOC_ANY);
	seen.refused[2] = dat_evd_modify_upcall(evd, DAT_UPCALL_DISABLE, DAT_UPCALL_SAME,
						DAT_UPCALL_INVOC_ANY);
	seen.refused[3] = dat_evd_dequeue(async_evd, &none);
	seen.refused[4] = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	leave();
}

static int bh_refused_calls(void)
{
	unsigned int i;

	TRY(begin(8, DAT_UPCALL_SINGLE_INSTANCE, do_forbidden));
	OK(post_number(evd, 0));
	UNTIL(calls() == 1);
	for (i = 0; i < 4; i++)
		SAME(seen.refused[i], DAT_CLASS_ERROR | DAT_INVALID_STATE |
		     DAT_INVALID_STATE_EVD_IN_USE);
	SAME(seen.refused[4], DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_IA_IN_USE);
	return 0;
}

static int bh_bad_arguments(void)
{
	const DAT_UPCALL_OBJECT upcall = { .upcall_func = happened };
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE other;

#define CREATE(qlen, policy, upcall, budget, flags, evd)				\
	kdapl_evd_create_bh(ia, qlen, policy, upcall, budget, flags, evd)
#define INVALID(n, call)	REFUSED(call, DAT_INVALID_PARAMETER, DAT_INVALID_ARG(n))

	INVALID(2, CREATE(0, DAT_UPCALL_DISABLE, &upcall, 1, DAT_EVD_SOFTWARE_FLAG, &other));
	INVALID(3, CREATE(4, DAT_UPCALL_MANY, &upcall, 1, DAT_EVD_SOFTWARE_FLAG, &other));
	INVALID(3, CREATE(4, 3, &upcall, 1, DAT_EVD_SOFTWARE_FLAG, &other));
	INVALID(4, CREATE(4, DAT_UPCALL_NOTIFY, NULL, 1, DAT_EVD_SOFTWARE_FLAG, &other));
	INVALID(5, CREATE(4, DAT_UPCALL_NOTIFY, &upcall, 0, DAT_EVD_SOFTWARE_FLAG, &other));
	INVALID(5, CREATE(4, DAT_UPCALL_NOTIFY, &upcall, -1, DAT_EVD_SOFTWARE_FLAG, &other));
	INVALID(5, CREATE(4, DAT_UPCALL_NOTIFY, &upcall, KDAPL_MAX_UPCALL_BUDGET + 1,
			  DAT_EVD_SOFTWARE_FLAG, &other));
	INVALID(6, CREATE(4, DAT_UPCALL_DISABLE, &upcall, 1, 0, &other));
	INVALID(7, CREATE(4, DAT_UPCALL_DISABLE, &upcall, 1, DAT_EVD_SOFTWARE_FLAG, NULL));
	OK(CREATE(4, DAT_UPCALL_NOTIFY, &upcall, KDAPL_MAX_UPCALL_BUDGET, DAT_EVD_SOFTWARE_FLAG,
		  &other));
	INVALID(2, dat_evd_modify_upcall(other, DAT_UPCALL_MANY, &upcall, DAT_UPCALL_INVOC_ANY));
	OK(dat_evd_query(other, 0, &param));
	SAME(param.upcall_policy, DAT_UPCALL_NOTIFY);
	return 0;
}

const struct ktest bh_upcall_tests[] = {
	{ "bh_single_instance", bh_single_instance },
	{ "bh_notify", bh_notify },
	{ "bh_changes", bh_changes },
	{ "bh_budget", bh_budget },
	{ "bh_ends", bh_ends },
	{ "bh_refused_calls", bh_refused_calls },
	{ "bh_bad_arguments", bh_bad_arguments },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests an agent: a function that is called for each EVD that triggers its CNO. */
#include "consumer.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static sem_t called;
static DAT_EVD_HANDLE called_for;

static void agent(DAT_PVOID instance, DAT_EVD_HANDLE evd)
{
	CHECK(instance == &called);
	called_for = evd;
	sem_post(&called);
}

static void is_called(DAT_EVD_HANDLE evd)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE / 1000000;
	CHECK(sem_timedwait(&called, &end) == 0);
	CHECK(called_for == evd);
}

/* Waits for the number of threads. A joined thread may still be in the kernel's list. */
static void threads_become(int count)
{
	for (int i = 0; threads() != count && i < PATIENCE / 1000; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	CHECK(threads() == count);
}

/* A thread that waits on the CNO besides the agent. */
static struct {
	DAT_CNO_HANDLE cno;
	sem_t returned;
	DAT_EVD_HANDLE evd;
	/* No more triggers come. A wait that begins after the last EVD has left does not end. */
	atomic_bool is_over;
} waiter;

/* Waits for a tenth of a second. Returns false once a wait fails, or no more triggers come. */
static bool wait_again(DAT_EVD_HANDLE *evd)
{
	DAT_RETURN ret;

	do
		ret = dat_cno_wait(waiter.cno, 100000, evd);
	while (DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY && !atomic_load(&waiter.is_over));
	return ret == DAT_SUCCESS;
}

static void *wait_for_triggers(void *unused)
{
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;

	while (wait_again(&evd)) {
		/* The EVD triggers again after it was found empty. */
		while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
			;
		waiter.evd = evd;
		sem_post(&waiter.returned);
	}
	return unused;
}

static void wait_returns(DAT_EVD_HANDLE evd)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE / 1000000;
	CHECK(sem_timedwait(&waiter.returned, &end) == 0);
	CHECK(waiter.evd == evd);
}

void case_agent_and_waiter(struct place *place)
{
	DAT_OS_WAIT_PROXY_AGENT proxy = { &called, agent };
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_EVD_HANDLE first, second;
	DAT_CNO_HANDLE cno;
	pthread_t thread;

	sem_init(&called, 0, 0);
	sem_init(&waiter.returned, 0, 0);
	OK(dat_cno_create(ia, proxy, &cno));
	OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &first));
	OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &second));
	waiter.cno = cno;
	CHECK(pthread_create(&thread, NULL, wait_for_triggers, NULL) == 0);
	for (int i = 0; i < 500; i++) {
		DAT_EVD_HANDLE evd = i % 3 ? first : second;

		event.event_number = DAT_SOFTWARE_EVENT;
		OK(dat_evd_post_se(evd, &event));
		/* Either may take the trigger first. */
		if (i % 2) {
			is_called(evd);
			wait_returns(evd);
		} else {
			wait_returns(evd);
			is_called(evd);
		}
	}
	CHECK(sem_trywait(&called) != 0);
	CHECK(sem_trywait(&waiter.returned) != 0);
	/* The last EVD leaves, which ends a wait. */
	atomic_store(&waiter.is_over, true);
	OK(dat_evd_free(first));
	OK(dat_evd_free(second));
	CHECK(pthread_join(thread, NULL) == 0);
	OK(dat_cno_free(cno));
	threads_become(1);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* An agent that asks for its CNO, and is called for every event. */
static DAT_CNO_HANDLE asked;

static void asking_agent(DAT_PVOID instance, DAT_EVD_HANDLE evd)
{
	DAT_CNO_PARAM param;

	nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
	OK(dat_cno_query(asked, DAT_CNO_FIELD_ALL, &param));
}

static void *replace_agents(void *unused)
{
	for (int i = 0; i < 100; i++) {
		OK(dat_cno_modify_agent(asked, (DAT_OS_WAIT_PROXY_AGENT){ NULL, asking_agent }));
		/* Sometimes long enough for a call to begin. */
		nanosleep(&(struct timespec){ .tv_nsec = i % 4 * 150000 }, NULL);
	}
	return unused;
}

/* Two threads replace agents that are being called. */
static void replaced_together(DAT_IA_HANDLE ia)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	pthread_t threads[2];
	DAT_EVD_HANDLE evd;

	OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &asked));
	OK(dat_evd_create(ia, 8, asked, DAT_EVD_SOFTWARE_FLAG, &evd));
	/* It stays queued, so that each new agent is called for it. */
	OK(dat_evd_post_se(evd, &event));
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, replace_agents, NULL) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	threads_become(2);
	OK(dat_evd_free(evd));
	OK(dat_cno_free(asked));
	threads_become(1);
}

void case_agent(struct place *place)
{
	DAT_OS_WAIT_PROXY_AGENT proxy = { &called, agent };
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_EVD_HANDLE first, second;
	DAT_CNO_PARAM param;
	DAT_CNO_HANDLE cno;

	sem_init(&called, 0, 0);
	OK(dat_cno_create(ia, proxy, &cno));
	OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	CHECK(param.proxy_type == DAT_PROXY_TYPE_AGENT &&
	      param.proxy.agent.proxy_agent_func == agent);
	OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &first));
	OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &second));
	/* Triggers many times, since the agent of other providers is called only once. */
	for (int i = 0; i < 20; i++) {
		DAT_EVD_HANDLE evd = i % 2 ? first : second;

		event.event_number = DAT_SOFTWARE_EVENT;
		OK(dat_evd_post_se(evd, &event));
		is_called(evd);
		OK(dat_evd_dequeue(evd, &event));
		CHECK(dat_evd_dequeue(evd, &event) == DAT_QUEUE_EMPTY);
	}
	threads_become(2);
	OK(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
	threads_become(1);
	event.event_number = DAT_SOFTWARE_EVENT;
	OK(dat_evd_post_se(first, &event));
	CHECK(sem_trywait(&called) != 0);
	/* The new agent is called for the pending trigger. */
	OK(dat_cno_modify_agent(cno, proxy));
	is_called(first);
	OK(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
	replaced_together(ia);
	OK(dat_cno_modify_agent(cno, proxy));
	/* Closes the adapter while the CNO has an agent. */
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	threads_become(1);
}

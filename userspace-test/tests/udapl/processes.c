// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests child processes, exits without a disconnect, reloads of the provider, and threads. */
#include "consumer.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of(pid_t child)
{
	int status;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	return status;
}

/* Uses the inherited handles, which are refused, and opens an adapter. */
static void child(struct place *place, struct side *inherited)
{
	DAT_PZ_HANDLE pz;
	struct side own;
	DAT_EVENT event;
	DAT_IA_HANDLE ia;

	REFUSED(DAT_INVALID_HANDLE, dat_pz_create(inherited->ia, &pz));
	REFUSED(DAT_INVALID_HANDLE, dat_evd_dequeue(inherited->evd, &event));
	REFUSED(DAT_INVALID_HANDLE, dat_ep_free(inherited->ep));
	REFUSED(DAT_INVALID_HANDLE, dat_lmr_free(inherited->lmr));
	ia = open_ia(place->name, DAT_FALSE);
	open_side(&own, ia);
	close_side(&own);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static void *allocate(void *stop)
{
	struct side *side = stop;

	/* Keeps libraries busy: a child that is forked now inherits locked locks. */
	while (!__atomic_load_n(&side->memory, __ATOMIC_RELAXED)) {
		DAT_PZ_HANDLE pz;

		OK(dat_pz_create(side->ia, &pz));
		OK(dat_pz_free(pz));
	}
	return NULL;
}

void case_fork(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_TRUE);
	struct side client, server, busy = { .ia = ia };
	pthread_t thread;

	open_side(&client, ia);
	open_side(&server, ia);
	connect_sides(&client, &server);
	CHECK(!pthread_create(&thread, NULL, allocate, &busy));
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (!pid) {
			child(place, &client);
			/* Exits with the libraries' exit handlers, or without. */
			if (i % 2)
				exit(0);
			_exit(0);
		}
		CHECK(status_of(pid) == 0);
	}
	__atomic_store_n(&busy.memory, place->name, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	/* The parent's connection still works. */
	post(&server, 1, 0, 64, 1);
	post(&client, 0, 64, 64, 2);
	expect(client.evd, DAT_DTO_COMPLETION_EVENT);
	expect(server.evd, DAT_DTO_COMPLETION_EVENT);
	disconnect_sides(&client, &server);
	close_side(&client);
	close_side(&server);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

void case_exit(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	struct side client, server;

	open_side(&client, ia);
	open_side(&server, ia);
	connect_sides(&client, &server);
	post(&server, 1, 0, 64, 1);
	post(&client, 0, 64, 64, 2);
	exit(0);
}

void case_reopen(struct place *place)
{
	CHECK(threads() == 1);
	for (int i = 0; i < 30; i++) {
		DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE),
			second = open_ia(place->name, DAT_FALSE);
		struct side side;

		open_side(&side, ia);
		/* The provider has no helper thread between the kernel and a waiter. */
		CHECK(threads() == 1);
		OK(dat_ia_close(second, DAT_CLOSE_GRACEFUL_FLAG));
		OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	}
	CHECK(threads() == 1);
}

static void *traffic(void *ia)
{
	struct side client, server;

	open_side(&client, ia);
	open_side(&server, ia);
	for (int round = 0; round < 3; round++) {
		connect_sides(&client, &server);
		for (DAT_UINT64 i = 0; i < 50; i++) {
			post(&server, 1, 0, 64, i);
			post(&client, 0, 64, 64, i);
			CHECK(expect(client.evd, DAT_DTO_COMPLETION_EVENT)
				.event_data.dto_completion_event_data.user_cookie.as_64 == i);
			CHECK(expect(server.evd, DAT_DTO_COMPLETION_EVENT)
				.event_data.dto_completion_event_data.user_cookie.as_64 == i);
		}
		disconnect_sides(&client, &server);
		OK(dat_ep_reset(client.ep));
		OK(dat_ep_reset(server.ep));
	}
	close_side(&client);
	close_side(&server);
	return NULL;
}

void case_safe(struct place *place)
{
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_TRUE), other = open_ia(place->name, DAT_FALSE);
	DAT_PROVIDER_ATTR attr;
	pthread_t threads[4];

	OK(dat_ia_query(other, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
#ifdef LIBKDAT
	CHECK(attr.is_thread_safe == DAT_TRUE);
#else
	CHECK(attr.is_thread_safe == DAT_FALSE);
#endif
	OK(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	CHECK(attr.is_thread_safe == DAT_TRUE);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, traffic, ia));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG));
}

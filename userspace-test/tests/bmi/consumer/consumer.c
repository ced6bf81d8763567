/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Usage: bmi-consumer kdapl://HOST:PORT
 *
 * Makes each call of bmi/bmi.h, between a server process and a client process. Prints "done", or
 * the line and the values of the first check that fails.
 */
#include <bmi/bmi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 60000
#define LONG_SIZE (1 << 20)
#define REGIONS 64

static void fail(int line, const char *what, long long got, long long wanted)
{
	fprintf(stderr, "line %d: %s is %lld, not %lld\n", line, what, got, wanted);
	exit(1);
}

#define SAME(what, wanted)                                                          \
	do {                                                                        \
		long long got = (long long)(what);                                  \
		if (got != (long long)(wanted))                                     \
			fail(__LINE__, #what, got, (long long)(wanted));            \
	} while (0)

static bmi_context_id context;

/* Takes the result of an operation, whose post has returned `posted`. */
static void finish(int posted, bmi_op_id_t id, bmi_size_t size, int error)
{
	bmi_error_code_t code = 1;
	bmi_size_t actual = -1;
	void *user = NULL;
	int count = 0;

	if (posted == 1) {
		SAME(id, 0);
		return;
	}
	SAME(posted, 0);
	SAME(BMI_test(id, &count, &code, &actual, &user, WAIT_MS, context), 1);
	SAME(count, 1);
	SAME(code, -error);
	SAME((long)user, 77);
	if (!error)
		SAME(actual, size);
}

static void send_message(BMI_addr_t peer, const void *bytes, bmi_size_t size, int tag)
{
	bmi_op_id_t id = -1;
	int posted = BMI_post_send(&id, peer, bytes, size, BMI_EXT_ALLOC, tag, (void *)77, context,
				   NULL);
	finish(posted, id, size, 0);
}

static void receive_message(BMI_addr_t peer, void *bytes, bmi_size_t room, bmi_size_t size, int tag)
{
	bmi_op_id_t id = -1;
	bmi_size_t actual = -1;
	int posted = BMI_post_recv(&id, peer, bytes, room, &actual, BMI_EXT_ALLOC, tag, (void *)77,
				   context, NULL);
	if (posted == 1)
		SAME(actual, size);
	finish(posted, id, size, 0);
}

static void fill(char *bytes, size_t size, int seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(i * 31 + i / 4096 + seed);
}

static BMI_addr_t next_unexpected(const char *text, int tag)
{
	struct BMI_unexpected_info info;
	int count = 0;

	SAME(BMI_testunexpected(1, &count, &info, WAIT_MS), 1);
	SAME(count, 1);
	SAME(info.error_code, 0);
	SAME(info.tag, tag);
	SAME(info.size, strlen(text));
	SAME(memcmp(info.buffer, text, info.size), 0);
	SAME(strncmp(BMI_addr_rev_lookup_unexpected(info.addr), "kdapl://", 8), 0);
	SAME(BMI_unexpected_free(info.addr, info.buffer), 0);
	return info.addr;
}

static void open_library(const char *listen)
{
	SAME(BMI_initialize("bmi_tcp", NULL, 0), -BMI_EINVAL);
	SAME(BMI_initialize("bmi_kdapl", NULL, BMI_INIT_SERVER), -BMI_EINVAL);
	SAME(BMI_get_info(0, BMI_CHECK_INIT, NULL), -BMI_EDEVINIT);
	SAME(BMI_initialize("bmi_kdapl", listen, listen ? BMI_INIT_SERVER : 0), 0);
	/* Further calls are counted. */
	SAME(BMI_initialize("bmi_kdapl", listen, listen ? BMI_INIT_SERVER : 0), 0);
	SAME(BMI_initialize(NULL, NULL, BMI_INIT_SERVER), 0);
	SAME(BMI_finalize(), 0);
	SAME(BMI_finalize(), 0);
	SAME(BMI_get_info(0, BMI_CHECK_INIT, NULL), 0);
	SAME(BMI_open_context(&context), 0);
}

static void serve(const char *address, int ready)
{
	char *bytes, *regions[REGIONS];
	bmi_size_t sizes[REGIONS];
	bmi_op_id_t id;
	BMI_addr_t client;
	int posted;

	open_library(address);
	SAME(write(ready, "r", 1), 1);
	client = next_unexpected("hello", 5);
	SAME(next_unexpected("list of parts", 6), client);

	bytes = BMI_memalloc(client, LONG_SIZE, BMI_RECV);
	SAME(bytes == NULL, 0);
	SAME(bytes[LONG_SIZE - 1], 0);
	/* A short message, and it returns. */
	receive_message(client, bytes, LONG_SIZE, 100, 1);
	send_message(client, bytes, 100, 2);
	/* A long one. */
	receive_message(client, bytes, LONG_SIZE, LONG_SIZE, 3);
	send_message(client, bytes, LONG_SIZE, 4);
	/* Regions into one buffer, and back into regions. */
	receive_message(client, bytes, LONG_SIZE, REGIONS * 4096, 5);
	for (int i = 0; i < REGIONS; i++) {
		regions[i] = bytes + i * 4096;
		sizes[i] = 4096;
	}
	posted = BMI_post_send_list(&id, client, (const void *const *)regions, sizes, REGIONS,
				    REGIONS * 4096, BMI_PRE_ALLOC, 6, (void *)77, context, NULL);
	finish(posted, id, REGIONS * 4096, 0);
	/* A message that is longer than its receive. */
	posted = BMI_post_recv(&id, client, bytes, 50, NULL, BMI_PRE_ALLOC, 7, (void *)77, context,
			       NULL);
	if (posted == 1)
		fail(__LINE__, "a receive that is too short", posted, 0);
	finish(posted, id, 0, BMI_EMSGSIZE);
	/* The client has gone when it has said so. */
	next_unexpected("goodbye", 8);
	SAME(BMI_memfree(client, bytes, LONG_SIZE, BMI_RECV), 0);
	SAME(BMI_memfree(client, bytes, LONG_SIZE, BMI_RECV), -BMI_EINVAL);
	BMI_close_context(context);
	SAME(BMI_finalize(), 0);
	SAME(BMI_finalize(), -BMI_EDEVINIT);
}

static void say(BMI_addr_t server, const char *text, int tag)
{
	bmi_op_id_t id = -1;
	int posted = BMI_post_sendunexpected(&id, server, text, strlen(text), BMI_EXT_ALLOC, tag,
					     (void *)77, context, NULL);
	finish(posted, id, strlen(text), 0);
}

static void look_up(const char *address, BMI_addr_t *server)
{
	char list[512];
	BMI_addr_t again;

	SAME(BMI_addr_lookup(server, "tcp://10.0.0.1:3334"), -BMI_EINVAL);
	snprintf(list, sizeof(list), "tcp://localhost:3334,%s", address);
	SAME(BMI_addr_lookup(server, list), 0);
	SAME(BMI_addr_lookup(&again, address), 0);
	SAME(again, *server);
	SAME(strcmp(BMI_addr_rev_lookup(*server), address), 0);
	SAME(BMI_addr_rev_lookup(*server + 1) == NULL, 1);
	SAME(BMI_query_addr_range(*server, address, 0), 1);
	SAME(BMI_query_addr_range(*server, "tcp://10.0.0.1", 8), -BMI_EINVAL);
	SAME(BMI_query_addr_range(*server, "kdapl://*", 0), 1);
	SAME(BMI_query_addr_range(*server, "kdapl://1*.2", 0), -BMI_EINVAL);
}

static void information(BMI_addr_t server)
{
	int value = 0;

	SAME(BMI_get_info(server, BMI_CHECK_MAXSIZE, &value), 0);
	SAME(value, 512 << 20);
	SAME(BMI_get_info(server, BMI_GET_UNEXP_SIZE, &value), 0);
	SAME(value, 16384 - 48);
	SAME(BMI_get_info(server, BMI_DROP_ADDR_QUERY, &value), 0);
	SAME(value, 0);
	SAME(BMI_get_info(server, 99, &value), -BMI_ENOSYS);
	SAME(BMI_set_info(server, BMI_FORCEFUL_CANCEL_MODE, NULL), 0);
	SAME(BMI_set_info(server, 99, NULL), -BMI_ENOSYS);
	SAME(BMI_set_info(server, BMI_INC_ADDR_REF, NULL), 0);
	SAME(BMI_set_info(server, BMI_DEC_ADDR_REF, NULL), 0);
	SAME(BMI_set_info(server + 1, BMI_INC_ADDR_REF, NULL), -BMI_EINVAL);
}

/* A list of regions that do not touch. */
static void lists(BMI_addr_t server, char *bytes)
{
	static char spread[2 * REGIONS * 4096], back[2 * REGIONS * 4096];
	char *from[REGIONS], *to[REGIONS];
	bmi_size_t sizes[REGIONS], actual;
	bmi_op_id_t id;
	int posted;

	fill(spread, sizeof(spread), 9);
	for (int i = 0; i < REGIONS; i++) {
		from[i] = spread + 2 * i * 4096;
		to[i] = back + (2 * (REGIONS - 1 - i) + 1) * 4096;
		sizes[i] = 4096;
	}
	posted = BMI_post_send_list(&id, server, (const void *const *)from, sizes, REGIONS, 1,
				    BMI_EXT_ALLOC, 5, (void *)77, context, NULL);
	SAME(posted, -BMI_EINVAL);
	posted = BMI_post_send_list(&id, server, (const void *const *)from, sizes, REGIONS,
				    REGIONS * 4096, BMI_EXT_ALLOC, 5, (void *)77, context, NULL);
	finish(posted, id, REGIONS * 4096, 0);
	posted = BMI_post_recv_list(&id, server, (void *const *)to, sizes, REGIONS, REGIONS * 4096,
				    &actual, BMI_EXT_ALLOC, 6, (void *)77, context, NULL);
	finish(posted, id, REGIONS * 4096, 0);
	for (int i = 0; i < REGIONS; i++)
		SAME(memcmp(from[i], to[i], 4096), 0);
	(void)bytes;
}

/* Several operations, whose results are taken in each way. */
static void results(BMI_addr_t server)
{
	bmi_op_id_t ids[4] = {0}, out[4];
	bmi_error_code_t errors[4];
	bmi_size_t sizes[4];
	int count, indices[4];
	void *users[4];

	/* No message has these tags. */
	for (int i = 1; i < 4; i++)
		SAME(BMI_post_recv(&ids[i], server, NULL, 0, NULL, BMI_EXT_ALLOC, 100 + i,
				   (void *)(long)i, context, NULL), 0);
	SAME(BMI_testsome(4, ids, &count, indices, errors, sizes, users, 0, context), 0);
	SAME(count, 0);
	SAME(BMI_cancel(ids[2], context), 0);
	SAME(BMI_testsome(4, ids, &count, indices, errors, sizes, users, WAIT_MS, context), 1);
	SAME(count, 1);
	SAME(indices[0], 2);
	SAME(errors[0], -BMI_ECANCEL);
	SAME((long)users[0], 2);
	SAME(BMI_test(ids[2], &count, NULL, NULL, NULL, 0, context), -BMI_EINVAL);
	SAME(count, 0);
	SAME(BMI_test(ids[3], NULL, NULL, NULL, NULL, 0, context), -BMI_EINVAL);
	SAME(BMI_cancel(ids[3], context), 0);
	SAME(BMI_cancel(ids[1], context), 0);
	SAME(BMI_testcontext(4, out, &count, errors, sizes, users, WAIT_MS, context), 1);
	SAME(count, 2);
	SAME(out[0], ids[3]);
	SAME(out[1], ids[1]);
	SAME((long)users[1], 1);
	SAME(BMI_testcontext(4, out, &count, errors, NULL, NULL, 10, context), 0);
	SAME(count, 0);
	SAME(BMI_testcontext(4, out, &count, errors, NULL, NULL, 0, context + 1), -BMI_EINVAL);
}

static void *test_other(void *other)
{
	bmi_op_id_t id;
	int count = -1;
	int ret = BMI_testcontext(1, &id, &count, NULL, NULL, NULL, -1, *(bmi_context_id *)other);

	SAME(ret, -BMI_EINVAL);
	SAME(count, 0);
	return NULL;
}

/* Contexts that are closed while another thread waits for their results. */
static void close_beside_test(BMI_addr_t server)
{
	static char bytes[100];
	bmi_context_id other;
	bmi_op_id_t id;
	pthread_t thread;

	for (int i = 0; i < 5; i++) {
		SAME(BMI_open_context(&other), 0);
		/* No message has this tag. */
		SAME(BMI_post_recv(&id, server, bytes, sizeof(bytes), NULL, BMI_EXT_ALLOC, 200,
				   NULL, other, NULL), 0);
		SAME(pthread_create(&thread, NULL, test_other, &other), 0);
		/* Mostly, the thread is in the call then. The result is the same before it. */
		usleep(20000);
		BMI_close_context(other);
		SAME(pthread_join(thread, NULL), 0);
	}
	SAME(BMI_test(id, NULL, NULL, NULL, NULL, 0, other), -BMI_EINVAL);
}

static void run_client(const char *address)
{
	static char bytes[LONG_SIZE], back[LONG_SIZE];
	const char *parts[2] = {"list ", "of parts"};
	bmi_size_t sizes[2] = {5, 8};
	bmi_op_id_t id = -1;
	BMI_addr_t server;
	int posted;

	open_library(NULL);
	look_up(address, &server);
	information(server);
	say(server, "hello", 5);
	posted = BMI_post_sendunexpected_list(&id, server, (const void *const *)parts, sizes, 2, 13,
					      BMI_EXT_ALLOC, 6, (void *)77, context, NULL);
	finish(posted, id, 13, 0);
	posted = BMI_post_sendunexpected(&id, server, bytes, 20000, BMI_EXT_ALLOC, 6, (void *)77,
					 context, NULL);
	SAME(posted, -BMI_EMSGSIZE);

	fill(bytes, sizeof(bytes), 3);
	send_message(server, bytes, 100, 1);
	receive_message(server, back, sizeof(back), 100, 2);
	SAME(memcmp(bytes, back, 100), 0);
	send_message(server, bytes, sizeof(bytes), 3);
	receive_message(server, back, sizeof(back), sizeof(back), 4);
	SAME(memcmp(bytes, back, sizeof(back)), 0);
	lists(server, bytes);
	send_message(server, bytes, 100, 7);
	results(server);
	close_beside_test(server);
	say(server, "goodbye", 8);
	/* The server is gone soon. */
	posted = BMI_post_recv(&id, server, back, 1, NULL, BMI_EXT_ALLOC, 9, (void *)77, context,
			       NULL);
	finish(posted, id, 0, BMI_ECONNRESET);
	SAME(BMI_set_info(server, BMI_DROP_ADDR, NULL), 0);
	SAME(BMI_set_info(server, BMI_DROP_ADDR, NULL), -BMI_EINVAL);
	BMI_close_context(context);
	SAME(BMI_finalize(), 0);
}

int main(int argc, char **argv)
{
	int ready[2], status;
	char byte;
	pid_t server;

	if (argc != 2) {
		fprintf(stderr, "usage: bmi-consumer kdapl://HOST:PORT\n");
		return 2;
	}
	SAME(pipe(ready), 0);
	server = fork();
	if (server == 0) {
		close(ready[0]);
		serve(argv[1], ready[1]);
		return 0;
	}
	close(ready[1]);
	SAME(read(ready[0], &byte, 1), 1);
	run_client(argv[1]);
	SAME(waitpid(server, &status, 0), server);
	SAME(status, 0);
	printf("done\n");
	return 0;
}

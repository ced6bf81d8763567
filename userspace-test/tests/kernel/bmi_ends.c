// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Consumer of kdapl_bmi.ko in the kernel: ends of connections, and the removal of the device. The
 * module loads if all is as it has to be.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sizes.h>

#include "bmi_pair.h"

#define LENGTH SZ_256K
#define TAG 5

static char *scene = "reconnect";
module_param(scene, charp, 0444);
static int stage;
module_param(stage, int, 0444);
MODULE_PARM_DESC(stage, "1: the program has to remove the device");

static void *out, *in;
/* The removal ends sessions, and the client connects again by its next post. */
static bool goes_on;

#define TRY(call)                                                                        \
	do {                                                                             \
		int failed = (call);                                                     \
		if (failed)                                                              \
			return failed;                                                   \
	} while (0)

/* Lets the server know the client. */
static int greet(void)
{
	struct bmi_unexpected_info info;
	bmi_op_id_t id;
	int posted = bmi_post_sendunexpected(client, &id, to_server, NULL, 0, 0, NULL, at_client);

	SAME(bmi_testunexpected(server, 1, NULL, &info, PATIENCE_MS), 1);
	to_client = info.addr;
	bmi_unexpected_free(info.buffer);
	SAME(error_of(client, posted, id, at_client), 0);
	return 0;
}

/* Sends a message to the server. Returns the errors of both sides. */
static void transfer(bmi_size_t length, int *sent, int *received)
{
	bmi_op_id_t send, recv;

	*received = bmi_post_recv(server, &recv, to_client, in, length, NULL, TAG, NULL, at_server);
	*sent = bmi_post_send(client, &send, to_server, out, length, TAG, NULL, at_client);
	*received = error_of(server, *received, recv, at_server);
	/* A new session knows nothing of this receive. */
	if (*received && !*sent && goes_on)
		bmi_cancel(client, send, at_client);
	*sent = error_of(client, *sent, send, at_client);
}

static int moves(bmi_size_t length)
{
	int sent, received;

	get_random_bytes(out, length);
	transfer(length, &sent, &received);
	SAME(sent, 0);
	SAME(received, 0);
	SAME(memcmp(in, out, length), 0);
	return 0;
}

/* The client ends the connection under operations, and connects again with the next post. */
static int reconnect(void)
{
	for (int i = 0; i < 5; i++) {
		bmi_op_id_t send, recv, theirs;
		bmi_addr_t before = to_client;

		TRY(greet());
		if (i)
			SAME(to_client, before);
		TRY(moves(100));
		TRY(moves(LENGTH));
		/* Nobody takes this message, and none comes for the receives. */
		SAME(bmi_post_send(client, &send, to_server, out, LENGTH, 90, NULL, at_client), 0);
		SAME(bmi_post_recv(client, &recv, to_server, out, 8, NULL, 91, NULL, at_client), 0);
		SAME(bmi_post_recv(server, &theirs, to_client, in, 8, NULL, 92, NULL, at_server),
		     0);
		SAME(bmi_set_info(client, to_server, BMI_TCP_CLOSE_SOCKET, NULL), 0);
		SAME(error_of(client, 0, send, at_client), -ECONNRESET);
		SAME(error_of(client, 0, recv, at_client), -ECONNRESET);
		SAME(error_of(server, 0, theirs, at_server), -ECONNRESET);
		/* Only the client can connect again. */
		SAME(bmi_post_recv(server, &theirs, to_client, in, 8, NULL, 92, NULL, at_server),
		     -ENOTCONN);
	}
	return greet() ?: moves(LENGTH);
}

/* A thread that waits for what does not come. */
struct waiter {
	struct completion over;
	int result;
};

static int wait_unexpected(void *data)
{
	struct bmi_unexpected_info info;
	struct waiter *it = data;

	it->result = bmi_testunexpected(server, 1, NULL, &info, PATIENCE_MS);
	kthread_complete_and_exit(&it->over, 0);
}

static bmi_context_id empty;

static int wait_context(void *data)
{
	struct waiter *it = data;
	bmi_op_id_t id;

	it->result = bmi_testcontext(server, 1, &id, NULL, NULL, NULL, NULL, PATIENCE_MS, empty);
	kthread_complete_and_exit(&it->over, 0);
}

static struct waiter waiters[2];
static int started;

static int start_waiters(void)
{
	static int (*const waits[])(void *data) = { wait_unexpected, wait_context };

	SAME(bmi_open_context(server, &empty), 0);
	for (int i = 0; i < ARRAY_SIZE(waiters); i++) {
		init_completion(&waiters[i].over);
		TRY(PTR_ERR_OR_ZERO(kthread_run(waits[i], &waiters[i], "kdapl_bmi_ends")));
		started++;
	}
	return 0;
}

/* Waits for the ends of the waiters: by the removal, or by their time-outs. */
static void join_waiters(void)
{
	while (started)
		wait_for_completion(&waiters[--started].over);
}

/* Both sides are on the device, and one of them may be removed a little earlier. */
static bool is_end(int error)
{
	return error == -ENODEV || error == -ECONNRESET;
}

static int all_is_refused(void)
{
	struct bmi_unexpected_info info;
	bmi_op_id_t id;
	int count;

	/* The client's adapter may be the last that is told. */
	SAME(bmi_testcontext(client, 1, &id, NULL, NULL, NULL, NULL, -1, at_client), -ENODEV);
	SAME(bmi_post_send(client, &id, to_server, out, 8, TAG, NULL, at_client), -ENODEV);
	SAME(bmi_post_recv(client, &id, to_server, in, 8, NULL, TAG, NULL, at_client), -ENODEV);
	SAME(bmi_post_sendunexpected(client, &id, to_server, out, 8, TAG, NULL, at_client),
	     -ENODEV);
	SAME(bmi_post_send(server, &id, to_client, out, 8, TAG, NULL, at_server), -ENODEV);
	SAME(bmi_testunexpected(server, 1, &count, &info, -1), -ENODEV);
	/* A poll, too. */
	count = 5;
	SAME(bmi_testunexpected(server, 1, &count, &info, 0), -ENODEV);
	SAME(count, 0);
	SAME(bmi_memalloc(client, 8) == NULL, 1);
	return 0;
}

/* Moves messages, beside operations that wait for their partners, until a removal ends all. */
static int until_removal(void)
{
	bmi_op_id_t send, recv, theirs;
	int sent = 0, received = 0;

	SAME(bmi_post_send(client, &send, to_server, out, LENGTH, 90, NULL, at_client), 0);
	SAME(bmi_post_recv(client, &recv, to_server, out, 8, NULL, 91, NULL, at_client), 0);
	SAME(bmi_post_recv(server, &theirs, to_client, in, 8, NULL, 92, NULL, at_server), 0);
	WRITE_ONCE(stage, 1);
	while (!sent && !received)
		transfer(LENGTH, &sent, &received);
	SAME(is_end(sent) || !sent || (goes_on && sent == -ECANCELED), 1);
	SAME(is_end(received) || !received || received == -ENOTCONN, 1);
	SAME(is_end(error_of(client, 0, send, at_client)), 1);
	SAME(is_end(error_of(client, 0, recv, at_client)), 1);
	SAME(is_end(error_of(server, 0, theirs, at_server)), 1);
	return 0;
}

/* One of two devices is removed. The next messages take the other one. */
static int one_of_two(void)
{
	bmi_addr_t before;

	TRY(greet());
	before = to_client;
	TRY(moves(LENGTH));
	goes_on = true;
	TRY(until_removal());
	TRY(greet());
	SAME(to_client, before);
	TRY(moves(1));
	return moves(LENGTH);
}

static int removal(void)
{
	TRY(greet());
	TRY(moves(LENGTH));
	TRY(start_waiters());
	TRY(until_removal());
	join_waiters();
	for (int i = 0; i < ARRAY_SIZE(waiters); i++)
		SAME(waiters[i].result, -ENODEV);
	return all_is_refused();
}

static int run(void)
{
	int ret = -ENOMEM;

	out = bmi_memalloc(client, LENGTH);
	in = bmi_memalloc(server, LENGTH);
	if (out && in)
		ret = !strcmp(scene, "removal")	   ? removal() :
		      !strcmp(scene, "one_of_two") ? one_of_two() :
						     reconnect();
	join_waiters();
	close_contexts();
	return ret;
}

static int __init kdapl_bmi_ends_init(void)
{
	return with_pair(run);
}

static void __exit kdapl_bmi_ends_exit(void)
{
}

module_init(kdapl_bmi_ends_init);
module_exit(kdapl_bmi_ends_exit);
MODULE_DESCRIPTION("Test of kdapl_bmi.ko: ends of connections, and the removal of the device");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS("KDAPL_BMI");

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Consumer of kdapl_bmi.ko in the kernel: messages over several connections, and the end of these
 * amid messages. The module loads if all is as it has to be.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sizes.h>

#include "bmi_pair.h"

#define MESSAGES 60
#define MOST 40000
/* Messages amid which the connections end, and their length. They share their memory. */
#define LONG 6
#define LENGTH SZ_1M
#define TAG 5
/* Ends amid messages, and attempts at each. */
#define ENDS 10
#define ATTEMPTS 1000

static int stage;
module_param(stage, int, 0644);
MODULE_PARM_DESC(stage, "1: the program counts the connections, and sets 2");

static void *out, *in;
static bmi_size_t lengths[MESSAGES];
static bmi_op_id_t sends[MESSAGES], recvs[MESSAGES];
static int sent[MESSAGES], received[MESSAGES];

#define TRY(call)                                                                        \
	do {                                                                             \
		int failed = (call);                                                     \
		if (failed)                                                              \
			return failed;                                                   \
	} while (0)

/* An end of a connection: an instance, its peer, and its context. */
struct end {
	struct bmi *bmi;
	bmi_addr_t peer;
	bmi_context_id context;
};

/* Lets the server know the client, and connects. */
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

/* Waits until the program has counted the connections. */
static int all_are_counted(void)
{
	WRITE_ONCE(stage, 1);
	for (int i = 0; i < PATIENCE_MS && READ_ONCE(stage) == 1; i++)
		msleep(1);
	SAME(stage, 2);
	return 0;
}

/* Messages of one tag arrive in order, whatever their lengths, and each has its bytes. */
static int in_order(const struct end *from, const struct end *to)
{
	get_random_bytes(out, MESSAGES * MOST);
	memset(in, 0, MESSAGES * MOST);
	for (int i = 0; i < MESSAGES; i++) {
		lengths[i] = get_random_u32_inclusive(1, MOST);
		sent[i] = bmi_post_send(from->bmi, &sends[i], from->peer, out + i * MOST,
					lengths[i], TAG, NULL, from->context);
		received[i] = bmi_post_recv(to->bmi, &recvs[i], to->peer, in + i * MOST, MOST,
					    NULL, TAG, NULL, to->context);
	}
	for (int i = 0; i < MESSAGES; i++) {
		SAME(error_of(to->bmi, received[i], recvs[i], to->context), 0);
		SAME(error_of(from->bmi, sent[i], sends[i], from->context), 0);
		SAME(memcmp(out + i * MOST, in + i * MOST, lengths[i]), 0);
		SAME(memchr_inv(in + i * MOST + lengths[i], 0, MOST - lengths[i]) == NULL, 1);
	}
	return 0;
}

static bool is_end(int error)
{
	return !error || error == -ECONNRESET;
}

/* Waits until the first bytes of a message are there. */
static int has_begun(void)
{
	unsigned long end = jiffies + msecs_to_jiffies(PATIENCE_MS);

	/* The device writes them. */
	while (!READ_ONCE(*(u64 *)in)) {
		SAME(time_after(jiffies, end), 0);
		usleep_range(1, 5);
	}
	return 0;
}

static void post_long(void)
{
	for (int i = 0; i < LONG; i++) {
		received[i] = bmi_post_recv(server, &recvs[i], to_client, in, LENGTH, NULL, TAG,
					    NULL, at_server);
		sent[i] = bmi_post_send(client, &sends[i], to_server, out, LENGTH, TAG, NULL,
					at_client);
	}
}

/*
 * The client ends the connections when messages that are divided over them have begun. Sets @amid
 * if the end has come before the last one had arrived.
 */
static int end_of_messages(bool *amid)
{
	memset(in, 0, LENGTH);
	post_long();
	TRY(has_begun());
	SAME(bmi_set_info(client, to_server, BMI_TCP_CLOSE_SOCKET, NULL), 0);
	for (int i = 0; i < LONG; i++) {
		int gone = error_of(client, sent[i], sends[i], at_client);
		int got = error_of(server, received[i], recvs[i], at_server);

		SAME(is_end(gone), 1);
		SAME(is_end(got), 1);
		/* A receive that succeeds has all bytes. */
		if (!got)
			SAME(memcmp(in, out, LENGTH), 0);
		*amid |= got;
	}
	return 0;
}

/* Ends connections until an end has come amid messages. */
static int end_amid(void)
{
	bool amid = false;

	get_random_bytes(out, LENGTH);
	*(u64 *)out |= 1;
	for (int i = 0; i < ATTEMPTS && !amid; i++) {
		TRY(end_of_messages(&amid));
		TRY(greet());
	}
	SAME(amid, 1);
	return 0;
}

static int checks(void)
{
	TRY(greet());
	TRY(all_are_counted());
	for (int i = 0; i < ENDS; i++) {
		struct end here = { client, to_server, at_client };
		struct end there = { server, to_client, at_server };

		if (i % 5 == 0) {
			TRY(in_order(&here, &there));
			TRY(in_order(&there, &here));
		}
		TRY(end_amid());
	}
	return 0;
}

static int run(void)
{
	int ret = -ENOMEM;

	out = bmi_memalloc(client, MESSAGES * MOST);
	in = bmi_memalloc(server, MESSAGES * MOST);
	if (out && in)
		ret = checks();
	close_contexts();
	return ret;
}

static int __init kdapl_bmi_rails_init(void)
{
	return with_pair(run);
}

static void __exit kdapl_bmi_rails_exit(void)
{
}

module_init(kdapl_bmi_rails_init);
module_exit(kdapl_bmi_rails_exit);
MODULE_DESCRIPTION("Test of kdapl_bmi.ko: messages over several connections");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS("KDAPL_BMI");

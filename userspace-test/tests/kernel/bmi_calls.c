// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Consumer of kdapl_bmi.ko in the kernel: wrong arguments of each call, lists of fragments, and
 * messages of 16 MiB. The module loads if all is as it has to be.
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sizes.h>

#include "bmi_pair.h"

/* Of more fragments than one message to the peer can describe, too long to be copied as short. */
#define FRAGMENTS 1100
#define FRAGMENT SZ_16K
#define MEMORY (2L * FRAGMENTS * FRAGMENT)
#define TAG 5

static void *starts[2][FRAGMENTS];
static bmi_size_t sizes[2][FRAGMENTS];

static int wrong_opens(void)
{
	static const struct bmi_options wrong[] = {
		{ .rails = 5 },
		{ .rails = 257 },
		{ .push = 2 },
	};

	for (int i = 0; i < ARRAY_SIZE(wrong); i++)
		SAME(PTR_ERR(bmi_open_with(adapter, NULL, &wrong[i])), -EINVAL);
	SAME(PTR_ERR(bmi_open(NULL, NULL)), -EINVAL);
	SAME(PTR_ERR(bmi_open("no_device", NULL)), -ENODEV);
	SAME(PTR_ERR(bmi_open(adapter, "tcp://10.0.0.1:1")), -EINVAL);
	SAME(PTR_ERR(bmi_open(adapter, "kdapl://host:1")), -EINVAL);
	SAME(PTR_ERR(bmi_open(adapter, "kdapl://10.7.0.1+:1")), -EINVAL);
	SAME(PTR_ERR(bmi_open("a,b,c,d,e", NULL)), -EINVAL);
	SAME(PTR_ERR(bmi_open(adapter, listen)), -EBUSY);
	SAME(bmi_open_context(NULL, &at_client), -EINVAL);
	SAME(bmi_open_context(client, NULL), -EINVAL);
	bmi_close(NULL);
	bmi_close_context(NULL, 0);
	bmi_close_context(client, BMI_MAX_CONTEXTS);
	return 0;
}

static int wrong_posts(void *memory)
{
	const void *list[2] = { memory, NULL };
	bmi_size_t lengths[2] = { 8, 8 }, negative[2] = { 16, -8 };
	bmi_size_t most;
	bmi_op_id_t id;

	SAME(bmi_post_send(NULL, &id, to_server, memory, 8, 1, NULL, at_client), -EINVAL);
	SAME(bmi_post_send(client, NULL, to_server, memory, 8, 1, NULL, at_client), -EINVAL);
	SAME(bmi_post_send(client, &id, to_server + 1, memory, 8, 1, NULL, at_client), -EINVAL);
	SAME(bmi_post_send(client, &id, to_server, NULL, 8, 1, NULL, at_client), -EINVAL);
	SAME(bmi_post_send(client, &id, to_server, memory, -8, 1, NULL, at_client), -EINVAL);
	SAME(bmi_post_send(client, &id, to_server, memory, 8, 1, NULL, at_client + 1), -EINVAL);
	SAME(bmi_post_recv(client, &id, to_server, memory, 8, NULL, 1, NULL, -1), -EINVAL);
	SAME(bmi_post_recv(client, &id, to_server, memory, 8, NULL, 1, NULL, BMI_MAX_CONTEXTS),
	     -EINVAL);
	SAME(bmi_post_send_list(client, &id, to_server, NULL, lengths, 2, 16, 1, NULL, at_client),
	     -EINVAL);
	SAME(bmi_post_send_list(client, &id, to_server, list, NULL, 2, 16, 1, NULL, at_client),
	     -EINVAL);
	SAME(bmi_post_send_list(client, &id, to_server, list, lengths, -1, 8, 1, NULL, at_client),
	     -EINVAL);
	SAME(bmi_post_send_list(client, &id, to_server, list, lengths, 1, 9, 1, NULL, at_client),
	     -EINVAL);
	SAME(bmi_post_send_list(client, &id, to_server, list, lengths, 2, 16, 1, NULL, at_client),
	     -EINVAL);
	SAME(bmi_post_send_list(client, &id, to_server, list, negative, 2, 8, 1, NULL, at_client),
	     -EINVAL);
	SAME(bmi_get_info(client, to_server, BMI_GET_UNEXP_SIZE, &id), 0);
	most = *(int *)&id + 1;
	SAME(bmi_post_sendunexpected(client, &id, to_server, memory, most, 1, NULL, at_client),
	     -EMSGSIZE);
	/* It is refused before anything looks at its bytes. */
	SAME(bmi_post_send(client, &id, to_server, memory, SZ_512M + 1, 1, NULL, at_client),
	     -EMSGSIZE);
	return 0;
}

static int wrong_tests(void)
{
	struct bmi_unexpected_info info;
	bmi_op_id_t ids[1] = { 12345 };
	int count = -1;

	SAME(bmi_test(NULL, 1, &count, NULL, NULL, NULL, 0, at_client), -EINVAL);
	SAME(count, 0);
	SAME(bmi_test(client, 12345, &count, NULL, NULL, NULL, 0, at_client), -EINVAL);
	SAME(bmi_test(client, 0, &count, NULL, NULL, NULL, 0, at_client), 0);
	SAME(bmi_test(client, 12345, &count, NULL, NULL, NULL, 0, -1), -EINVAL);
	SAME(bmi_testsome(client, 0, ids, &count, NULL, NULL, NULL, NULL, 0, at_client), -EINVAL);
	SAME(bmi_testsome(client, -1, ids, &count, NULL, NULL, NULL, NULL, 0, at_client), -EINVAL);
	SAME(bmi_testsome(client, 1, NULL, &count, NULL, NULL, NULL, NULL, 0, at_client), -EINVAL);
	SAME(bmi_testsome(client, 1, ids, &count, NULL, NULL, NULL, NULL, 0, at_client), -EINVAL);
	SAME(bmi_testcontext(client, -1, ids, &count, NULL, NULL, NULL, 0, at_client), -EINVAL);
	SAME(bmi_testcontext(client, 1, ids, &count, NULL, NULL, NULL, 0, at_client + 1), -EINVAL);
	SAME(bmi_testcontext(NULL, 1, ids, &count, NULL, NULL, NULL, 0, at_client), -EINVAL);
	SAME(bmi_testunexpected(client, -1, &count, &info, 0), -EINVAL);
	SAME(bmi_testunexpected(client, 1, &count, NULL, 0), -EINVAL);
	SAME(bmi_testunexpected(NULL, 1, &count, &info, 0), -EINVAL);
	SAME(bmi_cancel(client, 12345, at_client), -EINVAL);
	SAME(bmi_cancel(NULL, 12345, at_client), -EINVAL);
	return 0;
}

static int wrong_information(void *memory)
{
	char text[80];
	int value;

	SAME(bmi_memalloc(NULL, 8) == NULL, 1);
	SAME(bmi_memalloc(client, 0) == NULL, 1);
	SAME(bmi_memalloc(client, -1) == NULL, 1);
	SAME(bmi_memalloc(client, 1LL << 31) == NULL, 1);
	SAME(bmi_memfree(NULL, memory), -EINVAL);
	SAME(bmi_memfree(client, memory + 1), -EINVAL);
	SAME(bmi_memfree(client, NULL), -EINVAL);
	SAME(bmi_set_info(NULL, to_server, BMI_INC_ADDR_REF, NULL), -EINVAL);
	SAME(bmi_set_info(client, to_server + 1, BMI_INC_ADDR_REF, NULL), -EINVAL);
	SAME(bmi_set_info(client, to_server, 99, NULL), -EINVAL);
	SAME(bmi_get_info(NULL, to_server, BMI_CHECK_MAXSIZE, &value), -EINVAL);
	SAME(bmi_get_info(client, to_server, 99, &value), -EINVAL);
	SAME(bmi_get_info(client, to_server, BMI_CHECK_MAXSIZE, NULL), -EINVAL);
	SAME(bmi_get_info(client, to_server, BMI_CHECK_MAXSIZE, &value), 0);
	SAME(value, SZ_512M);
	SAME(bmi_addr_lookup(NULL, &to_client, listen), -EINVAL);
	SAME(bmi_addr_lookup(client, NULL, listen), -EINVAL);
	SAME(bmi_addr_lookup(client, &to_client, NULL), -EINVAL);
	SAME(bmi_addr_lookup(client, &to_client, "tcp://10.0.0.1:1"), -EINVAL);
	SAME(bmi_addr_lookup(client, &to_client, "kdapl://10.7.0.1+host:1"), -EINVAL);
	SAME(bmi_addr_lookup(client, &to_client, "kdapl://[::1]+[::2]+[::3]+[::4]+[::5]:1"),
	     -EINVAL);
	SAME(bmi_addr_rev_lookup(NULL, to_server, text, sizeof(text)), -EINVAL);
	SAME(bmi_addr_rev_lookup(client, to_server + 1, text, sizeof(text)), -EINVAL);
	SAME(bmi_addr_rev_lookup(client, to_server, NULL, sizeof(text)), -EINVAL);
	SAME(bmi_addr_rev_lookup(client, to_server, text, 5), -EINVAL);
	SAME(bmi_addr_rev_lookup(client, to_server, text, sizeof(text)), 0);
	SAME(strcmp(text, listen), 0);
	return 0;
}

static int finish(struct bmi *bmi, int posted, bmi_op_id_t id, bmi_context_id context,
		  bmi_size_t length)
{
	bmi_size_t actual = length;
	bmi_error_code_t error = 0;

	if (!posted)
		posted = bmi_test(bmi, id, NULL, &error, &actual, NULL, PATIENCE_MS, context);
	SAME(posted, 1);
	SAME(error, 0);
	SAME(actual, length);
	return 0;
}

/* Describes fragments of memory with gaps between them, the last one first. */
static bmi_size_t spread(int list, void *memory, int count, size_t size)
{
	for (int i = 0; i < count; i++) {
		starts[list][i] = memory + 2 * (count - 1 - i) * size;
		sizes[list][i] = size;
	}
	return (bmi_size_t)count * size;
}

static int greet(void)
{
	struct bmi_unexpected_info info;
	bmi_op_id_t id;
	int posted = bmi_post_sendunexpected(client, &id, to_server, NULL, 0, 0, NULL, at_client);

	SAME(bmi_testunexpected(server, 1, NULL, &info, PATIENCE_MS), 1);
	to_client = info.addr;
	bmi_unexpected_free(info.buffer);
	return finish(client, posted, id, at_client, 0);
}

/* Sends `count` fragments into `into` ones, which may have more room. */
static int transfer(void *out, int count, void *in, int into, size_t size)
{
	bmi_size_t length = spread(0, out, count, size), room = spread(1, in, into, size);
	bmi_op_id_t send, recv;
	int sent, received;

	get_random_bytes(out, 2 * count * size);
	memset(in, 0, 2 * into * size);
	received = bmi_post_recv_list(server, &recv, to_client, starts[1], sizes[1], into, room,
				      NULL, TAG, NULL, at_server);
	sent = bmi_post_send_list(client, &send, to_server, (const void *const *)starts[0],
				  sizes[0], count, length, TAG, NULL, at_client);
	received = finish(server, received, recv, at_server, length);
	sent = finish(client, sent, send, at_client, length);
	if (sent || received)
		return sent ?: received;
	for (int i = 0; i < count; i++)
		SAME(memcmp(starts[0][i], starts[1][i], size), 0);
	return 0;
}

static int transfers(void *out, void *in)
{
	int ret = transfer(out, 64, in, 64, 300);

	ret = ret ?: transfer(out, 64, in, 64, SZ_4K);
	ret = ret ?: transfer(out, 3, in, FRAGMENTS, FRAGMENT);
	ret = ret ?: transfer(out, FRAGMENTS, in, FRAGMENTS, FRAGMENT);
	return ret ?: transfer(out, 1, in, 1, SZ_16M);
}

static int checks(void *registered, void *other, void *at_server_memory)
{
	int ret = wrong_opens() ?: wrong_posts(registered) ?: wrong_tests() ?:
		  wrong_information(registered) ?: greet();

	ret = ret ?: transfers(registered, at_server_memory);
	return ret ?: transfers(other, other + MEMORY);
}

static int with_memory(void)
{
	void *registered = bmi_memalloc(client, MEMORY);
	void *at_server_memory = bmi_memalloc(server, MEMORY);
	void *other = kvmalloc(2 * MEMORY, GFP_KERNEL);
	int ret = -ENOMEM;

	if (registered && at_server_memory && other)
		ret = checks(registered, other, at_server_memory);
	close_contexts();
	kvfree(other);
	return ret;
}

static int __init kdapl_bmi_calls_init(void)
{
	return with_pair(with_memory);
}

static void __exit kdapl_bmi_calls_exit(void)
{
}

module_init(kdapl_bmi_calls_init);
module_exit(kdapl_bmi_calls_exit);
MODULE_DESCRIPTION("Test of kdapl_bmi.ko: arguments, lists and long messages");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS("KDAPL_BMI");

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Makes each call of kdapl_bmi.ko with a failure of each of its allocations: the call, or its
 * operation, fails with -ENOMEM, and both succeed when they are repeated. The program that loads
 * the module has configured the allocations that may fail. The module loads if all is as it has to
 * be.
 */
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "bmi_pair.h"

/* Limits the allocations of a call. */
#define MOST 1000
#define LENGTH SZ_64K

static void *registered, *other;
/* What the call under test has made. */
static bmi_op_id_t id;
static struct bmi *opened;
static bmi_addr_t looked_up;
static bmi_context_id context;
static void *allocated, *memory;
static struct bmi_unexpected_info info;
static char text[80];
static int number;

static int none(void)
{
	return 0;
}

static int open(void)
{
	opened = bmi_open(adapter, NULL);
	return PTR_ERR_OR_ZERO(opened);
}

static int close(void)
{
	bmi_close(opened);
	return 0;
}

static int open_context(void)
{
	return bmi_open_context(client, &context);
}

static int close_context(void)
{
	bmi_close_context(client, context);
	return 0;
}

static int allocate(void)
{
	allocated = bmi_memalloc(client, LENGTH);
	return allocated ? 0 : -ENOMEM;
}

static int free_memory(void)
{
	return bmi_memfree(client, allocated);
}

static int look_up(void)
{
	return bmi_addr_lookup(client, &looked_up, listen);
}

static int forget(void)
{
	return bmi_set_info(client, looked_up, BMI_DEC_ADDR_REF, NULL);
}

static int look_up_again(void)
{
	return bmi_addr_rev_lookup(client, to_server, text, sizeof(text));
}

static int get_info(void)
{
	return bmi_get_info(client, to_server, BMI_CHECK_MAXSIZE, &number);
}

static int add_reference(void)
{
	return bmi_set_info(client, to_server, BMI_INC_ADDR_REF, NULL);
}

static int drop_reference(void)
{
	return bmi_set_info(client, to_server, BMI_DEC_ADDR_REF, NULL);
}

/* Posts of the client, whose partners the server posts without a failure. */
static int posted;

static int send_with(void *from, bmi_size_t length)
{
	posted = bmi_post_send(client, &id, to_server, from, length, 1, NULL, at_client);
	return min(posted, 0);
}

static int send_short(void)
{
	return send_with(registered, 100);
}

static int send_long(void)
{
	return send_with(registered, LENGTH);
}

static int send_unregistered(void)
{
	return send_with(other, LENGTH);
}

static int receive_with(void *into)
{
	posted = bmi_post_recv(client, &id, to_server, into, LENGTH, NULL, 2, NULL, at_client);
	return min(posted, 0);
}

static int receive(void)
{
	return receive_with(registered);
}

static int receive_unregistered(void)
{
	return receive_with(other);
}

static int send_unexpected(void)
{
	posted = bmi_post_sendunexpected(client, &id, to_server, registered, 100, 3, NULL,
					 at_client);
	return min(posted, 0);
}

/* Returns the error of the client's operation, to which the server is the partner. */
static int partner_of(bool sends, bmi_size_t length)
{
	bmi_op_id_t op;
	int theirs, error;

	if (sends)
		theirs = bmi_post_recv(server, &op, to_client, memory, LENGTH, NULL, 1, NULL,
				       at_server);
	else
		theirs = bmi_post_send(server, &op, to_client, memory, LENGTH, 2, NULL, at_server);
	error = error_of(client, posted, id, at_client);
	return error_of(server, theirs, op, at_server) ?: error;
}

static int sent_to(void)
{
	return partner_of(true, LENGTH);
}

static int received_from(void)
{
	return partner_of(false, LENGTH);
}

static int taken(void)
{
	int error = error_of(client, posted, id, at_client);

	if (error)
		return error;
	if (bmi_testunexpected(server, 1, NULL, &info, PATIENCE_MS) != 1)
		return -ETIME;
	bmi_unexpected_free(info.buffer);
	return bmi_set_info(server, info.addr, BMI_DEC_ADDR_REF, NULL);
}

/* Tests, of which each finds one result. */
static int cancelled(void)
{
	int ret = receive();

	return ret ?: bmi_cancel(client, id, at_client);
}

static int test(void)
{
	bmi_error_code_t error = 0;
	int ret = bmi_test(client, id, NULL, &error, NULL, NULL, PATIENCE_MS, at_client);

	return ret == 1 && error == -ECANCELED ? 0 : ret < 0 ? ret : -EPROTO;
}

static int test_some(void)
{
	bmi_error_code_t error = 0;
	int ret = bmi_testsome(client, 1, &id, NULL, NULL, &error, NULL, NULL, PATIENCE_MS,
			       at_client);

	return ret == 1 && error == -ECANCELED ? 0 : ret < 0 ? ret : -EPROTO;
}

static int test_context(void)
{
	bmi_error_code_t error = 0;
	int ret = bmi_testcontext(client, 1, &id, NULL, &error, NULL, NULL, PATIENCE_MS, at_client);

	return ret == 1 && error == -ECANCELED ? 0 : ret < 0 ? ret : -EPROTO;
}

static int pending(void)
{
	return receive();
}

static int cancel(void)
{
	return bmi_cancel(client, id, at_client);
}

static int announced(void)
{
	int ret = send_unexpected();

	return ret ?: error_of(client, posted, id, at_client);
}

static int test_unexpected(void)
{
	int ret = bmi_testunexpected(server, 1, NULL, &info, PATIENCE_MS);

	return ret == 1 ? 0 : ret ?: -ETIME;
}

static int lost_or_taken(void)
{
	int ret = info.error_code;

	bmi_unexpected_free(info.buffer);
	return ret ?: bmi_set_info(server, info.addr, BMI_DEC_ADDR_REF, NULL);
}

/* A call, what has to be done before it, and what ends it. */
static const struct row {
	const char *name;
	int (*before)(void), (*make)(void), (*end)(void);
} rows[] = {
	{ "bmi_open_with", none, open, close },
	{ "bmi_close", open, close, none },
	{ "bmi_open_context", none, open_context, close_context },
	{ "bmi_close_context", open_context, close_context, none },
	{ "bmi_memalloc", none, allocate, free_memory },
	{ "bmi_memfree", allocate, free_memory, none },
	{ "bmi_addr_lookup", none, look_up, forget },
	{ "bmi_addr_rev_lookup", none, look_up_again, none },
	{ "bmi_get_info", none, get_info, none },
	{ "bmi_set_info", none, add_reference, drop_reference },
	{ "bmi_cancel", pending, cancel, test },
	{ "bmi_test", cancelled, test, none },
	{ "bmi_testsome", cancelled, test_some, none },
	{ "bmi_testcontext", cancelled, test_context, none },
	{ "bmi_testunexpected", announced, test_unexpected, lost_or_taken },
	{ "bmi_post_sendunexpected_list", none, send_unexpected, taken },
	{ "bmi_post_send_list, short", none, send_short, sent_to },
	{ "bmi_post_send_list, long", none, send_long, sent_to },
	{ "bmi_post_send_list, not registered", none, send_unregistered, sent_to },
	{ "bmi_post_recv_list", none, receive, received_from },
	{ "bmi_post_recv_list, not registered", none, receive_unregistered, received_from },
};

/* Makes the call with a failure of its nth allocation. `failed` is set if it had so many. */
static int make(const struct row *row, unsigned int nth, bool *failed)
{
	int ret;

#ifdef CONFIG_FAULT_INJECTION
	current->fail_nth = nth;
	ret = row->make();
	*failed = !current->fail_nth;
	current->fail_nth = 0;
#else
	ret = row->make();
	*failed = false;
#endif
	return ret;
}

static int attempt(const struct row *row, unsigned int nth, bool *failed)
{
	int ret = row->before();

	if (!ret)
		ret = make(row, nth, failed);
	if (ret == -ENOMEM && *failed)
		ret = row->make();
	if (!ret)
		ret = row->end();
	/* The operation may have needed the memory, or the message. */
	if (ret == -ENOMEM && *failed)
		ret = row->before() ?: row->make() ?: row->end();
	if (ret)
		pr_err("kdapl_bmi_faults: %s, failure %u: %d\n", row->name, nth, ret);
	return ret;
}

/* Lets the server know the client. */
static int greet(void)
{
	int ret = announced();

	if (ret || bmi_testunexpected(server, 1, NULL, &info, PATIENCE_MS) != 1)
		return ret ?: -ETIME;
	to_client = info.addr;
	bmi_unexpected_free(info.buffer);
	return 0;
}

static int attempts(void)
{
	int ret = greet();

	for (int i = 0; !ret && i < ARRAY_SIZE(rows); i++) {
		bool failed = true;

		for (unsigned int nth = 1; !ret && failed; nth++)
			ret = nth < MOST ? attempt(&rows[i], nth, &failed) : -EOVERFLOW;
	}
	return ret;
}

static int with_memory(void)
{
	int ret = -ENOMEM;

	registered = bmi_memalloc(client, LENGTH);
	memory = bmi_memalloc(server, LENGTH);
	other = kvmalloc(LENGTH, GFP_KERNEL);
	if (registered && memory && other)
		ret = attempts();
	close_contexts();
	kvfree(other);
	return ret;
}

static int __init kdapl_bmi_faults_init(void)
{
	return with_pair(with_memory);
}

static void __exit kdapl_bmi_faults_exit(void)
{
}

module_init(kdapl_bmi_faults_init);
module_exit(kdapl_bmi_faults_exit);
MODULE_DESCRIPTION("Test of kdapl_bmi.ko: failing allocations");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS("KDAPL_BMI");

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Usage: bmi-arguments kdapl://HOST:PORT
 *
 * Passes wrong arguments to each call of bmi/bmi.h: before the library is initialized, while it is,
 * and after that. Prints "done", or the line and the values of the first check that fails.
 */
#include <bmi/bmi.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN 4711
#define MOST (512LL << 20)

#define SAME(what, wanted)                                                          \
	do {                                                                        \
		long long got = (long long)(what), right = (long long)(wanted);     \
		if (got != right) {                                                 \
			fprintf(stderr, "line %d: %s is %lld, not %lld\n", __LINE__, \
				#what, got, right);                                 \
			exit(1);                                                    \
		}                                                                   \
	} while (0)

static char bytes[64];
static bmi_context_id context;
/* The program itself. Nothing connects to it. */
static BMI_addr_t self;

/* Each call without a library. */
static void uninitialized(void)
{
	const void *list[] = { bytes };
	void *into[] = { bytes };
	struct BMI_unexpected_info info;
	bmi_size_t size = 8;
	bmi_op_id_t id = 1;
	int value, count;

	SAME(BMI_finalize(), -BMI_EDEVINIT);
	SAME(BMI_open_context(&context), -BMI_EDEVINIT);
	BMI_close_context(0);
	SAME(BMI_post_send(&id, 1, bytes, 8, 0, 1, NULL, 0, NULL), -BMI_EDEVINIT);
	SAME(BMI_post_sendunexpected(&id, 1, bytes, 8, 0, 1, NULL, 0, NULL), -BMI_EDEVINIT);
	SAME(BMI_post_recv(&id, 1, bytes, 8, NULL, 0, 1, NULL, 0, NULL), -BMI_EDEVINIT);
	SAME(BMI_post_send_list(&id, 1, list, &size, 1, 8, 0, 1, NULL, 0, NULL), -BMI_EDEVINIT);
	SAME(BMI_post_sendunexpected_list(&id, 1, list, &size, 1, 8, 0, 1, NULL, 0, NULL),
	     -BMI_EDEVINIT);
	SAME(BMI_post_recv_list(&id, 1, into, &size, 1, 8, NULL, 0, 1, NULL, 0, NULL),
	     -BMI_EDEVINIT);
	SAME(BMI_test(id, &count, NULL, NULL, NULL, 0, 0), -BMI_EDEVINIT);
	SAME(BMI_testsome(1, &id, &count, NULL, NULL, NULL, NULL, 0, 0), -BMI_EDEVINIT);
	SAME(BMI_testcontext(1, &id, &count, NULL, NULL, NULL, 0, 0), -BMI_EDEVINIT);
	SAME(BMI_testunexpected(1, &count, &info, 0), -BMI_EDEVINIT);
	SAME(BMI_cancel(id, 0), -BMI_EDEVINIT);
	SAME(BMI_memalloc(1, 8, BMI_SEND) == NULL, 1);
	SAME(BMI_memfree(1, bytes, 8, BMI_SEND), -BMI_EDEVINIT);
	SAME(BMI_unexpected_free(1, NULL), 0);
	SAME(BMI_set_info(1, BMI_INC_ADDR_REF, NULL), -BMI_EDEVINIT);
	SAME(BMI_get_info(1, BMI_CHECK_MAXSIZE, &value), -BMI_EDEVINIT);
	SAME(BMI_addr_lookup(&self, "kdapl://10.0.0.1:1"), -BMI_EDEVINIT);
	SAME(BMI_addr_rev_lookup(1) == NULL, 1);
	SAME(BMI_addr_rev_lookup_unexpected(1) == NULL, 1);
	SAME(BMI_query_addr_range(1, "kdapl://*", 0), -BMI_EDEVINIT);
}

static void initialize(const char *address)
{
	SAME(BMI_initialize(NULL, "tcp://10.0.0.1:1", BMI_INIT_SERVER), -BMI_EINVAL);
	SAME(BMI_initialize(NULL, "kdapl://", BMI_INIT_SERVER), -BMI_EINVAL);
	SAME(BMI_initialize(NULL, "kdapl://10.0.0.1:70000", BMI_INIT_SERVER), -BMI_EINVAL);
	SAME(BMI_initialize(NULL, "\xff", BMI_INIT_SERVER), -BMI_EINVAL);
	SAME(BMI_initialize("\xff", NULL, 0), -BMI_EINVAL);
	SAME(BMI_initialize("", NULL, 0), -BMI_EINVAL);
	SAME(BMI_initialize(NULL, NULL, BMI_INIT_SERVER), -BMI_EINVAL);
	SAME(BMI_initialize(NULL, address, 0), -BMI_EINVAL);
	SAME(BMI_initialize(NULL, address, BMI_INIT_SERVER), 0);
}

static void contexts(void)
{
	bmi_context_id all[BMI_MAX_CONTEXTS], more;

	SAME(BMI_open_context(NULL), -BMI_EINVAL);
	for (int i = 0; i < BMI_MAX_CONTEXTS; i++)
		SAME(BMI_open_context(&all[i]), 0);
	SAME(BMI_open_context(&more), -BMI_EBUSY);
	for (int i = 0; i < BMI_MAX_CONTEXTS; i++)
		BMI_close_context(all[i]);
	BMI_close_context(all[0]);
	BMI_close_context(-1);
	BMI_close_context(BMI_MAX_CONTEXTS);
	BMI_close_context(INT64_MAX);
	SAME(BMI_open_context(&context), 0);
}

static void addresses(const char *address)
{
	char longest[BMI_MAX_ADDR_LEN];

	SAME(BMI_addr_lookup(NULL, address), -BMI_EINVAL);
	SAME(BMI_addr_lookup(&self, NULL), -BMI_EINVAL);
	SAME(BMI_addr_lookup(&self, ""), -BMI_EINVAL);
	SAME(BMI_addr_lookup(&self, "kdapl://"), -BMI_EINVAL);
	SAME(BMI_addr_lookup(&self, "kdapl://10.0.0.1:0x1"), -BMI_EINVAL);
	SAME(BMI_addr_lookup(&self, "kdapl://[::1:7"), -BMI_EINVAL);
	SAME(BMI_addr_lookup(&self, "\xff"), -BMI_EINVAL);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "kdapl://", 8);
	longest[sizeof(longest) - 1] = 0;
	SAME(BMI_addr_lookup(&self, longest), -BMI_EINVAL);
	SAME(BMI_addr_lookup(&self, address), 0);
	for (int i = 0; i < 3; i++) {
		BMI_addr_t wrong = (BMI_addr_t[]){ 0, -1, UNKNOWN }[i];

		SAME(BMI_addr_rev_lookup(wrong) == NULL, 1);
		SAME(BMI_addr_rev_lookup_unexpected(wrong) == NULL, 1);
		SAME(BMI_query_addr_range(wrong, "kdapl://*", 0), -BMI_EINVAL);
		SAME(BMI_set_info(wrong, BMI_INC_ADDR_REF, NULL), -BMI_EINVAL);
		SAME(BMI_set_info(wrong, BMI_DEC_ADDR_REF, NULL), -BMI_EINVAL);
		SAME(BMI_set_info(wrong, BMI_DROP_ADDR, NULL), -BMI_EINVAL);
		SAME(BMI_set_info(wrong, BMI_TCP_CLOSE_SOCKET, NULL), -BMI_EINVAL);
	}
	SAME(BMI_query_addr_range(self, NULL, 0), -BMI_EINVAL);
	SAME(BMI_query_addr_range(self, "", 0), -BMI_EINVAL);
	SAME(BMI_query_addr_range(self, "kdapl://10.0.0.1", -1), -BMI_EINVAL);
	SAME(BMI_query_addr_range(self, "kdapl://10.0.0.1", INT_MAX), -BMI_EINVAL);
	SAME(BMI_set_info(self, -1, NULL), -BMI_ENOSYS);
	SAME(BMI_get_info(self, -1, bytes), -BMI_ENOSYS);
	SAME(BMI_get_info(self, BMI_CHECK_MAXSIZE, NULL), -BMI_EINVAL);
	SAME(BMI_get_info(self, BMI_GET_UNEXP_SIZE, NULL), -BMI_EINVAL);
	SAME(BMI_get_info(self, BMI_DROP_ADDR_QUERY, NULL), -BMI_EINVAL);
}

enum kind { SEND, UNEXPECTED, RECEIVE };

/* Posts a buffer, or a list of it alone. */
static int post(enum kind kind, bool listed, bmi_op_id_t *id, BMI_addr_t to, void *buffer,
		bmi_size_t size, bmi_context_id of)
{
	void *list[] = { buffer };
	const void *const *from = (const void *const *)list;

	switch (kind) {
	case SEND:
		if (!listed)
			return BMI_post_send(id, to, buffer, size, 0, 1, NULL, of, NULL);
		return BMI_post_send_list(id, to, from, &size, 1, size, 0, 1, NULL, of, NULL);
	case UNEXPECTED:
		if (!listed)
			return BMI_post_sendunexpected(id, to, buffer, size, 0, 1, NULL, of, NULL);
		return BMI_post_sendunexpected_list(id, to, from, &size, 1, size, 0, 1, NULL, of,
						    NULL);
	default:
		if (!listed)
			return BMI_post_recv(id, to, buffer, size, NULL, 0, 1, NULL, of, NULL);
		return BMI_post_recv_list(id, to, list, &size, 1, size, NULL, 0, 1, NULL, of, NULL);
	}
}

#define REFUSED(kind, error, ...)                                                   \
	do {                                                                        \
		SAME(post(kind, false, __VA_ARGS__), -(error));                     \
		SAME(post(kind, true, __VA_ARGS__), -(error));                      \
	} while (0)

static void posts(void)
{
	bmi_op_id_t id;

	for (enum kind kind = SEND; kind <= RECEIVE; kind++) {
		REFUSED(kind, BMI_EINVAL, NULL, self, bytes, 8, context);
		REFUSED(kind, BMI_EINVAL, &id, self, NULL, 8, context);
		REFUSED(kind, BMI_EINVAL, &id, self, bytes, -8, context);
		REFUSED(kind, BMI_EINVAL, &id, self, bytes, INT64_MIN, context);
		REFUSED(kind, BMI_EINVAL, &id, 0, bytes, 8, context);
		REFUSED(kind, BMI_EINVAL, &id, -1, bytes, 8, context);
		REFUSED(kind, BMI_EINVAL, &id, UNKNOWN, bytes, 8, context);
		REFUSED(kind, BMI_EINVAL, &id, self, bytes, 8, context + 1);
		REFUSED(kind, BMI_EINVAL, &id, self, bytes, 8, -1);
		REFUSED(kind, BMI_EINVAL, &id, self, bytes, 8, BMI_MAX_CONTEXTS);
		REFUSED(kind, BMI_EINVAL, &id, self, bytes, 8, INT64_MAX);
	}
	/* They are refused before anything looks at their bytes. */
	REFUSED(SEND, BMI_EMSGSIZE, &id, self, bytes, MOST + 1, context);
	REFUSED(SEND, BMI_EMSGSIZE, &id, self, bytes, INT64_MAX, context);
	REFUSED(UNEXPECTED, BMI_EMSGSIZE, &id, self, bytes, 16384 - 47, context);
	REFUSED(UNEXPECTED, BMI_EMSGSIZE, &id, self, bytes, INT64_MAX, context);
}

static void lists(void)
{
	void *list[] = { bytes, NULL };
	bmi_size_t sizes[] = { 8, 8 }, negative[] = { 16, -8 }, sum[] = { INT64_MAX, INT64_MAX };
	const struct {
		void *const *starts;
		const bmi_size_t *sizes;
		int count;
		bmi_size_t total;
	} rows[] = {
		{ NULL, sizes, 2, 16 }, { list, NULL, 2, 16 }, { list, sizes, -1, 16 },
		{ list, sizes, INT_MIN, 0 }, { list, sizes, 1, 9 }, { list, sizes, 2, 16 },
		{ list, negative, 2, 8 }, { list, sum, 2, -2 },
	};
	bmi_op_id_t id;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const void *const *from = (const void *const *)rows[i].starts;

		SAME(BMI_post_send_list(&id, self, from, rows[i].sizes, rows[i].count,
					rows[i].total, 0, 1, NULL, context, NULL), -BMI_EINVAL);
		SAME(BMI_post_sendunexpected_list(&id, self, from, rows[i].sizes, rows[i].count,
						  rows[i].total, 0, 1, NULL, context, NULL),
		     -BMI_EINVAL);
		SAME(BMI_post_recv_list(&id, self, rows[i].starts, rows[i].sizes, rows[i].count,
					rows[i].total, NULL, 0, 1, NULL, context, NULL),
		     -BMI_EINVAL);
	}
}

static void tests(void)
{
	struct BMI_unexpected_info info;
	bmi_op_id_t ids[] = { UNKNOWN, -1 }, out;
	bmi_context_id wrong[] = { context + 1, -1, BMI_MAX_CONTEXTS, INT64_MAX };
	int count = 5;

	for (int i = 0; i < 2; i++) {
		SAME(BMI_test(ids[i], &count, NULL, NULL, NULL, 0, context), -BMI_EINVAL);
		SAME(count, 0);
		SAME(BMI_testsome(1, &ids[i], &count, NULL, NULL, NULL, NULL, 0, context),
		     -BMI_EINVAL);
		/* What does not exist is taken for an operation that is over. */
		SAME(BMI_cancel(ids[i], context), 0);
	}
	SAME(BMI_test(0, &count, NULL, NULL, NULL, 0, context), -BMI_EINVAL);
	SAME(BMI_test(UNKNOWN, NULL, NULL, NULL, NULL, 0, context), -BMI_EINVAL);
	SAME(BMI_testsome(1, ids, NULL, NULL, NULL, NULL, NULL, 0, context), -BMI_EINVAL);
	SAME(BMI_testsome(1, NULL, &count, NULL, NULL, NULL, NULL, 0, context), -BMI_EINVAL);
	SAME(BMI_testsome(-1, ids, &count, NULL, NULL, NULL, NULL, 0, context), -BMI_EINVAL);
	SAME(BMI_testsome(INT_MIN, ids, &count, NULL, NULL, NULL, NULL, 0, context), -BMI_EINVAL);
	for (int i = -1; i <= 0; i++) {
		SAME(BMI_testcontext(i, &out, &count, NULL, NULL, NULL, 0, context), -BMI_EINVAL);
		SAME(BMI_testunexpected(i, &count, &info, 0), -BMI_EINVAL);
	}
	SAME(BMI_testcontext(1, &out, NULL, NULL, NULL, NULL, 0, context), -BMI_EINVAL);
	SAME(BMI_testunexpected(1, NULL, &info, 0), -BMI_EINVAL);
	SAME(BMI_testunexpected(1, &count, NULL, 0), -BMI_EINVAL);
	for (int i = 0; i < 4; i++) {
		SAME(BMI_test(UNKNOWN, &count, NULL, NULL, NULL, 0, wrong[i]), -BMI_EINVAL);
		SAME(BMI_testsome(1, ids, &count, NULL, NULL, NULL, NULL, 0, wrong[i]),
		     -BMI_EINVAL);
		SAME(BMI_testcontext(1, &out, &count, NULL, NULL, NULL, 0, wrong[i]), -BMI_EINVAL);
		SAME(BMI_cancel(UNKNOWN, wrong[i]), -BMI_EINVAL);
	}
	SAME(count, 0);
}

static void memory(void)
{
	bmi_size_t wrong[] = {
		0, -1, INT64_MIN, INT64_MAX, INT64_MAX - 4095, 1LL << 60, 1LL << 46,
	};
	void *start;

	for (int i = 0; i < 7; i++)
		SAME(BMI_memalloc(self, wrong[i], BMI_SEND) == NULL, 1);
	SAME(BMI_memfree(self, NULL, 8, BMI_SEND), -BMI_EINVAL);
	SAME(BMI_memfree(self, bytes, 8, BMI_SEND), -BMI_EINVAL);
	start = BMI_memalloc(self, 8, BMI_SEND);
	SAME(start == NULL, 0);
	SAME(BMI_memfree(self, (char *)start + 1, 7, BMI_SEND), -BMI_EINVAL);
	SAME(BMI_memfree(self, start, 8, BMI_SEND), 0);
	SAME(BMI_memfree(self, start, 8, BMI_SEND), -BMI_EINVAL);
	SAME(BMI_unexpected_free(self, NULL), 0);
}

/* Checks the numbers of errors, of either sign. */
static void numbers(void)
{
	static const struct {
		int of, wanted;
	} rows[] = {
		{ EPERM, BMI_EPERM }, { EIO, BMI_EIO }, { EAGAIN, BMI_EAGAIN },
		{ EINVAL, BMI_EINVAL }, { EDEADLK, BMI_EDEADLK }, { ENOSYS, BMI_ENOSYS },
		{ ENOMSG, BMI_ENOMSG }, { EOVERFLOW, BMI_EOVERFLOW }, { ERESTART, BMI_ERESTART },
		{ EADDRINUSE, BMI_EADDRINUSE }, { ETIMEDOUT, BMI_ETIMEDOUT },
		{ ECONNRESET, BMI_ECONNRESET }, { 0, 0 }, { ENOTCONN, ENOTCONN },
		{ BMI_EINVAL, BMI_EINVAL }, { INT_MAX, INT_MAX },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		SAME(bmi_errno_to_pvfs(rows[i].of), rows[i].wanted);
		SAME(bmi_errno_to_pvfs(-rows[i].of), -rows[i].wanted);
	}
	SAME(bmi_errno_to_pvfs(INT_MIN), INT_MIN);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: bmi-arguments kdapl://HOST:PORT\n");
		return 2;
	}
	numbers();
	uninitialized();
	initialize(argv[1]);
	contexts();
	addresses(argv[1]);
	posts();
	lists();
	tests();
	memory();
	BMI_close_context(context);
	SAME(BMI_finalize(), 0);
	uninitialized();
	printf("done\n");
	return 0;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A BMI program: a server that answers one message, and its client. docs/using.md builds it.
 *     my_program serve kdapl://10.7.0.1:7181
 *     my_program kdapl://10.7.0.1:7181
 */
#include <bmi/bmi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 10000

static bmi_context_id context;

/* Ends the program unless a call has succeeded. */
static void must(int ret, const char *call)
{
	if (ret < 0) {
		fprintf(stderr, "%s: error %#x\n", call, -ret);
		exit(1);
	}
}

#define MUST(call) must(call, #call)

/* Waits for an operation whose post has returned `posted`: 1 if it is complete already. */
static void finish(int posted, bmi_op_id_t id)
{
	bmi_error_code_t error = 0;
	int count = 1;

	must(posted, "post");
	if (posted == 0)
		MUST(BMI_test(id, &count, &error, NULL, NULL, PATIENCE_MS, context));
	must(error, "operation");
	must(count == 1 ? 0 : -BMI_ETIMEDOUT, "operation");
}

static void serve(void)
{
	struct BMI_unexpected_info request;
	int count = 0, posted;
	bmi_op_id_t id;

	while (count == 0)
		MUST(BMI_testunexpected(1, &count, &request, PATIENCE_MS));
	printf("received: %.*s\n", (int)request.size, (char *)request.buffer);
	posted = BMI_post_send(&id, request.addr, "hello", 5, BMI_EXT_ALLOC, request.tag, NULL,
			       context, NULL);
	finish(posted, id);
	BMI_unexpected_free(request.addr, request.buffer);
}

static void call(const char *address)
{
	char answer[16] = "";
	bmi_op_id_t request, receive;
	BMI_addr_t server;
	int posted, received;

	MUST(BMI_addr_lookup(&server, address));
	received = BMI_post_recv(&receive, server, answer, sizeof(answer) - 1, NULL, BMI_EXT_ALLOC,
				 1, NULL, context, NULL);
	posted = BMI_post_sendunexpected(&request, server, "are you there?", 14, BMI_EXT_ALLOC, 1,
					 NULL, context, NULL);
	finish(posted, request);
	finish(received, receive);
	printf("received: %s\n", answer);
}

int main(int argc, char **argv)
{
	int serves = argc == 3 && strcmp(argv[1], "serve") == 0;

	if (argc != 2 && !serves) {
		fprintf(stderr, "usage: %s [serve] kdapl://HOST:PORT\n", argv[0]);
		return 2;
	}
	MUST(BMI_initialize("bmi_kdapl", serves ? argv[2] : NULL, serves ? BMI_INIT_SERVER : 0));
	MUST(BMI_open_context(&context));
	if (serves)
		serve();
	else
		call(argv[1]);
	BMI_close_context(context);
	MUST(BMI_finalize());
	return 0;
}

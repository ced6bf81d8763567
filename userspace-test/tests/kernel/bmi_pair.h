/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A client and a server of kdapl_bmi.ko in one module, whose load is the test. */
#ifndef BMI_PAIR_H
#define BMI_PAIR_H

#include <linux/err.h>
#include <linux/module.h>
#include <rdma/kdapl_bmi.h>

#define PATIENCE_MS 60000

static char *adapter = "rxe0";
module_param(adapter, charp, 0444);
static char *listen;
module_param(listen, charp, 0444);
static uint rails = 1;
module_param(rails, uint, 0444);
static bool push;
module_param(push, bool, 0444);

/* From which length on a message is divided over several rails. */
#define STRIPE_FROM 8192

static struct bmi *server, *client;
static bmi_context_id at_server, at_client;
/* The server at the client, and the client at the server. */
static bmi_addr_t to_server, to_client;

#define SAME(call, wanted)                                                               \
	do {                                                                             \
		long long same_got = (call), same_right = (wanted);                      \
		if (same_got != same_right) {                                            \
			pr_err(KBUILD_MODNAME ": line %d: %s is %lld, not %lld\n",       \
			       __LINE__, #call, same_got, same_right);                   \
			return -EPROTO;                                                  \
		}                                                                        \
	} while (0)

/* Returns the error of an operation, or of its post. */
static inline int error_of(struct bmi *bmi, int posted, bmi_op_id_t id, bmi_context_id context)
{
	bmi_error_code_t error = 0;

	if (!posted)
		posted = bmi_test(bmi, id, NULL, &error, NULL, NULL, PATIENCE_MS, context);
	return posted == 1 ? error : posted ?: -ETIME;
}

/* Closes the contexts. Nothing uses the memory of their operations after this. */
static inline void close_contexts(void)
{
	bmi_close_context(client, at_client);
	bmi_close_context(server, at_server);
}

/*
 * Opens both instances, and a context of each, and calls @run, which closes the contexts. A device
 * that is removed is taken first from the client, which does not connect again then.
 */
static inline int with_pair(int (*run)(void))
{
	const struct bmi_options options = {
		.rails = rails,
		.push = push,
		.stripe_from = rails > 1 ? STRIPE_FROM : 0,
	};
	int ret;

	client = bmi_open_with(adapter, NULL, &options);
	if (IS_ERR(client))
		return PTR_ERR(client);
	server = bmi_open_with(adapter, listen, &options);
	ret = PTR_ERR_OR_ZERO(server);
	if (!ret) {
		ret = bmi_open_context(server, &at_server) ?:
		      bmi_open_context(client, &at_client) ?:
		      bmi_addr_lookup(client, &to_server, listen) ?: run();
		bmi_close(server);
	}
	bmi_close(client);
	return ret;
}

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * BMI in the kernel: a server that sends back what it receives, and its client.
 *
 * A client begins with a struct echo_request, an unexpected message. Then it sends messages of the
 * length that it has asked for, with the tag ECHO_TO_SERVER, and each comes back with the tag
 * ECHO_TO_CLIENT. The server, in one thread, posts the receive of a request's first message when it
 * takes the request, and each later operation when it takes the result of the one before.
 *
 *   modprobe kdapl_bmi_echo adapter=rxe0 listen=kdapl://10.7.0.1:7182
 *   modprobe kdapl_bmi_echo adapter=rxe0 peer=kdapl://10.7.0.1:7182 length=1000000
 *
 * The second command tests the server of the first, and fails if a byte is wrong.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/kdapl_bmi.h>

#define ECHO_TO_SERVER	1
#define ECHO_TO_CLIENT	2
#define PATIENCE_MS	30000
#define SLICE_MS	200

static char *adapter = "rxe0";
module_param(adapter, charp, 0444);
MODULE_PARM_DESC(adapter, "RDMA devices, network devices or IP addresses, separated by commas");

static char *listen;
module_param(listen, charp, 0444);
MODULE_PARM_DESC(listen, "address to serve at, kdapl://IP:PORT or kdapl://IP+IP:PORT");

static char *peer;
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "address of a server to test");

static uint length = 4096;
module_param(length, uint, 0444);
MODULE_PARM_DESC(length, "bytes of each message of the test");

static uint rounds = 10;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "messages of the test");

static bool registered = true;
module_param(registered, bool, 0444);
MODULE_PARM_DESC(registered, "messages are in memory of bmi_memalloc()");

static uint rails = 1;
module_param(rails, uint, 0444);
MODULE_PARM_DESC(rails, "connections to each peer");

static ulong stripe_from;
module_param(stripe_from, ulong, 0444);
MODULE_PARM_DESC(stripe_from, "bytes from which on a message is divided over the connections");

static bool push;
module_param(push, bool, 0444);
MODULE_PARM_DESC(push, "long messages are written by their senders");

static ulong echoed;
module_param(echoed, ulong, 0444);
MODULE_PARM_DESC(echoed, "messages that were sent back");

struct echo_request {
	__le32 length;
	__le32 rounds;
};

/* A client at the server. */
struct client {
	struct list_head list;
	bmi_addr_t addr;
	void *memory;
	u32 length;
	u32 left;
	bool sending;
};

static struct bmi *server;
static LIST_HEAD(clients);
static bmi_context_id server_context;
static struct task_struct *thread;

static struct bmi *open_instance(const char *listen_addr)
{
	const struct bmi_options options = {
		.rails = rails,
		.push = push,
		.stripe_from = stripe_from,
	};

	return bmi_open_with(adapter, listen_addr, &options);
}

static void free_client(struct bmi *bmi, struct client *it)
{
	list_del(&it->list);
	bmi_memfree(bmi, it->memory);
	bmi_set_info(bmi, it->addr, BMI_DEC_ADDR_REF, NULL);
	kfree(it);
}

/* Posts the next operation of a client. Returns 1 if it is complete already. */
static int post_next(struct bmi *bmi, struct client *it, bmi_context_id context)
{
	bmi_op_id_t id;

	if (it->sending)
		return bmi_post_send(bmi, &id, it->addr, it->memory, it->length, ECHO_TO_CLIENT,
				     it, context);
	return bmi_post_recv(bmi, &id, it->addr, it->memory, it->length, NULL, ECHO_TO_SERVER, it,
			     context);
}

/* Goes on with a client whose operation is complete. */
static void step(struct bmi *bmi, struct client *it, bmi_error_code_t error)
{
	int done;

	do {
		if (!error && it->sending) {
			echoed++;
			it->left--;
		}
		if (error || !it->left)
			return free_client(bmi, it);
		it->sending = !it->sending;
		done = post_next(bmi, it, server_context);
		error = min(done, 0);
	} while (done);
}

static void begin(struct bmi *bmi, const struct bmi_unexpected_info *message)
{
	const struct echo_request *request = message->buffer;
	struct client *it = kzalloc(sizeof(*it), GFP_KERNEL);
	int done = -EINVAL;

	if (!it) {
		bmi_set_info(bmi, message->addr, BMI_DEC_ADDR_REF, NULL);
		return;
	}
	list_add(&it->list, &clients);
	it->addr = message->addr;
	if (message->size == sizeof(*request)) {
		it->length = le32_to_cpu(request->length);
		it->left = le32_to_cpu(request->rounds);
		it->memory = bmi_memalloc(bmi, it->length);
		if (it->memory && it->left)
			done = post_next(bmi, it, server_context);
	}
	if (done)
		step(bmi, it, min(done, 0));
}

static int serve(void *data)
{
	struct bmi_unexpected_info message;
	struct client *it, *next;
	bmi_error_code_t error;
	bmi_op_id_t id;
	void *client;
	int count, taken;

	while (!kthread_should_stop()) {
		/* A request waits for the end of a slice at most. */
		if (bmi_testunexpected(server, 1, &count, &message, 0) > 0) {
			if (message.error_code)
				bmi_set_info(server, message.addr, BMI_DEC_ADDR_REF, NULL);
			else
				begin(server, &message);
			bmi_unexpected_free(message.buffer);
			continue;
		}
		taken = bmi_testcontext(server, 1, &id, &count, &error, NULL, &client, SLICE_MS,
					server_context);
		if (taken > 0)
			step(server, client, error);
		/* Nothing comes after the removal of the device. */
		if (taken == -ENODEV)
			msleep(SLICE_MS);
	}
	/* Their operations are over then. */
	bmi_close_context(server, server_context);
	list_for_each_entry_safe(it, next, &clients, list)
		free_client(server, it);
	return 0;
}

/* Waits for an operation, which has to succeed with this number of bytes. */
static int finish(struct bmi *bmi, int posted, bmi_op_id_t id, bmi_context_id context,
		  bmi_size_t size)
{
	bmi_error_code_t error = 0;
	bmi_size_t actual = size;
	int ret = posted;

	if (!posted)
		ret = bmi_test(bmi, id, NULL, &error, &actual, NULL, PATIENCE_MS, context);
	if (ret <= 0)
		return ret ?: -ETIMEDOUT;
	return error ?: actual == size ? 0 : -EIO;
}

static int test_round(struct bmi *bmi, bmi_addr_t addr, bmi_context_id context, u8 *out, u8 *in)
{
	bmi_op_id_t send, recv;
	int sent, received;

	get_random_bytes(out, length);
	memset(in, 0, length);
	received = bmi_post_recv(bmi, &recv, addr, in, length, NULL, ECHO_TO_CLIENT, NULL, context);
	sent = bmi_post_send(bmi, &send, addr, out, length, ECHO_TO_SERVER, NULL, context);
	/* Both are waited for: their memory is in use until then. */
	sent = finish(bmi, sent, send, context, length);
	received = finish(bmi, received, recv, context, length);
	if (sent || received)
		return sent ?: received;
	return memcmp(out, in, length) ? -EBADMSG : 0;
}

static int test_rounds(struct bmi *bmi, bmi_addr_t addr, bmi_context_id context, u8 *out, u8 *in)
{
	/* After an error the operation may be in progress until the context is closed. */
	static struct echo_request request;
	bmi_op_id_t id;
	int ret, round;

	request.length = cpu_to_le32(length);
	request.rounds = cpu_to_le32(rounds);
	ret = bmi_post_sendunexpected(bmi, &id, addr, &request, sizeof(request), 0, NULL, context);
	ret = finish(bmi, ret, id, context, sizeof(request));
	for (round = 0; !ret && round < rounds; round++)
		ret = test_round(bmi, addr, context, out, in);
	return ret;
}

static int test_server(struct bmi *bmi)
{
	void *memory = registered ? bmi_memalloc(bmi, 2 * (bmi_size_t)length) :
				    kvmalloc(2 * (size_t)length, GFP_KERNEL);
	bmi_context_id context;
	bmi_addr_t addr;
	int ret;

	if (!memory)
		return -ENOMEM;
	ret = bmi_open_context(bmi, &context);
	if (ret)
		goto free;
	ret = bmi_addr_lookup(bmi, &addr, peer);
	if (!ret) {
		ret = test_rounds(bmi, addr, context, memory, memory + length);
		bmi_set_info(bmi, addr, BMI_DEC_ADDR_REF, NULL);
	}
	/* Nothing uses the memory after this. */
	bmi_close_context(bmi, context);
free:
	if (!registered)
		kvfree(memory);
	if (ret)
		pr_err("kdapl_bmi_echo: the test of %s has failed: %d\n", peer, ret);
	return ret;
}

static int start_server(void)
{
	int ret;

	server = open_instance(listen);
	if (IS_ERR(server))
		return PTR_ERR(server);
	ret = bmi_open_context(server, &server_context);
	if (!ret) {
		thread = kthread_run(serve, NULL, "kdapl_bmi_echo");
		ret = PTR_ERR_OR_ZERO(thread);
	}
	if (ret)
		bmi_close(server);
	return ret;
}

static void stop_server(void)
{
	if (!listen)
		return;
	kthread_stop(thread);
	bmi_close(server);
}

static int __init kdapl_bmi_echo_init(void)
{
	struct bmi *client;
	int ret = 0;

	if (listen)
		ret = start_server();
	if (ret || !peer)
		return ret;
	client = open_instance(NULL);
	if (IS_ERR(client)) {
		ret = PTR_ERR(client);
	} else {
		ret = test_server(client);
		bmi_close(client);
	}
	if (ret)
		stop_server();
	return ret;
}

static void __exit kdapl_bmi_echo_exit(void)
{
	stop_server();
}

module_init(kdapl_bmi_echo_init);
module_exit(kdapl_bmi_echo_exit);
MODULE_DESCRIPTION("kDAPL sample: BMI server and client in the kernel");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS("KDAPL_BMI");

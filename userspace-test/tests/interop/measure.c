// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Measures the cost of connections, one after another, in two times:
 *
 *   connect  from the first call that leads to the peer (rdma_create_id, or
 *            with --ready rdma_resolve_addr) until ESTABLISHED
 *   whole    from rdma_create_id until id and QP are destroyed
 *
 * Shared objects (the event channel, the protection domain, the completion
 * queue, the registered memory) are created before.
 */
#include "peer.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Times in nanoseconds. */
struct times {
	uint64_t *ns;
	unsigned int count;
};

struct run {
	const struct options *options;
	struct rdma_event_channel *channel;
	struct device *device;
	struct times connect, whole;
	uint64_t took;
};

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

/*
 * Starts the measurement after a server on this machine has finished its earlier work. The call
 * also marks the measurement in a trace of system calls, as the one in stop_clock() does.
 */
static void start_clock(struct run *run)
{
	sched_yield();
	run->took = now();
}

static void stop_clock(struct run *run)
{
	run->took = now() - run->took;
	sched_yield();
}

static struct times times_make(unsigned int most)
{
	struct times times = { .ns = calloc(most, sizeof(*times.ns)) };

	if (!times.ns)
		fail("no memory");
	return times;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void print_times(const char *name, struct times *times, bool json)
{
	double mean = 0, min, median, p99, max;

	qsort(times->ns, times->count, sizeof(*times->ns), compare);
	for (unsigned int index = 0; index < times->count; index++)
		mean += times->ns[index] / 1000.0 / times->count;
	min = times->ns[0] / 1000.0;
	median = times->ns[times->count / 2] / 1000.0;
	p99 = times->ns[(size_t)times->count * 99 / 100] / 1000.0;
	max = times->ns[times->count - 1] / 1000.0;
	if (json)
		printf(",\"%s_us\":{\"min\":%.3f,\"median\":%.3f,\"mean\":%.3f,\"p99\":%.3f,\"max\":%.3f}",
		       name, min, median, mean, p99, max);
	else
		printf("%-8s min %.1f us, median %.1f us, mean %.1f us, p99 %.1f us, max %.1f us\n",
		       name, min, median, mean, p99, max);
}

static size_t half(const struct run *run, unsigned int slot)
{
	return (size_t)slot * 2 * run->options->data;
}

/* Sends data to the peer, and waits for their echo. */
static void send_and_hear(struct run *run, struct rdma_cm_id *id, unsigned int slot)
{
	size_t data = run->options->data, received = half(run, slot), sent = received + data;
	bool heard = false, gone = false;

	memset(run->device->memory + sent, 0x40 + slot % 64, data);
	post_send(id, run->device, 0, sent, data);
	while (!heard || !gone) {
		struct ibv_wc wc = next_completion(run->device);

		if (wc.status != IBV_WC_SUCCESS)
			fail("a transfer failed: %s", ibv_wc_status_str(wc.status));
		if (!(wc.opcode & IBV_WC_RECV))
			gone = true;
		else if (wc.byte_len != data)
			fail("received %u bytes instead of %zu", wc.byte_len, data);
		else
			heard = true;
	}
	if (memcmp(run->device->memory + received, run->device->memory + sent, data))
		fail("the received data differ");
}

static void connect_ready(struct run *run, struct rdma_cm_id *id)
{
	start_connecting(id, run->options);
	expect_event(run->channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void equip(struct run *run, struct rdma_cm_id *id, unsigned int slot)
{
	qp_make(id, run->device);
	if (run->options->data)
		post_receive(id, run->device, 1, half(run, slot), run->options->data);
}

static void disconnect(struct run *run, struct rdma_cm_id *id)
{
	if (rdma_disconnect(id))
		fail_errno("rdma_disconnect");
	expect_event(run->channel, RDMA_CM_EVENT_DISCONNECTED);
}

static void from_scratch(struct run *run)
{
	for (unsigned int number = 0; number < run->options->connections; number++) {
		uint64_t start = now();
		struct rdma_cm_id *id = id_make(run->channel);

		resolve(id, run->options);
		equip(run, id, 0);
		connect_ready(run, id);
		run->connect.ns[run->connect.count++] = now() - start;
		if (run->options->data)
			send_and_hear(run, id, 0);
		disconnect(run, id);
		id_drop(id);
		run->whole.ns[run->whole.count++] = now() - start;
	}
}

/*
 * Returns the local address of the route to the peer. A QP can be created early only on a bound id.
 */
static struct sockaddr_storage own_address(const struct options *options)
{
	struct sockaddr_storage to = address_of(options->address, options->port), from = { 0 };
	socklen_t length = sizeof(from);
	int file = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (file < 0 || connect(file, (struct sockaddr *)&to, address_size(&to)) ||
	    getsockname(file, (struct sockaddr *)&from, &length))
		fail("no route to %s: %s", options->address, strerror(errno));
	close(file);
	/* Both families have the port at the same offset. */
	((struct sockaddr_in *)&from)->sin_port = 0;
	return from;
}

static struct rdma_cm_id *id_bound(struct run *run)
{
	struct sockaddr_storage own = own_address(run->options);
	struct rdma_cm_id *id = id_make(run->channel);

	if (rdma_bind_addr(id, (struct sockaddr *)&own))
		fail_errno("rdma_bind_addr");
	return id;
}

static void from_ready(struct run *run)
{
	unsigned int count = run->options->connections;
	struct rdma_cm_id **ids = calloc(count, sizeof(*ids));

	if (!ids)
		fail("no memory");
	for (unsigned int slot = 0; slot < count; slot++) {
		ids[slot] = id_bound(run);
		equip(run, ids[slot], slot);
	}
	start_clock(run);
	for (unsigned int slot = 0; slot < count; slot++) {
		uint64_t start = now();

		resolve(ids[slot], run->options);
		connect_ready(run, ids[slot]);
		run->connect.ns[run->connect.count++] = now() - start;
		if (run->options->data)
			send_and_hear(run, ids[slot], slot);
	}
	stop_clock(run);
	for (unsigned int slot = 0; slot < count; slot++) {
		disconnect(run, ids[slot]);
		id_drop(ids[slot]);
	}
	free(ids);
}

static void print(struct run *run, double seconds)
{
	const struct options *options = run->options;
	double rate = options->connections / seconds;

	if (options->json)
		printf("{\"connections\":%u,\"ready\":%s,\"data\":%u,\"seconds\":%.9f,\"connections_per_second\":%.3f",
		       options->connections, options->ready ? "true" : "false", options->data, seconds, rate);
	else
		printf("%u connections to %s, %u bytes each, in %.3f s: %.1f connections/s\n", options->connections,
		       options->address, options->data, seconds, rate);
	print_times("connect", &run->connect, options->json);
	if (!options->ready)
		print_times("whole", &run->whole, options->json);
	if (options->json)
		puts("}");
}

int measure(const struct options *options)
{
	struct run run = {
		.options = options,
		.channel = channel_make(),
		.connect = times_make(options->connections),
		.whole = times_make(options->connections),
	};
	unsigned int slots = options->ready ? options->connections : 1;
	struct rdma_cm_id *first = id_bound(&run);

	run.device = device_make(first->verbs, (size_t)slots * 2 * options->data, 4 * slots + 16);
	if (options->ready) {
		from_ready(&run);
	} else {
		start_clock(&run);
		from_scratch(&run);
		stop_clock(&run);
	}
	print(&run, run.took / 1e9);
	device_drop(run.device);
	id_drop(first);
	rdma_destroy_event_channel(run.channel);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* One connection, from its request to its end. */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESOLVE_MS 2000

struct rdma_event_channel *channel_make(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (!channel)
		fail_errno("rdma_create_event_channel (is the module rdma_ucm loaded?)");
	return channel;
}

struct rdma_cm_id *id_make(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		fail_errno("rdma_create_id");
	return id;
}

void id_drop(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (rdma_destroy_id(id))
		fail_errno("rdma_destroy_id");
}

struct sockaddr_storage address_of(const char *address, uint16_t port)
{
	struct sockaddr_storage storage = { 0 };
	struct sockaddr_in *v4 = (void *)&storage;
	struct sockaddr_in6 *v6 = (void *)&storage;

	if (!address || inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
	} else if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
	} else {
		fail("'%s' is not an IP address", address);
	}
	return storage;
}

size_t address_size(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ?
		sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* Returns the next event of any id of the channel. The caller acknowledges it. */
struct rdma_cm_event *next_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		fail_errno("rdma_get_cm_event");
	something_happened();
	return event;
}

void expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_event(channel);

	if (event->event != type)
		fail("%s instead of %s (status %d)", rdma_event_str(event->event),
		     rdma_event_str(type), event->status);
	rdma_ack_cm_event(event);
}

void start_listening(struct rdma_cm_id *id, const struct options *options)
{
	struct sockaddr_storage address = address_of(options->address, options->port);

	if (rdma_bind_addr(id, (struct sockaddr *)&address))
		fail("cannot bind to port %u: %s", options->port, strerror(errno));
	if (rdma_listen(id, 128))
		fail("cannot listen on port %u: %s", options->port, strerror(errno));
}

void tell_listening(struct rdma_cm_id *id)
{
	printf("listening %u\n", ntohs(rdma_get_src_port(id)));
}

void resolve(struct rdma_cm_id *id, const struct options *options)
{
	struct sockaddr_storage address = address_of(options->address, options->port);

	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, RESOLVE_MS))
		fail_errno("rdma_resolve_addr");
	expect_event(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, RESOLVE_MS))
		fail_errno("rdma_resolve_route");
	expect_event(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct rdma_conn_param parameters(const struct options *options)
{
	uint8_t reads = options->reads ? options->reads : 1;

	return (struct rdma_conn_param){
		.private_data = options->private_data,
		.private_data_len = strlen(options->private_data),
		.responder_resources = reads,
		.initiator_depth = reads,
		.retry_count = 7,
		.rnr_retry_count = options->rnr_retries,
	};
}

void start_connecting(struct rdma_cm_id *id, const struct options *options)
{
	struct rdma_conn_param param = parameters(options);

	if (rdma_connect(id, &param))
		fail_errno("rdma_connect");
}

/* Prints a word and the private data of the event, which the transport pads with zeros. */
static void tell(const char *what, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;
	size_t length = param->private_data ?
		strnlen(param->private_data, param->private_data_len) : 0;

	printf("%s%s%.*s\n", what, length ? " " : "", (int)length,
	       (const char *)param->private_data);
}

/* Prints the RDMA reads that the peer requests, to us and from us. */
static void tell_reads(const struct rdma_cm_event *event, const struct options *options)
{
	const struct rdma_conn_param *param = &event->param.conn;

	if (options->reads)
		printf("reads %u %u\n", param->responder_resources, param->initiator_depth);
}

static int finish(struct rdma_cm_id *id, struct device *device, const struct options *options,
		  bool first)
{
	if (options->exchange) {
		exchange(id, device, options, first);
		printf("exchanged %u\n", options->exchange);
	}
	if (options->disconnect && rdma_disconnect(id))
		fail_errno("rdma_disconnect");
	expect_event(id->channel, RDMA_CM_EVENT_DISCONNECTED);
	/* Answers a disconnect of the peer. After our own disconnect it has no effect. */
	rdma_disconnect(id);
	puts("disconnected");
	return 0;
}

int connect_once(const struct options *options)
{
	struct rdma_event_channel *channel = channel_make();
	struct rdma_cm_id *id = id_make(channel);
	struct rdma_cm_event *event;
	struct device *device;
	char what[32];
	int status = 0;

	resolve(id, options);
	device = device_make(id->verbs, exchange_memory(), 16);
	qp_make(id, device);
	exchange_prepare(id, device);
	start_connecting(id, options);
	while (options->never_confirm)
		pause();
	event = next_event(channel);
	if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
		tell("established", event);
		tell_reads(event, options);
		rdma_ack_cm_event(event);
		finish(id, device, options, true);
	} else if (event->event == RDMA_CM_EVENT_REJECTED) {
		snprintf(what, sizeof(what), "rejected %d", event->status);
		tell(what, event);
		rdma_ack_cm_event(event);
		status = 3;
	} else {
		fail("%s (status %d)", rdma_event_str(event->event), event->status);
	}
	id_drop(id);
	device_drop(device);
	rdma_destroy_event_channel(channel);
	return status;
}

int listen_once(const struct options *options)
{
	struct rdma_event_channel *channel = channel_make();
	struct rdma_cm_id *listener = id_make(channel), *id;
	struct rdma_conn_param param = parameters(options);
	struct device *device = NULL;
	struct rdma_cm_event *event;

	start_listening(listener, options);
	tell_listening(listener);
	event = next_event(channel);
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		fail("%s instead of a request", rdma_event_str(event->event));
	tell("request", event);
	tell_reads(event, options);
	id = event->id;
	rdma_ack_cm_event(event);
	if (options->reject) {
		if (rdma_reject(id, options->reject, strlen(options->reject)))
			fail_errno("rdma_reject");
		puts("rejected");
	} else {
		device = device_make(id->verbs, exchange_memory(), 16);
		qp_make(id, device);
		if (!options->late)
			exchange_prepare(id, device);
		if (rdma_accept(id, &param))
			fail_errno("rdma_accept");
		if (options->early)
			post_send(id, device, 0, 0, MESSAGE_BYTES);
		expect_event(channel, RDMA_CM_EVENT_ESTABLISHED);
		puts("established");
		if (options->late) {
			sleep(options->late);
			exchange_prepare(id, device);
		}
		finish(id, device, options, false);
	}
	id_drop(id);
	id_drop(listener);
	device_drop(device);
	rdma_destroy_event_channel(channel);
	return 0;
}

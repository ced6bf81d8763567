// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The other side of measure.c. Creates a QP for each request, accepts, echoes
 * data, and destroys the QP when the peer has disconnected. One thread serves
 * all connections.
 */
#include "peer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

struct server {
	const struct options *options;
	struct rdma_event_channel *channel;
	struct device *device;
	struct rdma_cm_id *ids[SLOTS];	/* by slot; NULL if free */
	unsigned int ended;
};

static unsigned int free_slot(const struct server *server)
{
	for (unsigned int slot = 0; slot < SLOTS; slot++)
		if (!server->ids[slot])
			return slot;
	fail("more than %d connections at a time", SLOTS);
}

static void equip(struct server *server, struct ibv_context *context)
{
	server->device = device_make(context, (size_t)SLOTS * server->options->data, SLOTS * 2);
}

static void accept_request(struct server *server, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1,
					 .rnr_retry_count = 7 };
	unsigned int data = server->options->data, slot = free_slot(server);

	if (!server->device)
		equip(server, id->verbs);
	server->ids[slot] = id;
	id->context = (void *)(uintptr_t)slot;
	qp_make(id, server->device);
	if (data)
		post_receive(id, server->device, slot, (size_t)slot * data, data);
	if (rdma_accept(id, &param))
		fail_errno("rdma_accept");
}

static void end(struct server *server, struct rdma_cm_id *id)
{
	/* Answers the disconnect of the peer, which waits for it. */
	if (rdma_disconnect(id))
		fail_errno("rdma_disconnect");
	server->ids[(uintptr_t)id->context] = NULL;
	id_drop(id);
	server->ended++;
}

static void handle_event(struct server *server)
{
	struct rdma_cm_event *event = next_event(server->channel);
	enum rdma_cm_event_type type = event->event;
	struct rdma_cm_id *id = event->id;

	/* An id cannot be destroyed before all its events are acknowledged. */
	rdma_ack_cm_event(event);
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST: accept_request(server, id); break;
	case RDMA_CM_EVENT_DISCONNECTED: end(server, id); break;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: break;
	default: fail("unexpected event %s", rdma_event_str(type));
	}
}

static void handle_completions(struct server *server)
{
	unsigned int data = server->options->data;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (ibv_get_cq_event(server->device->channel, &cq, &context))
		fail_errno("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		fail_errno("ibv_req_notify_cq");
	while (poll_completion(server->device, &wc)) {
		if (wc.status == IBV_WC_WR_FLUSH_ERR)
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			fail("a transfer failed: %s", ibv_wc_status_str(wc.status));
		if (wc.opcode & IBV_WC_RECV && server->ids[wc.wr_id])
			post_send(server->ids[wc.wr_id], server->device, wc.wr_id,
				  (size_t)wc.wr_id * data, wc.byte_len);
	}
}

/* Returns whether completions can arrive. Without data only events can. */
static bool has_completions(struct server *server)
{
	struct pollfd files[] = {
		{ .fd = server->channel->fd, .events = POLLIN },
		{ .fd = server->device ? server->device->channel->fd : -1, .events = POLLIN },
	};

	if (!server->options->data || !server->device)
		return false;
	while (poll(files, 2, -1) < 0)
		if (errno != EINTR)
			fail_errno("poll");
	return files[1].revents;
}

int serve(const struct options *options)
{
	struct server *server = calloc(1, sizeof(*server));
	struct rdma_cm_id *listener;

	if (!server)
		fail("no memory");
	server->options = options;
	server->channel = channel_make();
	listener = id_make(server->channel);
	start_listening(listener, options);
	/* A listener on all addresses learns its device from the first request. */
	if (listener->verbs)
		equip(server, listener->verbs);
	tell_listening(listener);
	while (server->ended < options->connections) {
		if (has_completions(server))
			handle_completions(server);
		else
			handle_event(server);
	}
	id_drop(listener);
	device_drop(server->device);
	rdma_destroy_event_channel(server->channel);
	free(server);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * rdmacm-peer: a program on librdmacm and libibverbs alone, which knows
 * nothing of kDAPL. It is what kDAPL has to get along with, and what the
 * cost of its connections is compared with.
 */
#ifndef PEER_H
#define PEER_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdnoreturn.h>

#define MESSAGE_BYTES	64		/* of a message of the exchange */
#define PRIVATE_BYTES	56		/* the least that a transport carries with a request */
#define SLOTS		4096		/* connections that may have a data message at a time */

/* What the command line asked for. */
struct options {
	const char *address;		/* NULL: all of this machine (listen only) */
	uint16_t port;
	const char *private_data;	/* goes with the request, or with the accept */
	const char *reject;		/* NULL: accept */
	unsigned int exchange;		/* rounds */
	bool immediate;			/* each message of the exchange tells its round as immediate data, too */
	bool disconnect;		/* be the one that does */
	uint8_t reads;			/* RDMA reads in flight each way to ask for; 0: one, and say nothing of it */
	unsigned int late;		/* seconds of a connection without any receive posted (listen) */
	uint8_t rnr_retries;		/* how often to repeat a message that finds no receive; what the peer is asked to do */
	bool never_confirm;		/* look at no answer to the request */
	unsigned int timeout;		/* seconds without anything happening */
	unsigned int connections;	/* to measure, or to serve; 0: one connection to try things on */
	bool ready;			/* QPs are made before the clock runs */
	unsigned int data;		/* bytes there and back on each measured connection */
	bool json;
};

/* What connections share: made once, from the device that the first id came to. */
struct device {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char *memory;
};

/* device.c */
struct device *device_make(struct ibv_context *context, size_t memory, int cq_entries);
void device_drop(struct device *device);
void qp_make(struct rdma_cm_id *id, struct device *device);
void post_receive(struct rdma_cm_id *id, struct device *device, uint64_t wr_id, size_t offset, size_t length);
void post_send(struct rdma_cm_id *id, struct device *device, uint64_t wr_id, size_t offset, size_t length);
/* With data in network byte order, as wr_id 0. */
void post_send_immediate(struct rdma_cm_id *id, struct device *device, size_t offset, size_t length, uint32_t data);
struct ibv_wc next_completion(struct device *device);
bool poll_completion(struct device *device, struct ibv_wc *wc);

/* link.c */
struct rdma_event_channel *channel_make(void);
struct rdma_cm_id *id_make(struct rdma_event_channel *channel);
void id_drop(struct rdma_cm_id *id);
struct rdma_cm_event *next_event(struct rdma_event_channel *channel);
void expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
void start_listening(struct rdma_cm_id *id, const struct options *options);
void tell_listening(struct rdma_cm_id *id);
void resolve(struct rdma_cm_id *id, const struct options *options);
void start_connecting(struct rdma_cm_id *id, const struct options *options);
struct sockaddr_storage address_of(const char *address, uint16_t port);
size_t address_size(const struct sockaddr_storage *address);
int listen_once(const struct options *options);
int connect_once(const struct options *options);

/* exchange.c: messages and RDMA writes in both directions, every byte checked */
void exchange_prepare(struct rdma_cm_id *id, struct device *device);
void exchange(struct rdma_cm_id *id, struct device *device, const struct options *options, bool first);
size_t exchange_memory(void);

/* measure.c, serve.c */
int measure(const struct options *options);
int serve(const struct options *options);

/* watch.c */
void watch(unsigned int seconds);
void something_happened(void);

/* main.c */
noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
noreturn void fail_errno(const char *what);

#endif

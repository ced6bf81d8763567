/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * rdmacm-peer: a program on librdmacm and libibverbs alone, without kDAPL. It
 * is a peer for tests, and the baseline for the cost of connections.
 */
#ifndef PEER_H
#define PEER_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdnoreturn.h>

#define MESSAGE_BYTES	64		/* of a message of --exchange */
#define PRIVATE_BYTES	56		/* smallest limit of a transport for a request */
#define SLOTS		4096		/* connections with a data message at a time */

/* Options of the command line. */
struct options {
	const char *address;		/* NULL: all addresses (listen only) */
	uint16_t port;
	const char *private_data;	/* of the request, or of the accept */
	const char *reject;		/* NULL: accept */
	unsigned int exchange;		/* rounds */
	bool immediate;			/* send the round as immediate data too */
	bool disconnect;		/* disconnect first */
	uint8_t reads;			/* RDMA reads in flight each way; 0: one, not printed */
	bool early;			/* send a message right after the accept (listen) */
	unsigned int late;		/* seconds before the first receive is posted (listen) */
	uint8_t rnr_retries;		/* retries of a message without a receive, at the peer */
	bool never_confirm;		/* read no answer to the request */
	unsigned int timeout;		/* seconds without an event */
	unsigned int connections;	/* number to measure or to serve; 0: one, not measured */
	bool ready;			/* create QPs before the measurement */
	unsigned int data;		/* bytes in each direction on each measured connection */
	bool json;
};

/* Objects that connections share, created once on the device of the first id. */
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
void post_receive(struct rdma_cm_id *id, struct device *device, uint64_t wr_id, size_t offset,
		  size_t length);
void post_send(struct rdma_cm_id *id, struct device *device, uint64_t wr_id, size_t offset,
	       size_t length);
/* Posts a send with `data` in network byte order, as wr_id 0. */
void post_send_immediate(struct rdma_cm_id *id, struct device *device, size_t offset, size_t length,
			 uint32_t data);
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

/* exchange.c: checked messages and RDMA writes in both directions */
void exchange_prepare(struct rdma_cm_id *id, struct device *device);
void exchange(struct rdma_cm_id *id, struct device *device, const struct options *options,
	      bool first);
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

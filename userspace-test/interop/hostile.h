/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * rdmacm-hostile: a peer that means harm, on librdmacm and libibverbs. What it does follows from a
 * seed, so that a run can be repeated; only the times differ.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#define MEMORY		(1 << 20)
#define QUEUE		64		/* work requests of a queue pair */

struct aim {
	struct sockaddr_storage address;
	uint16_t ports[8];
	unsigned int count;
};

/* What the victim has told of its memory. */
struct prey {
	uint64_t address;
	uint32_t rkey, length;
};

/* One connection, or an attempt at one. */
struct attack {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct prey prey;
	bool ready;			/* the queue pair can send */
};

/* What has happened, to be told at the end. */
struct tally {
	unsigned long attempts, requests, answered, refused, established, posted, completed, failed;
};
extern struct tally tally;
extern char memory[MEMORY];

/* hostile.c */
uint64_t chance(void);
unsigned int below(unsigned int limit);
bool one_in(unsigned int n);
void dawdle(unsigned int most_ms);

/* hostile_attack.c */
void attack(const struct aim *aim);

/* hostile_post.c */
void post_anything(struct attack *attack);
unsigned int drain(struct attack *attack, unsigned int ms);

#endif

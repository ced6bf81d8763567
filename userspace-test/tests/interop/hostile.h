/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * rdmacm-hostile: a hostile peer on librdmacm and libibverbs. Its acts depend on a seed, so that a
 * run can be repeated; only the times differ.
 * seed, so that a run can be repeated; only the times differ.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#define MEMORY		(1 << 18)	/* an ordinary user may lock so much for each caller */
#define QUEUE		64		/* work requests of a queue pair */

struct aim {
	struct sockaddr_storage address;
	uint16_t ports[8];
	unsigned int count;
};

/* The victim's memory region, as its private data announce it. */
struct prey {
	uint64_t address;
	uint32_t rkey, length;
};

/* One connection, or an attempt to connect. */
struct attack {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct prey prey;
	bool ready;			/* the queue pair is in RTS */
};

/* Counts that are printed at the end. */
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
void learn(struct attack *attack, const struct rdma_conn_param *param);
bool make_qp(struct attack *attack);
bool modify(struct attack *attack, enum ibv_qp_state state);
unsigned int private_data(uint8_t *data, unsigned int most);
struct rdma_conn_param some_parameters(const struct attack *attack, uint8_t *data,
				       unsigned int most);
void drop_id(struct attack *attack);
void drop_qp(struct attack *attack);
void end(struct attack *attack);

/* hostile_listen.c */
bool lie_in_wait(const struct aim *aim);
void receive_and_attack(void);

/* hostile_post.c */
void post_anything(struct attack *attack);
unsigned int drain(struct attack *attack, unsigned int ms);

#endif

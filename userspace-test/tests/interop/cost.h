/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * verbs-cost: measures operations on libibverbs alone, without kDAPL. It is the
 * baseline for the cost of the same operations of kDAPL.
 */
#ifndef COST_H
#define COST_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdnoreturn.h>

#define COST_DEPTH	64	/* work requests of a queue */
#define COST_LIST	16	/* work requests posted in one call */
#define COST_MESSAGE	64	/* bytes of each message of a list */
#define COST_LONG	65536	/* bytes of each operation of a stream */
#define COST_WINDOW	16	/* operations of a stream in flight */

/* Two queue pairs of one device that are connected to each other, and one completion queue. */
struct loop {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *from, *to;
	struct ibv_mr *mr;
	char *memory;
};

/* cost_loop.c */
struct loop *loop_make(const char *device);
/* Waits for `count` successful completions. */
void loop_wait(struct loop *loop, unsigned int count);

/* cost.c */
noreturn void fail(const char *what);

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The measurements. */
#include "cost.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char help[] =
"Usage: verbs-cost DEVICE COUNT WHAT\n"
"\n"
"Measures COUNT operations on libibverbs alone, between two queue pairs of this\n"
"program, and prints the nanoseconds of one. The program sleeps until completions\n"
"arrive.\n"
"\n"
"  register-4096, register-1048576  ibv_reg_mr() of so many bytes, and then of\n"
"                                   ibv_dereg_mr(), on a line of its own\n"
"  bind      ibv_bind_mw(), and its completion\n"
"  list      a send of 64 bytes and its receive, 16 of them posted in one call each\n"
"  send, write, read  of 65536 bytes, 16 in flight\n";

noreturn void fail(const char *what)
{
	fprintf(stderr, "verbs-cost: ");
	perror(what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

static void registrations(struct loop *loop, unsigned int count, size_t bytes)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	char *memory = aligned_alloc(4096, bytes);
	uint64_t made = 0, freed = 0;

	if (!memory)
		fail("no memory");
	memset(memory, 1, bytes);
	for (unsigned int index = 0; index < count; index++) {
		uint64_t start = now(), then;
		struct ibv_mr *mr = ibv_reg_mr(loop->pd, memory, bytes, access);

		if (!mr)
			fail("ibv_reg_mr");
		then = now();
		made += then - start;
		if (ibv_dereg_mr(mr))
			fail("ibv_dereg_mr");
		freed += now() - then;
	}
	printf("%.3f\n%.3f\n", (double)made / count, (double)freed / count);
}

static void bind_one(struct loop *loop, struct ibv_mw *mw)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = loop->mr,
			.addr = (uintptr_t)loop->memory,
			.length = COST_LONG,
			.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
		},
	};

	if (ibv_bind_mw(loop->from, mw, &bind))
		fail("ibv_bind_mw");
	loop_wait(loop, 1);
}

static struct ibv_sge piece(struct loop *loop, size_t offset, uint32_t length)
{
	return (struct ibv_sge){ .addr = (uintptr_t)loop->memory + offset, .length = length,
				 .lkey = loop->mr->lkey };
}

static void post_receives(struct loop *loop, unsigned int count, uint32_t length)
{
	struct ibv_sge sge = piece(loop, COST_LONG, length);
	struct ibv_recv_wr wrs[COST_LIST], *bad;

	for (unsigned int index = 0; index < count; index++)
		wrs[index] = (struct ibv_recv_wr){
			.next = index + 1 < count ? &wrs[index + 1] : NULL, .sg_list = &sge,
			.num_sge = 1,
		};
	if (ibv_post_recv(loop->to, wrs, &bad))
		fail("ibv_post_recv");
}

/* All but the last are not signalled. */
static void list(struct loop *loop)
{
	struct ibv_sge sge = piece(loop, 0, COST_MESSAGE);
	struct ibv_send_wr wrs[COST_LIST], *bad;

	post_receives(loop, COST_LIST, COST_MESSAGE);
	for (unsigned int index = 0; index < COST_LIST; index++) {
		bool last = index + 1 == COST_LIST;

		wrs[index] = (struct ibv_send_wr){
			.next = last ? NULL : &wrs[index + 1], .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_SEND, .send_flags = last ? IBV_SEND_SIGNALED : 0,
		};
	}
	if (ibv_post_send(loop->from, wrs, &bad))
		fail("ibv_post_send");
	loop_wait(loop, COST_LIST + 1);
}

static void post_long(struct loop *loop, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = piece(loop, 0, COST_LONG);
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)loop->memory + COST_LONG,
			     .rkey = loop->mr->rkey },
	};

	if (opcode == IBV_WR_SEND)
		post_receives(loop, 1, COST_LONG);
	if (ibv_post_send(loop->from, &wr, &bad))
		fail("ibv_post_send");
}

static void stream(struct loop *loop, unsigned int count, enum ibv_wr_opcode opcode)
{
	unsigned int each = opcode == IBV_WR_SEND ? 2 : 1, posted = 0;

	while (posted < count && posted < COST_WINDOW) {
		post_long(loop, opcode);
		posted++;
	}
	for (unsigned int done = 0; done < count; done++) {
		loop_wait(loop, each);
		if (posted < count) {
			post_long(loop, opcode);
			posted++;
		}
	}
}

static void measure(struct loop *loop, unsigned int count, const char *what)
{
	struct ibv_mw *mw = NULL;
	uint64_t start;

	if (!strcmp(what, "bind")) {
		mw = ibv_alloc_mw(loop->pd, IBV_MW_TYPE_1);
		if (!mw)
			fail("ibv_alloc_mw");
	}
	start = now();
	if (mw)
		for (unsigned int index = 0; index < count; index++)
			bind_one(loop, mw);
	else if (!strcmp(what, "list"))
		for (unsigned int index = 0; index < count; index += COST_LIST)
			list(loop);
	else if (!strcmp(what, "send"))
		stream(loop, count, IBV_WR_SEND);
	else if (!strcmp(what, "write"))
		stream(loop, count, IBV_WR_RDMA_WRITE);
	else if (!strcmp(what, "read"))
		stream(loop, count, IBV_WR_RDMA_READ);
	else
		fail(what);
	printf("%.3f\n", (double)(now() - start) / count);
}

int main(int argc, char **argv)
{
	struct loop *loop;
	unsigned int count;

	if (argc != 4) {
		fputs(help, stderr);
		return 2;
	}
	loop = loop_make(argv[1]);
	count = atoi(argv[2]);
	if (!strncmp(argv[3], "register-", 9))
		registrations(loop, count, atoi(argv[3] + 9));
	else
		measure(loop, count, argv[3]);
	/* The kernel frees all of it. */
	return 0;
}

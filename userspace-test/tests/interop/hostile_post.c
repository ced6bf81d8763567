// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Unexpected operations. */
#include "hostile.h"

#include <unistd.h>

static uint32_t some_key(const struct attack *attack)
{
	switch (below(6)) {
	case 0: return chance();
	case 1: return 0;
	case 2: return attack->mr->lkey;
	case 3: return attack->prey.rkey ^ (1u << below(32));
	case 4: return attack->prey.rkey + (below(9) << 8) - (4 << 8);
	default: return attack->prey.rkey;
	}
}

static uint64_t some_place(const struct attack *attack)
{
	switch (below(6)) {
	case 0: return chance();
	case 1: return 0;
	case 2: return ~0ull - below(16);
	case 3: return attack->prey.address + attack->prey.length - below(64);
	case 4: return attack->prey.address - below(64);
	default: return attack->prey.address + (below(64) & ~7u);
	}
}

static uint32_t some_length(void)
{
	static const uint32_t lengths[] = { 0, 1, 7, 8, 63, 64, 65, 4095, 4096, 4097, 65536,
					    MEMORY };

	return one_in(8) ? below(MEMORY) : lengths[below(one_in(4) ? 12 : 8)];
}

static enum ibv_wr_opcode some_opcode(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
	};

	return opcodes[below(sizeof(opcodes) / sizeof(*opcodes))];
}

static void post_one(struct attack *attack)
{
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .lkey = attack->mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = some_opcode() };

	sge.length = some_length();
	wr.send_flags = IBV_SEND_SIGNALED | (one_in(4) ? IBV_SEND_SOLICITED : 0);
	if (wr.opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = some_key(attack);
	else
		wr.imm_data = chance();
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = some_place(attack);
		wr.wr.atomic.rkey = some_key(attack);
		wr.wr.atomic.compare_add = chance();
		wr.wr.atomic.swap = chance();
	} else {
		wr.wr.rdma.remote_addr = some_place(attack);
		wr.wr.rdma.rkey = some_key(attack);
	}
	if (!ibv_post_send(attack->qp, &wr, &bad))
		tally.posted++;
}

/* Posts a few operations, or as many as the queue can hold. */
void post_anything(struct attack *attack)
{
	unsigned int count = one_in(8) ? QUEUE : 1 + below(4);

	while (count--)
		post_one(attack);
}

/* Takes completions for `ms` milliseconds, and returns their number. */
unsigned int drain(struct attack *attack, unsigned int ms)
{
	unsigned int count = 0;
	struct ibv_wc wc;

	for (;;) {
		while (ibv_poll_cq(attack->cq, 1, &wc) > 0) {
			count++;
			if (wc.status == IBV_WC_SUCCESS)
				tally.completed++;
			else
				tally.failed++;
		}
		if (!ms--)
			return count;
		usleep(1000);
	}
}

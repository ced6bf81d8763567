// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Exchanges messages in turns; the connecting side begins. Each message contains
 * the address of its sender's memory, in network byte order. The receiver writes
 * there by RDMA before it answers, so that the bytes precede the answer:
 *
 *   connecting side              listening side
 *   message 0               --->
 *                           <---  RDMA write, message 0
 *   RDMA write, message 1   --->
 *                           <---  RDMA write, message 1
 *   ...
 *   RDMA write, message N   --->
 */
#include "peer.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#define REGION_BYTES	16384
#define RECEIVES	2

/*
 * Layout of the memory: received messages, sent messages, target of the peer's writes, source of
 * ours.
 */
enum { RECEIVED = 0, SENT = RECEIVES * MESSAGE_BYTES, TARGET = 4096, SOURCE = TARGET + REGION_BYTES,
       ALL = SOURCE + REGION_BYTES };

struct message {
	uint64_t address;
	uint32_t rkey;
	uint32_t length;
	uint32_t round;
};

size_t exchange_memory(void)
{
	return ALL;
}

static void receive_into(struct rdma_cm_id *id, struct device *device, uint64_t slot)
{
	post_receive(id, device, slot, RECEIVED + slot * MESSAGE_BYTES, MESSAGE_BYTES);
}

/* Posts the receives. Called before the connect: no message may arrive without a receive. */
void exchange_prepare(struct rdma_cm_id *id, struct device *device)
{
	memset(device->memory, 0, ALL);
	for (uint64_t slot = 0; slot < RECEIVES; slot++)
		receive_into(id, device, slot);
}

static unsigned char byte_at(uint32_t round, bool first, size_t index)
{
	return round * 31 + index * 7 + (index >> 8) + (first ? 1 : 128);
}

static void say(struct rdma_cm_id *id, struct device *device, const struct options *options,
		uint32_t round)
{
	struct message message = {
		.address = htobe64((uintptr_t)device->memory + TARGET),
		.rkey = htonl(device->mr->rkey),
		.length = htonl(REGION_BYTES),
		.round = htonl(round),
	};

	memcpy(device->memory + SENT, &message, sizeof(message));
	if (options->immediate)
		post_send_immediate(id, device, SENT, MESSAGE_BYTES, round);
	else
		post_send(id, device, 0, SENT, MESSAGE_BYTES);
}

static struct ibv_wc successful(struct device *device)
{
	struct ibv_wc wc = next_completion(device);

	if (wc.status != IBV_WC_SUCCESS)
		fail("a transfer failed: %s", ibv_wc_status_str(wc.status));
	return wc;
}

/* Takes completions until a message and all `sends` of our own have completed. */
static struct message hear(struct rdma_cm_id *id, struct device *device, uint32_t round,
			   unsigned int *sends)
{
	struct message message;
	bool heard = false;

	while (!heard || *sends) {
		struct ibv_wc wc = successful(device);

		if (!(wc.opcode & IBV_WC_RECV)) {
			(*sends)--;
			continue;
		}
		if (wc.byte_len != MESSAGE_BYTES)
			fail("received a message of %u bytes instead of %d", wc.byte_len, MESSAGE_BYTES);
		memcpy(&message, device->memory + RECEIVED + wc.wr_id * MESSAGE_BYTES,
		       sizeof(message));
		receive_into(id, device, wc.wr_id);
		heard = true;
	}
	if (ntohl(message.round) != round)
		fail("received round %u instead of %u", ntohl(message.round), round);
	return message;
}

static void write_to(struct rdma_cm_id *id, struct device *device, struct message to,
		     uint32_t round, bool first)
{
	size_t length = ntohl(to.length) < REGION_BYTES ? ntohl(to.length) : REGION_BYTES;
	struct ibv_sge sge = { .addr = (uintptr_t)device->memory + SOURCE, .length = length,
			       .lkey = device->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = be64toh(to.address), .rkey = ntohl(to.rkey) },
	};

	for (size_t index = 0; index < length; index++)
		device->memory[SOURCE + index] = byte_at(round, first, index);
	if (ibv_post_send(id->qp, &wr, &bad))
		fail("the RDMA write cannot be posted");
}

static void check(struct device *device, uint32_t round, bool first)
{
	for (size_t index = 0; index < REGION_BYTES; index++) {
		unsigned char found = device->memory[TARGET + index],
			right = byte_at(round, first, index);

		if (found != right)
			fail("round %u: byte %zu of the RDMA write is %u instead of %u", round, index, found, right);
	}
}

void exchange(struct rdma_cm_id *id, struct device *device, const struct options *options,
	      bool first)
{
	uint32_t rounds = options->exchange;
	unsigned int sends = 0;
	struct message message;

	if (first) {
		say(id, device, options, 0);
		sends++;
	}
	for (uint32_t round = 0; round < rounds + !first; round++) {
		message = hear(id, device, round, &sends);
		/* The first message of the peer follows no RDMA write. */
		if (first || round > 0)
			check(device, round, !first);
		if (!first && round == rounds)
			return;
		write_to(id, device, message, first ? round + 1 : round, first);
		say(id, device, options, first ? round + 1 : round);
		sends += 2;
	}
	while (sends--)
		successful(device);
}

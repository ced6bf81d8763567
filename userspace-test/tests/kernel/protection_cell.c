// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tries a cell of the protection matrix: one operation through contexts that a row has opened. */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/string.h>

#include "protection.h"

#define DEFAULT		DAT_COMPLETION_DEFAULT_FLAG
/* A message has no more pages than an Endpoint allows segments. */
#define MESSAGE		2000
#define POSTED		91
#define TAKEN		92

int protection_converse(const struct pair *pair)
{
	DAT_LMR_TRIPLET from = pair_place(pair, PAIR_MEMORY - 128, 64);
	DAT_LMR_TRIPLET to = pair_place(pair, PAIR_MEMORY - 64, 64);
	unsigned int side;

	/* Side 0 first: over iWARP the passive side sends only after it has received a message. */
	for (side = 0; side < 2; side++) {
		OK(dat_ep_post_recv(pair->ep[!side], 1, &to, cookie(TAKEN), DEFAULT));
		OK(dat_ep_post_send(pair->ep[side], 1, &from, cookie(POSTED), DEFAULT));
		TRY(next_dto(pair->dto[side], DAT_DTO_SEND, POSTED, 64));
		TRY(next_dto(pair->dto[!side], DAT_DTO_RECEIVE, TAKEN, 64));
	}
	return 0;
}

/* Gives the peer memory into which it reads over iWARP: rdma_read_hides_rkey. */
static int make_sink(struct stage *stage)
{
	DAT_LMR_TRIPLET all = pair_place(&stage->pair, 0, CLIENT);
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;

	OK(register_memory(stage->pair.memory, CLIENT, LOCAL_FLAGS, &lmr, &all.lmr_context));
	OK(dat_rmr_create(pz, &rmr));
	stage->sink = (DAT_RMR_TRIPLET){ all.virtual_address, CLIENT };
	OK(dat_rmr_bind(rmr, lmr, &all, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
			stage->pair.ep[0], cookie(1), DEFAULT, &stage->sink.rmr_context));
	return next_event(stage->pair.dto[0], DAT_RMR_BIND_COMPLETION_EVENT, &event);
}

static int connect_again(struct stage *stage)
{
	memset(&stage->pair, 0, sizeof(stage->pair));
	TRY(pair_make(&stage->pair));
	TRY(pair_connect(&stage->pair));
	if (is_iwarp)
		TRY(make_sink(stage));
	return protection_converse(&stage->pair);
}

static DAT_LMR_TRIPLET named(const struct stage *stage, const struct opened *opened,
			     enum location location)
{
	const u64 end = opened->address + opened->length;
	/* Virtual memory has one part, which consists of pages that lie anywhere. */
	const size_t first = stage->part[1].size ? stage->part[0].size :
			     PAGE_SIZE - offset_in_page(stage->part[0].from);

	switch (location) {
	case ACROSS:
		return (DAT_LMR_TRIPLET){ opened->address + first - 1, 2 };
	case FIRST:
		return (DAT_LMR_TRIPLET){ opened->address, 1 };
	case LAST:
		return (DAT_LMR_TRIPLET){ end - 1, 1 };
	case BEFORE:
		return (DAT_LMR_TRIPLET){ opened->address - 1, 2 };
	case AFTER:
		return (DAT_LMR_TRIPLET){ end - 1, 2 };
	default:
		return (DAT_LMR_TRIPLET){ opened->address, opened->length };
	}
}

/* New bytes for everything that could be moved. */
static void scramble(struct stage *stage)
{
	get_random_bytes(stage->area, AREA);
	get_random_bytes(stage->pair.memory, CLIENT);
	memcpy(stage->expected, stage->area, AREA);
	memcpy(stage->client, stage->pair.memory, CLIENT);
}

static int as_expected(const struct stage *stage)
{
	EXPECT(!memcmp(stage->area, stage->expected, AREA));
	EXPECT(!memcmp(stage->pair.memory, stage->client, CLIENT));
	return 0;
}

/* Side 0 reads or writes. */
static DAT_RETURN post_peer(const struct stage *stage, enum column column, DAT_RMR_TRIPLET remote)
{
	DAT_LMR_TRIPLET place = pair_place(&stage->pair, 0, remote.segment_length);
	DAT_RMR_TRIPLET sink = stage->sink;

	sink.segment_length = remote.segment_length;
	if (column == PEER_WRITES)
		return dat_ep_post_rdma_write(stage->pair.ep[0], 1, &place, cookie(POSTED),
					      &remote, DEFAULT);
	if (is_iwarp)
		return dat_ep_post_rdma_read_to_rmr(stage->pair.ep[0], &sink, cookie(POSTED),
						    &remote, DEFAULT);
	return dat_ep_post_rdma_read(stage->pair.ep[0], 1, &place, cookie(POSTED), &remote,
				     DEFAULT);
}

static int succeeds(struct stage *stage, enum column column, const struct opened *opened,
		    DAT_LMR_TRIPLET part)
{
	const bool to_memory = column == RECEIVES || column == PEER_WRITES;
	const struct pair *pair = &stage->pair;
	const u32 length = part.segment_length;
	DAT_LMR_TRIPLET place = pair_place(pair, 0, length);
	DAT_RMR_TRIPLET remote = { part.virtual_address, length, opened->remote };
	const unsigned int sender = column == SENDS;

	protection_copy(stage, to_memory ? stage->expected : stage->area,
			part.virtual_address - opened->origin, stage->client, length, to_memory);
	if (column == SENDS || column == RECEIVES) {
		OK(dat_ep_post_recv(pair->ep[!sender], 1, sender ? &place : &part, cookie(TAKEN),
				    DEFAULT));
		OK(dat_ep_post_send(pair->ep[sender], 1, sender ? &part : &place, cookie(POSTED),
				    DEFAULT));
		TRY(next_dto(pair->dto[sender], DAT_DTO_SEND, POSTED, length));
		TRY(next_dto(pair->dto[!sender], DAT_DTO_RECEIVE, TAKEN, length));
	} else {
		OK(post_peer(stage, column, remote));
		TRY(next_dto(pair->dto[0], column == PEER_READS ? DAT_DTO_RDMA_READ :
			     DAT_DTO_RDMA_WRITE, POSTED, length));
	}
	/* Over iWARP the bytes of a write may arrive after its completion, but before a message. */
	TRY(protection_converse(pair));
	return as_expected(stage);
}

static int post_refused(struct stage *stage, enum column column, enum cell cell,
			DAT_LMR_TRIPLET part)
{
	const DAT_EP_HANDLE ep = stage->pair.ep[1];

	if (column == SENDS)
		REFUSED(dat_ep_post_send(ep, 1, &part, cookie(POSTED), DEFAULT),
			DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
	else if (cell == PRIVILEGE)
		REFUSED(dat_ep_post_recv(ep, 1, &part, cookie(POSTED), DEFAULT),
			DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	else
		REFUSED(dat_ep_post_recv(ep, 1, &part, cookie(POSTED), DEFAULT),
			DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
	/* Nothing was posted: the next messages are these. */
	TRY(protection_converse(&stage->pair));
	return as_expected(stage);
}

/* Takes the last event of a connection whose other end may have been the first. */
static int connection_over(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	OK(dat_evd_wait(evd, PATIENCE_US, 1, &event, NULL));
	if (event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
		SAME(event.event_number, DAT_CONNECTION_EVENT_BROKEN);
	return 0;
}

/* Milliseconds after which side 1 disconnects. On a slow kernel it may overtake the refusal. */
#define DISCONNECTS_MS	20

static int refused_status(enum column column, DAT_DTO_COMPLETION_STATUS status, bool late)
{
	/* siw ends the stream. A write may be complete before that: it was sent. */
	if (is_iwarp && column == PEER_WRITES && status != DAT_DTO_ERR_LOCAL_EP &&
	    status != DAT_DTO_ERR_FLUSHED)
		SAME(status, DAT_DTO_SUCCESS);
	if (is_iwarp && column == PEER_READS)
		SAME(status, DAT_DTO_ERR_FLUSHED);
	if (!is_iwarp && !(late && status == DAT_DTO_ERR_FLUSHED))
		SAME(status, DAT_DTO_ERR_REMOTE_ACCESS);
	return 0;
}

static int breaks(struct stage *stage, enum column column, DAT_RMR_TRIPLET remote)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	const struct pair *pair = &stage->pair;
	ktime_t start = ktime_get();
	unsigned int side;
	DAT_EVENT event;
	bool late;

	OK(post_peer(stage, column, remote));
	TRY(next_event(pair->dto[0], DAT_DTO_COMPLETION_EVENT, &event));
	late = ktime_ms_delta(ktime_get(), start) >= DISCONNECTS_MS;
	dto = &event.event_data.dto_completion_event_data;
	SAME(dto->operation, column == PEER_READS ? DAT_DTO_RDMA_READ : DAT_DTO_RDMA_WRITE);
	SAME(dto->user_cookie.as_64, POSTED);
	TRY(refused_status(column, dto->status, late));
	if (is_iwarp || late)
		TRY(connection_over(pair->connection[0]));
	else
		TRY(next_event(pair->connection[0], DAT_CONNECTION_EVENT_BROKEN, &event));
	TRY(connection_over(pair->connection[1]));
	for (side = 0; side < 2; side++)
		REFUSED(dat_evd_dequeue(pair->dto[side], &event), DAT_QUEUE_EMPTY, 0);
	return as_expected(stage);
}

/* Posts a message from or to memory that side 1 cannot use any more. */
static int message_fails(struct stage *stage, enum column column, DAT_LMR_TRIPLET part)
{
	const struct pair *pair = &stage->pair;
	DAT_LMR_TRIPLET place = pair_place(pair, 0, part.segment_length);
	DAT_EVENT event;

	if (column == SENDS) {
		OK(dat_ep_post_send(pair->ep[1], 1, &part, cookie(POSTED), DEFAULT));
	} else {
		OK(dat_ep_post_recv(pair->ep[1], 1, &part, cookie(TAKEN), DEFAULT));
		OK(dat_ep_post_send(pair->ep[0], 1, &place, cookie(POSTED), DEFAULT));
	}
	TRY(next_event(pair->dto[1], DAT_DTO_COMPLETION_EVENT, &event));
	/* Soft-RoCE flushes such a send, and reports such a receive as malformed. */
	SAME(event.event_data.dto_completion_event_data.status,
	     column == SENDS ? DAT_DTO_ERR_FLUSHED : DAT_DTO_ERR_LOCAL_EP);
	TRY(connection_over(pair->connection[0]));
	TRY(connection_over(pair->connection[1]));
	return as_expected(stage);
}

/* Returns whether an operation with this result ends the connection. */
static bool is_end(enum cell cell)
{
	return cell == BREAKS || cell == FAILS;
}

/* Returns the result of a cell: over siw some are others. */
static enum cell fact(const struct stage *stage, const struct row *row, enum column column)
{
	const enum cell said = row->cells[column];

	/* LMRs of dat_lmr_kcreate() have no privileges of peers there. */
	if (is_iwarp && stage->is_of_lmrs && (column == PEER_READS || column == PEER_WRITES))
		return BREAKS;
	if (is_iwarp && said == FAILS)
		return MAY;
	if (said == SIW_MAY)
		return is_iwarp ? MAY : BREAKS;
	return said;
}

static int try_cell(struct stage *stage, const struct row *row, enum column column,
		    const struct opened *opened)
{
	const enum cell cell = fact(stage, row, column);
	DAT_LMR_TRIPLET part = named(stage, opened, row->location);

	part.lmr_context = opened->local;
	if (column == SENDS || column == RECEIVES) {
		const u32 length = min_t(u32, part.segment_length, MESSAGE);

		part.virtual_address += part.segment_length - length;
		part.segment_length = length;
	}
	scramble(stage);
	if (cell == MAY)
		return succeeds(stage, column, opened, part);
	if (cell == FAILS)
		return message_fails(stage, column, part);
	if (cell != BREAKS)
		return post_refused(stage, column, cell, part);
	return breaks(stage, column, (DAT_RMR_TRIPLET){ part.virtual_address,
							part.segment_length, opened->remote });
}

int protection_row(struct stage *stage, const struct row *row)
{
	struct opened opened = {};
	bool is_open = false;
	enum column column;

	for (column = 0; column < COLUMNS; column++) {
		if (!is_open) {
			TRY(connect_again(stage));
			TRY(protection_open(stage, row, &opened));
		}
		TRY(try_cell(stage, row, column, &opened));
		is_open = !is_end(fact(stage, row, column));
		/* Nothing happened to another connection of the adapter. */
		TRY(protection_converse(&stage->bystander));
	}
	return 0;
}

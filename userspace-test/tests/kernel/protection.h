/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The protection matrix of kernel memory: who may do what through which context. Side 1 of a
 * connection opens memory, side 0 is its peer.
 */
#ifndef _KDAPL_PROTECTION_H
#define _KDAPL_PROTECTION_H

#include <linux/bvec.h>
#include <linux/scatterlist.h>

#include "ktest.h"

#define AREA		(8 * PAGE_SIZE)
/* The peer's memory, and the rest of it, for messages of both connections. */
#define CLIENT		(PAIR_MEMORY / 2)

/* Operations: columns of the tables, in this order. Side 0 makes the last two. */
enum column { SENDS, RECEIVES, PEER_READS, PEER_WRITES, COLUMNS };

/* What an operation names. */
enum location {
	/* All that the contexts open; a message only its last bytes. */
	INSIDE,
	/* Its first byte, its last byte. */
	FIRST, LAST,
	/* The byte before it and its first byte, its last byte and the byte after it. */
	BEFORE, AFTER,
	/* Two bytes that are not contiguous for the device. */
	ACROSS,
};

enum cell {
	/* The operation succeeds. */
	MAY,
	/* The connection breaks, and no byte moves. */
	BREAKS,
	/* As BREAKS, but siw lets a peer read all that is open in the PZ. */
	SIW_MAY,
	/* The post is refused: no LMR of the PZ with this context has the bytes. */
	PROTECTION,
	/* The post is refused: the LMR lacks the privilege. */
	PRIVILEGE,
	/* The message fails, and with it the connection: only the device knows. */
	FAILS,
};

enum place { HERE, OTHER_PZ, OTHER_ADAPTER };

/* A kind of description of kernel memory, and the parts of the area that it describes. */
struct source {
	const char *name;
	DAT_MEM_TYPE type;
	struct part {
		size_t from, size;
	} part[2];
};

extern const struct source protection_sources[];

struct stage {
	const struct source *source;
	/* Of the source, perhaps moved to a page boundary. */
	struct part part[2];
	size_t length;
	DAT_REGION_DESCRIPTION region;
	/* Number of pages or of entries, as dat_lmr_fmr() counts. */
	u32 count;
	union {
		DAT_PADDR addresses[2];
		struct scatterlist list[2];
		struct bio_vec bvecs[2];
	};
	/* AREA bytes: the memory, what it was, and what it is to be. */
	u8 *area, *expected;
	/* CLIENT bytes: what the peer's memory is to be. */
	u8 *client;
	struct pair pair, bystander;
	DAT_IA_HANDLE other_ia;
	/* Memory of side 0 into which it reads over iWARP. */
	DAT_RMR_TRIPLET sink;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	/* Whether the contexts are of LMRs of dat_lmr_kcreate(). */
	bool is_of_lmrs;
};

/* Contexts of open memory. */
struct opened {
	/* Address of the first byte of the whole memory. */
	u64 origin;
	/* What the contexts open. */
	u64 address;
	DAT_SEG_LENGTH length;
	/* For posts of side 1. */
	DAT_LMR_CONTEXT local;
	/* For side 0. */
	DAT_RMR_CONTEXT remote;
};

struct row {
	const char *name;
	int (*open)(struct stage *stage, const struct row *row, struct opened *opened);
	DAT_MEM_PRIV_FLAGS privileges;
	DAT_VA_TYPE va_type;
	enum place place;
	enum location location;
	enum cell cells[COLUMNS];
};

/* Describes the memory. @aligned: from a page boundary on; @whole: to the end of a page. */
void protection_describe(struct stage *stage, const struct source *source, bool aligned,
			 bool whole);
/* Copies bytes from (or to) an offset of the memory, which is in @base instead of the area. */
void protection_copy(const struct stage *stage, u8 *base, size_t offset, u8 *bytes, size_t length,
		     bool to_memory);
/* Sends a message in each direction. */
int protection_converse(const struct pair *pair);
/* Tries all cells of a row. */
int protection_row(struct stage *stage, const struct row *row);
/* Opens the memory in the place of the row. */
int protection_open(struct stage *stage, const struct row *row, struct opened *opened);
/* Side 0 ends a context by a message. */
int protection_peer_invalidates(const struct stage *stage, DAT_RMR_CONTEXT context);

typedef int open_call(struct stage *stage, const struct row *row, struct opened *opened);
open_call open_lmr, open_unknown, open_freed_lmr, open_invalidated_lmr;
open_call open_unbound_yet, open_rmr, open_rmr_by_other_ep, open_old_rmr, open_unbound;
open_call open_freed_rmr, open_freed_with_lmr, open_invalidated_rmr;
open_call open_fmr_before, open_fmr, open_fmr_by_other_ep, open_old_fmr, open_fmr_invalidated;
open_call open_fmr_invalidated_by_peer, open_fmr_freed, open_fmr_freed_later;

#endif

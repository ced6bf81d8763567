/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Two kernel threads send a message to each other in turns, and sleep until the
 * next one arrives. Two modules compare ways to send and to wait; both use the
 * same ping.c.
 */
#ifndef _KDAPL_PING_H
#define _KDAPL_PING_H

#include <linux/types.h>

#define PING_SIZE	64	/* size of a message in bytes */
#define PING_DEPTH	16	/* posted receives */
#define PING_BATCH	32	/* sends whose completions are taken together */

/* The two sides. Index 0 sends first. */
struct ping_side;

/* Connects both sides. Their receives are not posted yet. */
int ping_connect(const char *device, struct ping_side *side[2]);
void ping_disconnect(struct ping_side *side[2]);

/* Return the memory of a receive, and that of the sent message. */
void *ping_receive_buffer(struct ping_side *side, unsigned int slot);
void *ping_send_buffer(struct ping_side *side);

int ping_post_receive(struct ping_side *side, unsigned int slot);
int ping_post_send(struct ping_side *side);
/* Waits for a message. Returns its slot, or an error. */
int ping_wait(struct ping_side *side);
/* Takes the completions of so many sends, almost all of which have arrived. */
int ping_take_sent(struct ping_side *side, unsigned int count);

#endif

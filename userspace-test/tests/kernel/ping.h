/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Two threads of the kernel that send a message there and back, and sleep until
 * the next one is there. What is done to a message stands in ping.c, once; how it
 * is sent and waited for is what two modules compare.
 */
#ifndef _KDAPL_PING_H
#define _KDAPL_PING_H

#include <linux/types.h>

#define PING_SIZE	64	/* bytes of a message */
#define PING_DEPTH	16	/* receives that are posted */
#define PING_BATCH	32	/* sends of which completions are taken together */

/* The sides: the first one begins. */
struct ping_side;

/* Connects both sides; their receives are not posted yet. */
int ping_connect(const char *device, struct ping_side *side[2]);
void ping_disconnect(struct ping_side *side[2]);

/* The memory of a receive, and of the message that is sent. */
void *ping_receive_buffer(struct ping_side *side, unsigned int slot);
void *ping_send_buffer(struct ping_side *side);

int ping_post_receive(struct ping_side *side, unsigned int slot);
int ping_post_send(struct ping_side *side);
/* Sleeps until a message is there; which slot it is in, or an error. */
int ping_wait(struct ping_side *side);
/* Takes the completions of as many sends, of which all but a few have come. */
int ping_take_sent(struct ping_side *side, unsigned int count);

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Two Endpoints that connect with closed ready gates. */
#ifndef _KDAPL_KTEST_GATE_H
#define _KDAPL_KTEST_GATE_H

#include "ktest.h"

/* Sides of a pair, as a mask. */
#define CLIENT		1
#define SERVER		2

#define GATE_RECEIVES	8
#define GATE_MESSAGE	64

/* Makes a pair of which each side has one EVD, and receives that are posted. */
int gate_make(struct pair *pair);
/* As gate_make(), with another EVD for the requests of side 0. */
int gate_make_with(struct pair *pair, DAT_EVD_HANDLE requests);
/* Also connects it. The sides in @closed close their gates; the others take ESTABLISHED. */
int gate_connect(struct pair *pair, unsigned int closed);
/* Takes ESTABLISHED. */
int gate_established(const struct pair *pair, unsigned int side);
/* Sends messages, and waits until they are in the memory of the other side. */
int gate_send(const struct pair *pair, unsigned int from, unsigned int first, unsigned int count);
/* Waits until a message is in the memory of a receive. */
int gate_arrived(const struct pair *pair, unsigned int side, unsigned int number);
/* Offset of the memory of a receive. Side 1 receives at the higher addresses. */
size_t gate_place(unsigned int side, unsigned int number);
/* Takes the events of these receives. */
int gate_receives(const struct pair *pair, unsigned int side, unsigned int first,
		  unsigned int count);
/* Takes the events of the remaining receives, which are flushed. */
int gate_flushes(const struct pair *pair, unsigned int side, unsigned int first);
/* No event arrives. */
int gate_quiet(const struct pair *pair, unsigned int side);
int gate_state(const struct pair *pair, unsigned int side, DAT_EP_STATE expected);

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The rows of connect_refusals.h as tables, for consumers in the kernel and in user space. */
#ifndef CONNECT_TABLES_H
#define CONNECT_TABLES_H

enum address {
	RIGHT, NONE, OTHER, UNKNOWN,
#define ADDRESS(word, ...) word,
#include "connect_refusals.h"
};

static const struct {
	const char *v4, *v6;
} addresses[] = {
#define ADDRESS(word, v4, v6) [word] = { v4, v6 },
#include "connect_refusals.h"
};

static const struct refusal {
	enum address address;
	DAT_CONN_QUAL conn_qual;
	DAT_TIMEOUT timeout;
	DAT_COUNT size;
	DAT_QOS qos;
	DAT_CONNECT_FLAGS flags;
	DAT_RETURN type, subtype;
} refusals[] = {
#define REFUSAL(...) { __VA_ARGS__ },
#include "connect_refusals.h"
};

static const struct state {
	DAT_EP_STATE state;
	DAT_RETURN type, subtype;
} states[] = {
#define STATE(state, ...) { DAT_EP_STATE_##state, __VA_ARGS__ },
#include "connect_refusals.h"
};

static const struct named {
	const char *name;
	DAT_RETURN type, subtype;
} handles[] = {
#define HANDLE(kind, ...) { #kind, __VA_ARGS__ },
#include "connect_refusals.h"
}, routes[] = {
#define ROUTE(way, ...) { #way, __VA_ARGS__ },
#include "connect_refusals.h"
};

#endif

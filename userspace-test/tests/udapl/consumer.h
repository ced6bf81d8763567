/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* An ordinary uDAPL program, against Debian's headers and libdat2, or against ours and libkdat. */
#pragma once

#include <dat2/udat.h>
#include <stdint.h>
#include <stdnoreturn.h>

#ifdef LIBKDAT
/* libdat2 does not export this call, so that programs reach it by the provider's table. */
#define DAT_EP_POST_RDMA_READ_TO_RMR dat_ep_post_rdma_read_to_rmr
#endif

/* Longest wait for an event, in microseconds. */
#define PATIENCE 30000000

noreturn void fail(const char *file, int line, const char *what, DAT_RETURN ret);

/* The call must succeed. */
#define OK(call) do {								\
	DAT_RETURN ok_ret = (call);						\
	if (ok_ret != DAT_SUCCESS)						\
		fail(__FILE__, __LINE__, #call, ok_ret);			\
} while (0)

/* The call must fail with this type, whatever the subtype. */
#define REFUSED(type, call) do {						\
	DAT_RETURN refused_ret = (call);					\
	if (DAT_GET_TYPE(refused_ret) != (type))				\
		fail(__FILE__, __LINE__, "not " #type ": " #call, refused_ret);	\
} while (0)

#define CHECK(condition) do {							\
	if (!(condition))							\
		fail(__FILE__, __LINE__, #condition, DAT_SUCCESS);		\
} while (0)

/* Arguments of a case. */
struct place {
	char *name;		/* of the adapter in dat.conf, or with libkdat of the device */
	char **more;		/* further arguments, and NULL */
};

/* One side of a connection: an Endpoint with its own EVD for all events. */
struct side {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd, cr_evd;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	char *memory;
};

#define MEMORY 8192

DAT_IA_HANDLE open_ia(const char *name, DAT_BOOLEAN thread_safe);
void open_side(struct side *side, DAT_IA_HANDLE ia);
void close_side(struct side *side);
/* Waits for the next event. */
DAT_EVENT next(DAT_EVD_HANDLE evd);
/* Waits for the next event, which must have this number. */
DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
/* Connects the client to a qualifier of the server. Returns the server's connection request. */
DAT_CR_ARRIVAL_EVENT_DATA call_side(struct side *client, struct side *server,
				    DAT_CONN_QUAL qualifier, DAT_COUNT size,
				    const char *private_data);
/* Connects both sides over a service point of any qualifier. Returns the qualifier. */
DAT_CONN_QUAL connect_sides(struct side *client, struct side *server);
void post(struct side *side, int receive, unsigned offset, unsigned length, DAT_UINT64 cookie);
/* Takes the next event, which must be the successful completion of this operation. */
void completed(struct side *side, DAT_DTOS operation, DAT_UINT64 cookie, unsigned length);
/* Lets the client write to LMRs of other types of memory of the server. */
void use_lmrs(struct side *client, struct side *server);
void disconnect_sides(struct side *client, struct side *server);
int threads(void);
/* Prints that this program is ready, and waits for SIGUSR1, which main() has blocked. */
void await_signal(void);

void case_attributes(struct place *place);
void case_calls(struct place *place);
void case_table(struct place *place);
void case_exchange(struct place *place);
void case_refusals(struct place *place);
void case_states(struct place *place);
void case_accepting(struct place *place);
void case_route(struct place *place);
void case_asynchronous(struct place *place);
void case_failure(struct place *place);
void case_removal(struct place *place);
void case_keepalive(struct place *place);
void case_idle(struct place *place);
void case_requests(struct place *place);
void case_stale(struct place *place);
void case_agent(struct place *place);
void case_agent_and_waiter(struct place *place);
void case_fork(struct place *place);
void case_exit(struct place *place);
void case_reopen(struct place *place);
void case_safe(struct place *place);

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Makes the objects that each exported call needs. */
#include <linux/seq_file.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include <rdma/kdat_ib_extensions.h>

#include "calls.h"
#include "calls_table.h"
#include "ktest.h"

/* Objects for the calls, created for each attempt. */
static struct {
	struct pair pair;
	DAT_LMR_TRIPLET place;
	DAT_LIST_DTO list[2];
	DAT_RMR_TRIPLET local, remote;
	DAT_RMR_HANDLE rmr;
	DAT_SRQ_HANDLE srq;
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CSP_HANDLE csp;
	DAT_CR_HANDLE cr;
	DAT_CONN_QUAL conn_qual, other_qual;
	struct sockaddr_storage common;
	DAT_IA_HANDLE second;
	DAT_EP_PARAM ep_param;
} at;

/* Results of calls. */
static union {
	DAT_IA_ATTR ia;
	DAT_PZ_PARAM pz;
	DAT_LMR_PARAM lmr;
	DAT_EVD_PARAM evd;
	DAT_CNO_PARAM cno;
	DAT_RMR_PARAM rmr;
	DAT_SRQ_PARAM srq;
	DAT_EP_PARAM ep;
	DAT_PSP_PARAM psp;
	DAT_RSP_PARAM rsp;
	DAT_CSP_PARAM csp;
	DAT_CR_PARAM cr;
	DAT_EVENT event;
	DAT_RMR_CONTEXT context;
	DAT_VLEN length;
	DAT_HANDLE_TYPE type;
	DAT_EP_STATE state;
	struct __kernel_sockaddr_storage address;
	u8 data[256];
	const char *name;
} told;
static DAT_HANDLE made;
/* Size of the private data of the last call. */
static DAT_COUNT size;
static DAT_LMR_HANDLE lmr;
static DAT_LMR_CONTEXT lmr_context;

static const DAT_COMM stream = {};
static const DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
static const DAT_DTO_COOKIE no_cookie = {};
static const DAT_MEM_PRIV_FLAGS local =
	DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;

static void upcall(void *instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

static const DAT_UPCALL_OBJECT upcalls = { .upcall_func = upcall };

static int objects(void)
{
	TRY(pair_make(&at.pair));
	OK(register_memory(pair_memory, PAIR_MEMORY, local, &lmr, &lmr_context));
	OK(dat_rmr_create(pz, &at.rmr));
	OK(dat_srq_create(ia, pz, &srq_attr, &at.srq));
	at.place = pair_place(&at.pair, 0, 8);
	at.list[0] = at.list[1] = (DAT_LIST_DTO){ .operation = DAT_DTO_SEND, .segments = 1,
		.local = &at.place };
	TRY(make_evd(8, DAT_UPCALL_DISABLE, NULL, &at.evd));
	OK(post_number(at.evd, 1));
	OK(post_number(at.evd, 2));
	OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &at.cno));
	OK(dat_cno_trigger(at.cno));
	at.ep_param.ep_attr.max_recv_dtos = 100;
	return 0;
}

static int second_adapter(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	OK(dat_ia_open(ia_attr.adapter_name, 8, &evd, &at.second));
	return 0;
}

static int disconnected(void)
{
	TRY(objects());
	OK(dat_ep_disconnect(at.pair.ep[0], DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}

static int connected(void)
{
	unsigned int i;

	TRY(objects());
	for (i = 0; i < 4; i++)
		OK(dat_ep_post_recv(at.pair.ep[1], 1, &at.place, no_cookie,
				    DAT_COMPLETION_DEFAULT_FLAG));
	TRY(pair_connect(&at.pair));
	OK(dat_ep_create(ia, pz, at.pair.dto[0], at.pair.dto[0], at.pair.connection[0], NULL,
			 &made));
	return 0;
}

static int services(void)
{
	TRY(objects());
	OK(dat_psp_create_any(ia, &at.conn_qual, at.pair.connection[1], DAT_PSP_CONSUMER_FLAG,
			      &at.psp));
	OK(dat_rsp_create(ia, (1ull << 33) + at.conn_qual, DAT_HANDLE_NULL, at.pair.connection[1],
			  &at.rsp));
	OK(dat_csp_create(ia, &stream, ia_attr.ia_address_ptr, at.pair.connection[1], &at.csp));
	OK(dat_csp_query(at.csp, 0, &told.csp));
	memcpy(&at.common, &told.csp.address, sizeof(told.csp.address));
	return 0;
}

static int asked(void)
{
	DAT_PSP_HANDLE other;
	DAT_EVENT event;

	TRY(services());
	OK(dat_psp_create_any(ia, &at.other_qual, at.pair.connection[0], DAT_PSP_CONSUMER_FLAG,
			      &other));
	OK(dat_ep_connect(at.pair.ep[0], ia_attr.ia_address_ptr, at.conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(at.pair.connection[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	at.cr = event.event_data.cr_arrival_event_data.cr_handle;
	return 0;
}

static DAT_RETURN open_second(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	return dat_ia_open(ia_attr.adapter_name, 8, &evd, &at.second);
}

static DAT_RETURN open_second_in_net(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	return kdapl_ia_open_net(ia_attr.adapter_name, &init_net, 8, &evd, &at.second);
}

/* The first such LMR of a PZ also makes a queue pair. Over iWARP there is none. */
static DAT_RETURN register_for_peers(void)
{
	return register_memory(pair_memory, PAIR_MEMORY, local | (is_iwarp ? 0 : REMOTE_FLAGS),
			       &made, &lmr_context);
}

static DAT_RETURN bind(void)
{
	const DAT_LMR_TRIPLET part = { (DAT_VADDR)pair_memory, 64, lmr_context };

	return dat_rmr_bind(at.rmr, lmr, &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
			    at.pair.ep[0], no_cookie, DAT_COMPLETION_DEFAULT_FLAG, &told.context);
}

static int bound(void)
{
	const DAT_LMR_TRIPLET part = { (DAT_VADDR)pair_memory, 64, lmr_context };

	TRY(connected());
	at.local = (DAT_RMR_TRIPLET){ .virtual_address = part.virtual_address,
				      .segment_length = 64 };
	OK(dat_rmr_bind(at.rmr, lmr, &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
			at.pair.ep[0], no_cookie, DAT_COMPLETION_DEFAULT_FLAG,
			&at.local.rmr_context));
	return next_event(at.pair.dto[0], DAT_RMR_BIND_COMPLETION_EVENT, &told.event);
}

static int allocated(void)
{
	TRY(connected());
	OK(dat_lmr_allocate(ia, pz, 2, DAT_LMR_SCOPE_PZ, &made));
	return 0;
}

static DAT_RETURN fmr(void)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = PTR_ALIGN(pair_memory, PAGE_SIZE) };

	return dat_lmr_fmr(made, DAT_MEM_TYPE_VIRTUAL, region, 2, local, DAT_VA_TYPE_VA,
			   at.pair.ep[0], no_cookie, DAT_COMPLETION_DEFAULT_FLAG, NULL,
			   &told.context);
}

static int registered(void)
{
	TRY(allocated());
	OK(fmr());
	return next_event(at.pair.dto[0], DAT_DTO_COMPLETION_EVENT, &told.event);
}

/* The LMR whose region has to be replaced. */
static int lost(void)
{
	TRY(registered());
	OK(dat_ep_disconnect(at.pair.ep[0], DAT_CLOSE_ABRUPT_FLAG));
	TRY(next_event(at.pair.connection[0], DAT_CONNECTION_EVENT_DISCONNECTED, &told.event));
	OK(dat_lmr_invalidate(made, at.pair.ep[0], no_cookie, DAT_COMPLETION_DEFAULT_FLAG));
	return 0;
}

static DAT_RETURN connect_to(DAT_CONN_QUAL conn_qual)
{
	return dat_ep_connect(at.pair.ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 5,
			      "hello", DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

#define FUNCTION(name, stage, invocation) \
	static DAT_RETURN call_##name(void) { return invocation; }
CALLS(FUNCTION)
EXTENSIONS(FUNCTION)

#define ROW(name, stage, invocation)		{ #name, stage, call_##name, false },
#define EXTENSION_ROW(name, stage, invocation)	{ #name, stage, call_##name, true },
const struct call calls[] = {
	CALLS(ROW) EXTENSIONS(EXTENSION_ROW)
	{ "dat_lmr_fmr", lost, fmr },
	{}
};

int calls_show(struct seq_file *seq, void *unused)
{
	const struct call *call;

	for (call = calls; call->name; call++)
		seq_printf(seq, "%s\n", call->name);
	return 0;
}

int call_prepare(const struct call *call)
{
	memset(&at, 0, sizeof(at));
	TRY(ktest_reopen());
	/* The address belongs to the adapter. */
	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &ia_attr, DAT_PROVIDER_FIELD_NONE, NULL));
	OK(dat_pz_create(ia, &pz));
	return call->stage();
}

DAT_IA_HANDLE call_second_adapter(void)
{
	return at.second;
}

bool call_is_supported(const struct call *call)
{
	return !call->is_extension || ia_attr.extension_supported != DAT_EXTENSION_NONE;
}

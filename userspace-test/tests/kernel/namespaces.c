// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tests an adapter in another network namespace, which talks to one in the first. A program in user
 * space makes the namespace, and deletes its name at stage 1. At stage 2 the adapter has the only
 * reference.
 */
#include <linux/err.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "ktest.h"

/* Deliberately not the port of any other test. */
#define PORT	7147

/* One side of a connection: an adapter and its objects. Index 0 is in the first namespace. */
static struct side {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;
	DAT_IA_ATTR attr;
	DAT_EP_HANDLE ep;
	DAT_LMR_CONTEXT context;
} sides[2];

static int make_side(struct side *side)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = pair_memory };
	DAT_LMR_HANDLE lmr;

	OK(dat_ia_query(side->ia, NULL, DAT_IA_FIELD_ALL, &side->attr, DAT_PROVIDER_FIELD_NONE,
			NULL));
	OK(dat_pz_create(side->ia, &side->pz));
	OK(dat_lmr_kcreate(side->ia, DAT_MEM_TYPE_VIRTUAL, region, PAIR_MEMORY, side->pz,
			   LOCAL_FLAGS, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &lmr,
			   &side->context, NULL, NULL, NULL));
	OK(dat_evd_kcreate(side->ia, 16, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG |
			   DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG, &side->evd));
	return 0;
}

/* Sends eight bytes of side @from, which the other side receives. */
static int send_from(unsigned int from)
{
	const DAT_LMR_TRIPLET out = { (DAT_VADDR)pair_memory, 8, sides[from].context };
	const DAT_LMR_TRIPLET in = { (DAT_VADDR)pair_memory + 8, 8, sides[!from].context };

	memset(pair_memory, 'a' + from, 8);
	memset(pair_memory + 8, 0, 8);
	OK(dat_ep_post_recv(sides[!from].ep, 1, &in, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_post_send(sides[from].ep, 1, &out, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	TRY(next_dto(sides[!from].evd, DAT_DTO_RECEIVE, 2, 8));
	TRY(next_dto(sides[from].evd, DAT_DTO_SEND, 1, 8));
	EXPECT(!memcmp(pair_memory, pair_memory + 8, 8));
	return 0;
}

/* Connects side @from to the other, which sees the address of the former. Messages flow. */
static int talk(unsigned int from)
{
	struct side *client = &sides[from], *server = &sides[!from];
	struct __kernel_sockaddr_storage address;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	DAT_CR_HANDLE cr;
	unsigned int i;

	for (i = 0; i < 2; i++)
		OK(dat_ep_create(sides[i].ia, sides[i].pz, sides[i].evd, sides[i].evd,
				 sides[i].evd, NULL, &sides[i].ep));
	OK(dat_psp_create(server->ia, PORT, server->evd, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(client->ep, server->attr.ia_address_ptr, PORT, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(server->evd, DAT_CONNECTION_REQUEST_EVENT, &event));
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(kdapl_cr_address(cr, &address));
	EXPECT(!memcmp(&((struct sockaddr_in *)&address)->sin_addr,
		       &((struct sockaddr_in *)client->attr.ia_address_ptr)->sin_addr, 4));
	OK(dat_cr_accept(cr, server->ep, 0, NULL));
	TRY(next_event(server->evd, DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	TRY(next_event(client->evd, DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	for (i = 0; i < 4; i++)
		TRY(send_from(i % 2));
	OK(dat_psp_free(psp));
	OK(dat_ep_disconnect(client->ep, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < 2; i++) {
		TRY(next_event(sides[i].evd, DAT_CONNECTION_EVENT_DISCONNECTED, &event));
		OK(dat_ep_free(sides[i].ep));
	}
	return 0;
}

/* Opens the adapter of the other namespace, to which this test keeps no reference. */
static int open_peer(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	struct net *net = get_net_ns_by_fd(ktest_net);
	DAT_RETURN found, missing;
	DAT_IA_HANDLE none;

	if (IS_ERR(net))
		return FAIL("no namespace: %ld", PTR_ERR(net));
	found = kdapl_ia_open_net(ktest_peer, net, 8, &evd, &sides[1].ia);
	/* The first namespace's device has no address there. */
	evd = DAT_HANDLE_NULL;
	missing = kdapl_ia_open_net(ia_attr.adapter_name, net, 8, &evd, &none);
	put_net(net);
	OK(found);
	SAME(DAT_GET_TYPE(missing), DAT_INVALID_ADDRESS);
	SAME(DAT_GET_TYPE(dat_ia_open(ktest_peer, 8, &evd, &none)), DAT_INVALID_ADDRESS);
	return 0;
}

static int converse(void)
{
	TRY(make_side(&sides[0]));
	TRY(make_side(&sides[1]));
	/* Both listen at one port, each in its namespace. */
	TRY(talk(0));
	TRY(talk(1));
	WRITE_ONCE(ktest_stage, 1);
	UNTIL(READ_ONCE(ktest_stage) == 2);
	/* Only the adapter has a reference to the namespace now. */
	TRY(talk(0));
	return talk(1);
}

static int other_namespace(void)
{
	int error;

	memset(sides, 0, sizeof(sides));
	sides[0].ia = ia;
	error = open_peer() ?: converse();
	dat_ia_close(sides[1].ia, DAT_CLOSE_ABRUPT_FLAG);
	return error;
}

const struct ktest namespace_tests[] = {
	{ "other_namespace", other_namespace },
	{}
};

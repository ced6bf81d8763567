// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests copies of the addresses of connections and requests, beside threads that end these. */
#include <linux/sched.h>
#include <linux/string.h>

#include "ktest.h"

#define ROUNDS	40

/* Length of the longest address, an IPv6 one. The rest of a copy is zero. */
#define LENGTH	28

struct address {
	struct __kernel_sockaddr_storage bytes;
};

static bool is_same(const struct address *copy, const struct sockaddr *address)
{
	return copy->bytes.ss_family == address->sa_family && !memcmp(copy, address, LENGTH);
}

static int ask(const struct pair *pair, DAT_CR_HANDLE *cr)
{
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	OK(dat_psp_create_any(ia, &conn_qual, pair->connection[1], DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(pair->ep[0], ia_attr.ia_address_ptr, conn_qual, PATIENCE_US, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	TRY(next_event(pair->connection[1], DAT_CONNECTION_REQUEST_EVENT, &event));
	*cr = event.event_data.cr_arrival_event_data.cr_handle;
	return 0;
}

/* Checks the copies of a connected Endpoint's addresses. */
static int copies_are_right(DAT_EP_HANDLE ep)
{
	struct address local, remote;
	DAT_EP_PARAM param;

	memset(&local, 0x5a, sizeof(local));
	memset(&remote, 0x5a, sizeof(remote));
	OK(kdapl_ep_addresses(ep, &local.bytes, NULL));
	EXPECT(remote.bytes.ss_family == 0x5a5a);
	OK(kdapl_ep_addresses(ep, NULL, &remote.bytes));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	EXPECT(is_same(&local, param.local_ia_address_ptr));
	EXPECT(is_same(&remote, param.remote_ia_address_ptr));
	SAME(local.bytes.ss_family, ia_attr.ia_address_ptr->sa_family);
	SAME(remote.bytes.ss_family, ia_attr.ia_address_ptr->sa_family);
	EXPECT(!memchr_inv((u8 *)&local + LENGTH, 0, sizeof(local) - LENGTH));
	EXPECT(!memchr_inv((u8 *)&remote + LENGTH, 0, sizeof(remote) - LENGTH));
	return 0;
}

static int addresses_copied(void)
{
	struct address local, remote;
	struct pair pair = {};
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	TRY(pair_make(&pair));
	OK(kdapl_ep_addresses(pair.ep[0], NULL, &remote.bytes));
	SAME(remote.bytes.ss_family, 0);
	TRY(ask(&pair, &cr));
	OK(dat_cr_query(cr, 0, &param));
	OK(kdapl_cr_address(cr, NULL));
	OK(kdapl_cr_address(cr, &remote.bytes));
	EXPECT(is_same(&remote, param.remote_ia_address_ptr));
	REFUSED(kdapl_cr_address(pz, &remote.bytes), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	OK(dat_cr_accept(cr, pair.ep[1], 0, NULL));
	REFUSED(kdapl_cr_address(cr, &remote.bytes), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	TRY(next_event(pair.connection[0], DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	TRY(copies_are_right(pair.ep[0]));
	TRY(copies_are_right(pair.ep[1]));
	REFUSED(kdapl_ep_addresses(pz, &local.bytes, NULL), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_EP);
	OK(dat_ep_free(pair.ep[0]));
	REFUSED(kdapl_ep_addresses(pair.ep[0], &local.bytes, NULL), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_EP);
	return 0;
}

/* What a thread copies until its object is gone. */
static struct {
	DAT_HANDLE handle;
	DAT_RETURN (*copy)(DAT_HANDLE handle, struct __kernel_sockaddr_storage *address);
	struct address expected;
	DAT_RETURN gone;
	struct completion begun;
} copied;

static DAT_RETURN copy_remote(DAT_EP_HANDLE ep, struct __kernel_sockaddr_storage *remote)
{
	return kdapl_ep_addresses(ep, NULL, remote);
}

static int copy_until_gone(unsigned int unused)
{
	struct address address;
	unsigned int copies;
	DAT_RETURN ret;

	for (copies = 0;; copies++) {
		ret = copied.copy(copied.handle, &address.bytes);
		if (ret)
			break;
		if (memcmp(&address, &copied.expected, sizeof(address)))
			return FAIL("wrong address, of family %u", address.bytes.ss_family);
		complete(&copied.begun);
		cond_resched();
	}
	EXPECT(copies);
	SAME(ret, copied.gone);
	return 0;
}

/* Starts a thread that copies an address, and returns when it has begun. */
static int start_copies(struct ktest_thread *thread, unsigned int number)
{
	OK(copied.copy(copied.handle, &copied.expected.bytes));
	init_completion(&copied.begun);
	TRY(ktest_start(thread, copy_until_gone, number));
	/* The thread that could not copy is over. */
	UNTIL(completion_done(&copied.begun) || completion_done(&thread->over));
	udelay(number * 3);
	return 0;
}

static int copy_round(const struct pair *pair, unsigned int number)
{
	static struct ktest_thread thread;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	TRY(ask(pair, &cr));
	copied.handle = cr;
	copied.copy = kdapl_cr_address;
	copied.gone = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CR;
	TRY(start_copies(&thread, number));
	OK(dat_cr_accept(cr, pair->ep[1], 0, NULL));
	TRY(ktest_join(&thread));
	TRY(next_event(pair->connection[0], DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	copied.handle = pair->ep[0];
	copied.copy = copy_remote;
	copied.gone = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP;
	TRY(start_copies(&thread, number));
	OK(dat_ep_free(pair->ep[0]));
	return ktest_join(&thread);
}

static int addresses_race(void)
{
	unsigned int number;

	for (number = 0; number < ROUNDS; number++) {
		struct pair pair = {};

		TRY(pair_make(&pair));
		TRY(copy_round(&pair, number));
		TRY(ktest_renew());
	}
	return 0;
}

const struct ktest address_tests[] = {
	{ "addresses_copied", addresses_copied },
	{ "addresses_race", addresses_race },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the agents of CNOs. */
#include <linux/string.h>

#include "ktest.h"

/* Calls of the agent of a CNO. */
static struct {
	atomic_t calls;
	DAT_EVD_HANDLE evd;
} agent;

static void told(void *instance, DAT_EVD_HANDLE evd)
{
	agent.evd = evd;
	if (instance == &agent)
		atomic_inc(&agent.calls);
}

static int cno_agent(void)
{
	const DAT_OS_WAIT_PROXY_AGENT proxy = { .instance_data = &agent, .proxy_agent_func = told };
	DAT_EVD_HANDLE evd, handed_out;
	DAT_LMR_TRIPLET place;
	struct pair pair = {};
	DAT_CNO_PARAM param;
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;

	memset(&agent, 0, sizeof(agent));
	OK(dat_cno_create(ia, proxy, &cno));
	OK(dat_cno_query(cno, 0, &param));
	SAME(param.proxy_type, DAT_PROXY_TYPE_AGENT);
	TRY(make_evd(4, DAT_UPCALL_DISABLE, NULL, &evd));
	OK(dat_evd_modify_cno(evd, cno));
	OK(post_number(evd, 1));
	SAME(atomic_read(&agent.calls), 1);
	EXPECT(agent.evd == evd);
	OK(dat_cno_wait(cno, 0, &handed_out));
	EXPECT(handed_out == evd);
	OK(dat_evd_dequeue(evd, &event));
	REFUSED(dat_cno_wait(cno, 1000, &handed_out), DAT_QUEUE_EMPTY, 0);
	OK(dat_cno_trigger(cno));
	SAME(atomic_read(&agent.calls), 2);
	EXPECT(!agent.evd);
	OK(dat_cno_wait(cno, 0, &handed_out));
	EXPECT(!handed_out);
	/* A disabled EVD does not trigger. When enabled, it triggers with its queued event. */
	OK(dat_evd_disable(evd));
	OK(post_number(evd, 2));
	SAME(atomic_read(&agent.calls), 2);
	OK(dat_evd_enable(evd));
	SAME(atomic_read(&agent.calls), 3);
	/* A completion triggers, in whatever context it is handled. */
	TRY(pair_make(&pair));
	OK(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	OK(dat_evd_modify_cno(pair.dto[1], cno));
	place = pair_place(&pair, 0, 64);
	OK(dat_ep_post_recv(pair.ep[1], 1, &place, (DAT_DTO_COOKIE){},
			    DAT_COMPLETION_DEFAULT_FLAG));
	TRY(pair_connect(&pair));
	OK(dat_ep_post_send(pair.ep[0], 1, &place, (DAT_DTO_COOKIE){},
			    DAT_COMPLETION_DEFAULT_FLAG));
	UNTIL(atomic_read(&agent.calls) == 4);
	EXPECT(agent.evd == pair.dto[1]);
	/* A removed agent is not called. */
	OK(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
	OK(dat_cno_trigger(cno));
	SAME(atomic_read(&agent.calls), 4);
	/* A new agent is called at once for the pending trigger. */
	OK(dat_cno_modify_agent(cno, proxy));
	SAME(atomic_read(&agent.calls), 5);
	REFUSED(dat_cno_free(cno), DAT_INVALID_STATE, 67);
	return 0;
}

/* A new agent is called at once for one EVD that has triggered, and later for another. */
static int new_agent(void)
{
	const DAT_OS_WAIT_PROXY_AGENT proxy = { .instance_data = &agent, .proxy_agent_func = told };
	DAT_EVD_HANDLE evds[2];
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;
	unsigned int i;

	memset(&agent, 0, sizeof(agent));
	OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	for (i = 0; i < ARRAY_SIZE(evds); i++) {
		TRY(make_evd(4, DAT_UPCALL_DISABLE, NULL, &evds[i]));
		OK(dat_evd_modify_cno(evds[i], cno));
		OK(post_number(evds[i], 1));
	}
	OK(dat_cno_modify_agent(cno, proxy));
	SAME(atomic_read(&agent.calls), 1);
	EXPECT(agent.evd == evds[0]);
	OK(dat_evd_dequeue(evds[0], &event));
	OK(post_number(evds[1], 2));
	SAME(atomic_read(&agent.calls), 2);
	EXPECT(agent.evd == evds[1]);
	/* The EVDs have triggered already, and the agent has been called for both. */
	OK(post_number(evds[0], 2));
	OK(post_number(evds[1], 3));
	SAME(atomic_read(&agent.calls), 2);
	return 0;
}

const struct ktest agent_tests[] = {
	{ "cno_agent", cno_agent },
	{ "new_agent", new_agent },
	{}
};

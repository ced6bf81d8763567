// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Consumer Notification Objects: waits, files, agents. */
#include "examples.h"

#include <poll.h>
#include <unistd.h>

/* --- */
static void count(DAT_PVOID counter, DAT_EVD_HANDLE evd)
{
	(void)evd;
	__atomic_add_fetch((int *)counter, 1, __ATOMIC_RELEASE);
}

void example_cno(char *adapter)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_IA_HANDLE ia = open_ia(adapter, DAT_TRUE);
	struct pollfd file = { .events = POLLIN };
	DAT_OS_WAIT_PROXY_AGENT agent;
	DAT_EVD_HANDLE evd, triggered;
	DAT_CNO_HANDLE cno, polled;
	DAT_CNO_PARAM param;
	int calls = 0;

	/* Wait for any of several EVDs, here of one. */
	OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	OK(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	OK(dat_evd_post_se(evd, &event));
	OK(dat_cno_wait(cno, PATIENCE, &triggered));
	CHECK(triggered == evd);
	OK(dat_evd_dequeue(evd, &event));

	/* Have a function called for each event. */
	agent.instance_data = &calls;
	agent.proxy_agent_func = count;
	OK(dat_cno_modify_agent(cno, agent));
	OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	CHECK(param.proxy_type == DAT_PROXY_TYPE_AGENT);
	OK(dat_evd_post_se(evd, &event));
	while (!__atomic_load_n(&calls, __ATOMIC_ACQUIRE))
		usleep(1000);
	OK(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
	OK(dat_evd_dequeue(evd, &event));
	OK(dat_evd_free(evd));
	OK(dat_cno_free(cno));

	/* Wait in poll(2), beside other files. */
	OK(dat_cno_fd_create(ia, &file.fd, &polled));
	CHECK(poll(&file, 1, 0) == 0);
	OK(dat_cno_trigger(polled, &triggered));
	CHECK(poll(&file, 1, PATIENCE / 1000) == 1 && file.revents == POLLIN);
	OK(dat_cno_wait(polled, 0, &triggered));
	CHECK(triggered == DAT_HANDLE_NULL);
	OK(dat_cno_free(polled));
	REFUSED(DAT_INVALID_HANDLE, dat_cno_trigger(polled, &triggered));
	close(file.fd);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

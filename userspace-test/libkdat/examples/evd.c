// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Event Dispatchers, with events of the program itself. */
#include "examples.h"

/* --- */
void example_evd(char *adapter)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_IA_HANDLE ia = open_ia(adapter, DAT_TRUE);
	DAT_EVD_HANDLE evd, triggered;
	DAT_EVD_PARAM param;
	DAT_CNO_HANDLE cno;
	DAT_COUNT more;

	OK(dat_evd_create(ia, 2, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
	OK(dat_evd_resize(evd, 100));
	OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CHECK(param.evd_qlen == 128 && param.cno_handle == DAT_HANDLE_NULL);

	/* Post two events, wait for both, and take them. */
	event.event_data.software_event_data.pointer = "first";
	OK(dat_evd_post_se(evd, &event));
	event.event_data.software_event_data.pointer = "second";
	OK(dat_evd_post_se(evd, &event));
	OK(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 2, &event, &more));
	CHECK(event.event_number == DAT_SOFTWARE_EVENT && more == 1);
	OK(dat_evd_dequeue(evd, &event));
	CHECK(DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) == DAT_QUEUE_EMPTY);
	CHECK(DAT_GET_TYPE(dat_evd_wait(evd, 1000, 1, &event, &more)) == DAT_TIMEOUT_EXPIRED);

	/* A disabled EVD does not trigger its CNO; an unwaitable one refuses waits. */
	OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	OK(dat_evd_modify_cno(evd, cno));
	OK(dat_evd_disable(evd));
	event.event_number = DAT_SOFTWARE_EVENT;
	OK(dat_evd_post_se(evd, &event));
	CHECK(DAT_GET_TYPE(dat_cno_wait(cno, 1000, &triggered)) == DAT_QUEUE_EMPTY);
	OK(dat_evd_enable(evd));
	OK(dat_cno_wait(cno, PATIENCE, &triggered));
	CHECK(triggered == evd);
	OK(dat_evd_set_unwaitable(evd));
	CHECK(DAT_GET_SUBTYPE(dat_evd_wait(evd, 1000, 1, &event, &more)) ==
	      DAT_INVALID_STATE_EVD_UNWAITABLE);
	OK(dat_evd_clear_unwaitable(evd));
	OK(dat_evd_wait(evd, PATIENCE, 1, &event, &more));

	OK(dat_evd_free(evd));
	OK(dat_cno_free(cno));
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

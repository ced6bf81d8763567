// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests threads that create LMRs for peers at once. */
#include "ktest.h"
#include "remote.h"

/* Several threads register and free memory of one PZ. */
#define THREADS		4
#define REGISTRATIONS	50

static int register_often(unsigned int number)
{
	unsigned int i;

	for (i = 0; i < REGISTRATIONS; i++) {
		DAT_RMR_TRIPLET remote;
		struct lmr lmr;

		TRY(remote_show(ALL, &lmr, &remote));
		OK(dat_lmr_free(lmr.handle));
	}
	return 0;
}

static int do_remote_threads(void)
{
	struct ktest_thread threads[THREADS];
	int error = 0;
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		error = ktest_start(&threads[i], register_often, i) ?: error;
	for (i = 0; i < THREADS; i++)
		error = ktest_join(&threads[i]) ?: error;
	return error;
}

/* The device is removed while threads register memory. */
static atomic_t registered;

static int register_until_removal(unsigned int number)
{
	struct lmr lmr;
	DAT_RETURN ret;

	while (!(ret = lmr_make_virtual(remote_memory + BEFORE, LENGTH, ALL, &lmr))) {
		atomic_inc(&registered);
		OK(dat_lmr_free(lmr.handle));
	}
	REFUSED(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	return 0;
}

static int do_remote_removal(void)
{
	struct ktest_thread threads[2];
	DAT_RMR_TRIPLET remote;
	DAT_LMR_PARAM param;
	struct lmr lmr;
	int error;

	atomic_set(&registered, 0);
	TRY(remote_show(ALL, &lmr, &remote));
	error = ktest_start(&threads[0], register_until_removal, 0);
	error = ktest_start(&threads[1], register_until_removal, 1) ?: error;
	while (atomic_read(&registered) < 20 && !completion_done(&threads[0].over))
		usleep_range(100, 200);
	WRITE_ONCE(ktest_stage, 1);
	error = ktest_join(&threads[0]) ?: error;
	error = ktest_join(&threads[1]) ?: error;
	TRY(error);
	/* The handle stays valid. */
	OK(dat_lmr_query(lmr.handle, 0, &param));
	SAME(param.rmr_context, lmr.remote);
	OK(dat_lmr_free(lmr.handle));
	OK(dat_pz_free(pz));
	return 0;
}

TEST(remote_threads)
TEST(remote_removal)

const struct ktest remote_thread_tests[] = {
	{ "remote_threads", remote_threads },
	{ "remote_removal", remote_removal },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tests every exported call with a failure of each of its allocations: the call reports it, and
 * succeeds when repeated. The caller has configured the allocations that may fail.
 */
#include <linux/sched.h>

#include "calls.h"
#include "ktest.h"

/* Limits the allocations of a call. */
#define MOST		1000
#define NO_MEMORY	(DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY)

/* Makes the call with a failure of its nth allocation. `failed` is set if it had so many. */
static DAT_RETURN make(const struct call *call, unsigned int nth, bool *failed)
{
	DAT_RETURN ret;

#ifdef CONFIG_FAULT_INJECTION
	current->fail_nth = nth;
	ret = call->make();
	*failed = !current->fail_nth;
	current->fail_nth = 0;
#else
	ret = call->make();
	*failed = false;
#endif
	return ret;
}

/* Tests one call with one failure, on an adapter of its own. */
static int attempt(const struct call *call, unsigned int nth, bool *failed)
{
	DAT_RETURN ret, again;

	TRY(call_prepare(call));
	ret = make(call, nth, failed);
	if (ret && (!*failed || ret != NO_MEMORY))
		return FAIL("%s, failure %u: %08x", call->name, nth, ret);
	if (ret) {
		again = call->make();
		if (again)
			return FAIL("%s repeated after failure %u: %08x", call->name, nth, again);
	}
	/* The call under test may have closed this adapter. */
	dat_ia_close(call_second_adapter(), DAT_CLOSE_ABRUPT_FLAG);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}

static int faults(void)
{
	const struct call *call;
	bool failed = true;
	unsigned int nth;

	/* Each attempt opens its own adapter. */
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	for (call = calls; call->name; call++) {
		if (!call_is_supported(call))
			continue;
		for (nth = 1, failed = true; failed; nth++) {
			EXPECT(nth < MOST);
			TRY(attempt(call, nth, &failed));
		}
	}
	return 0;
}

const struct ktest fault_tests[] = {
	{ "faults", faults },
	{}
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Reports a failed check, and ends the program. */
#include "consumer.h"

#include <stdio.h>
#include <stdlib.h>

noreturn void fail(const char *file, int line, const char *what, DAT_RETURN ret)
{
	const char *major = "", *minor = "";

	if (ret != DAT_SUCCESS)
		dat_strerror(ret, &major, &minor);
	fprintf(stderr, "%s:%d: %s (0x%08x %s %s)\n", file, line, what, ret, major, minor);
	exit(1);
}

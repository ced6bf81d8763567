// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/eventfd.h>

#include "helpers.h"

void kdapl_helper_eventfd_signal(struct eventfd_ctx *ctx)
{
	eventfd_signal(ctx);
}

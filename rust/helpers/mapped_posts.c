// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Time that a mapped DTO waits for a call. */

#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include "helpers.h"

/* Longest time, in microseconds. */
#define MOST_DELAY_US	10000000

static unsigned int mapped_post_delay_us = 50;
module_param(mapped_post_delay_us, uint, 0644);
MODULE_PARM_DESC(mapped_post_delay_us, "Microseconds after which DTOs that a process maps are posted, if it makes no call (default: 50; 0: DTOs are posted by calls only)");

u32 kdapl_helper_mapped_post_delay_us(void)
{
	return min(READ_ONCE(mapped_post_delay_us), MOST_DELAY_US);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/poll.h>

#include "helpers.h"

void kdapl_helper_poll_wait(struct file *file, struct wait_queue_head *head, struct poll_table_struct *table)
{
	poll_wait(file, head, table);
}

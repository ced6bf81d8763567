// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/fs.h>
#include <linux/poll.h>

#include "helpers.h"

void kdapl_helper_poll_wait(struct file *file, struct wait_queue_head *head,
			    struct poll_table_struct *table)
{
	poll_wait(file, head, table);
}

/* Marks a new file as one without a position, which io_uring may read without a worker. */
void kdapl_helper_make_stream(struct file *file)
{
	file->f_mode |= FMODE_STREAM | FMODE_NOWAIT;
}

bool kdapl_helper_iocb_may_wait(const struct kiocb *iocb)
{
	return !(iocb->ki_flags & IOCB_NOWAIT) && !(iocb->ki_filp->f_flags & O_NONBLOCK);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/io_uring/cmd.h>

#include "helpers.h"

/* Content of a command's pdu, which io_uring reserves for the driver. */
struct kdapl_uring_pdu {
	void *pending;
	kdapl_uring_run_t run;
};

bool kdapl_helper_uring_is_cancel(unsigned int issue_flags)
{
	return issue_flags & IO_URING_F_CANCEL;
}

struct file *kdapl_helper_uring_file(struct io_uring_cmd *cmd)
{
	return cmd->file;
}

/*
 * Describes a command that is being issued. The submission entry may lie in memory that the process
 * can change, so each field is read once.
 */
void kdapl_helper_uring_describe(struct io_uring_cmd *cmd, unsigned int issue_flags,
				 struct kdapl_uring_command *to)
{
	const struct kdapl_uring_sqe *operand = io_uring_sqe_cmd(cmd->sqe, struct kdapl_uring_sqe);
	struct io_kiocb *req = cmd_to_io_kiocb(cmd);

	*to = (struct kdapl_uring_command) {
		.ring = (uintptr_t)io_uring_cmd_ctx_handle(cmd),
		.user_data = req->cqe.user_data,
		.message = READ_ONCE(operand->message),
		.reserved = READ_ONCE(operand->reserved),
		.op = cmd->cmd_op,
		.buffer_group = READ_ONCE(cmd->sqe->buf_group),
		.flags = (cmd->flags & IORING_URING_CMD_MULTISHOT ? KDAPL_URING_MULTISHOT : 0) |
			 (cmd->flags & IORING_URING_CMD_FIXED ? KDAPL_URING_FIXED_BUFFER : 0) |
			 (issue_flags & IO_URING_F_NONBLOCK ? KDAPL_URING_NONBLOCK : 0) |
			 (issue_flags & IO_URING_F_UNLOCKED ? KDAPL_URING_UNLOCKED : 0) |
			 (req->ctx->flags & IORING_SETUP_IOPOLL ? KDAPL_URING_POLLED_RING : 0),
	};
}

void *kdapl_helper_uring_pending(struct io_uring_cmd *cmd)
{
	return io_uring_cmd_to_pdu(cmd, struct kdapl_uring_pdu)->pending;
}

/* From now on io_uring may cancel the command. @run is for kdapl_helper_uring_run_in_task(). */
void kdapl_helper_uring_make_pending(struct io_uring_cmd *cmd, unsigned int issue_flags,
				     void *pending, kdapl_uring_run_t run)
{
	*io_uring_cmd_to_pdu(cmd, struct kdapl_uring_pdu) =
		(struct kdapl_uring_pdu) { .pending = pending, .run = run };
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
}

/*
 * Ends io_uring's calls to cancel the command, of which this is the first one. io_uring repeats
 * them without a pause until the command is completed. The task that completes it may be stopped.
 *
 * Context: such a call, with the lock of the ring.
 */
void kdapl_helper_uring_end_cancels(struct io_uring_cmd *cmd)
{
	if (!(cmd->flags & IORING_URING_CMD_CANCELABLE))
		return;
	cmd->flags &= ~IORING_URING_CMD_CANCELABLE;
	hlist_del(&cmd_to_io_kiocb(cmd)->hash_node);
}

static void kdapl_uring_in_task(struct io_tw_req req, io_tw_token_t tw)
{
	struct io_uring_cmd *cmd = io_uring_cmd_from_tw(req);
	struct kdapl_uring_pdu *pdu = io_uring_cmd_to_pdu(cmd, struct kdapl_uring_pdu);

	pdu->run(pdu->pending, IO_URING_CMD_TASK_WORK_ISSUE_FLAGS, tw.cancel);
}

/*
 * Runs the command in the task that has submitted it. Context: any, including hard IRQ, also with
 * the lock of a wait queue held.
 */
void kdapl_helper_uring_run_in_task(struct io_uring_cmd *cmd)
{
	__io_uring_cmd_do_in_task(cmd, kdapl_uring_in_task, IOU_F_TWQ_IN_WAKE);
}

void kdapl_helper_uring_done(struct io_uring_cmd *cmd, s32 result, unsigned int issue_flags)
{
	io_uring_cmd_done(cmd, result, issue_flags);
}

/* Selects a provided buffer. Returns 0, or an errno. The caller gives it back or posts it. */
int kdapl_helper_uring_select(struct io_uring_cmd *cmd, u16 group, unsigned int issue_flags,
			      struct kdapl_uring_buffer *to)
{
	size_t length = 0;
	struct io_br_sel selected = io_uring_cmd_buffer_select(cmd, group, &length, issue_flags);

	if (selected.val < 0 && selected.val >= -MAX_ERRNO)
		return selected.val;
	if (!selected.addr)
		return -ENOBUFS;
	*to = (struct kdapl_uring_buffer) {
		.address = (uintptr_t)selected.addr,
		.length = length,
		.list = (uintptr_t)selected.buf_list,
		.id = cmd_to_io_kiocb(cmd)->buf_index,
	};
	return 0;
}

/*
 * Posts a completion for @bytes bytes in the selected buffer, or gives the buffer back if @bytes is
 * 0. Returns whether that was possible.
 */
bool kdapl_helper_uring_post(struct io_uring_cmd *cmd, const struct kdapl_uring_buffer *buffer,
			     size_t bytes, unsigned int issue_flags)
{
	struct io_br_sel selected = {
		.buf_list = (struct io_buffer_list *)(uintptr_t)buffer->list,
		.val = bytes,
	};

	return !io_uring_mshot_cmd_post_cqe(cmd, &selected, issue_flags) || !bytes;
}

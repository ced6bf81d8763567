/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Commands of io_uring. */
#ifndef _UAPI_RDMA_KDAPL_URING_H
#define _UAPI_RDMA_KDAPL_URING_H

#include <rdma/kdapl/common.h>

/*
 * IORING_OP_URING_CMD on /dev/kdapl: `cmd_op` of the submission entry is the number of any request
 * of <rdma/kdapl.h>, and `cmd` is a struct kdapl_uring_sqe. See docs/ioctl/uring.md.
 */

/**
 * struct kdapl_uring_sqe - the field `cmd` of a submission entry
 * @message: in: address of the message of the request, which stays valid until the completion
 * @reserved: 0
 */
struct kdapl_uring_sqe {
	__u64 message;
	__u64 reserved;
};

/**
 * struct kdapl_uring_cancel - KDAPL_URING_CANCEL: cancel commands that wait
 * @hdr: header
 * @user_data: in: of the commands, which were submitted to the same ring for the same open file
 * @found: out: number of commands that were waiting; each of them completes
 * @pad: 0
 *
 * A command only: ioctl() fails with ENOTTY.
 */
struct kdapl_uring_cancel {
	struct kdapl_hdr hdr;
	__u64 user_data;
	__u32 found;
	__u32 pad;
};

/**
 * struct kdapl_uring_stream - KDAPL_URING_STREAM: stream the events of an EVD into provided buffers
 * @hdr: header
 * @taken: out: number of events in @buffer, if the completion queue had no room for their
 *         completion
 * @buffer: out: identifier of that provided buffer
 * @handle: in: EVD
 * @timeout_ns: in: time after which the stream ends; see KDAPL_FLAG_ABSOLUTE
 * @threshold: in: number of events to wait for, as for KDAPL_EVD_WAIT
 * @event_size: in: size of an element of the buffers, at least KDAPL_EVENT_SIZE_MIN
 *
 * A command only, with IORING_URING_CMD_MULTISHOT and IOSQE_BUFFER_SELECT. Each completion with
 * IORING_CQE_F_MORE has the number of bytes of a batch of events. The message is written when the
 * stream ends.
 */
struct kdapl_uring_stream {
	struct kdapl_hdr hdr;
	__u32 taken;
	__u32 buffer;
	__u64 handle;
	__u64 timeout_ns;
	__s32 threshold;
	__u32 event_size;
};

#endif /* _UAPI_RDMA_KDAPL_URING_H */

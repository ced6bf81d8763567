/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * The ioctl interface of /dev/kdapl. Kernel and user space both use this definition. Programs
 * include this header, which includes the messages of all objects and has the numbers of all
 * requests.
 *
 * kDAPL implements DAT, the Direct Access Transport, an API for remote direct memory access (RDMA).
 * The abbreviations of DAT's objects are: Interface Adapter (IA), Protection Zone (PZ), Endpoint
 * (EP), Event Dispatcher (EVD), Consumer Notification Object (CNO), Connection Request (CR), Local
 * and Remote Memory Region (LMR, RMR), Shared Receive Queue (SRQ), and Public, Reserved and Common
 * Service Point (PSP, RSP, CSP). A DTO is a data transfer operation.
 *
 * Rules for every message (docs/ioctl.md has the details):
 *
 * -  One open file is one IA. KDAPL_IA_OPEN comes first and carries KDAPL_ABI_VERSION. A handle is
 *   valid only in the file that returned it.
 * -  Every message starts with struct kdapl_hdr. `size` is the size of the whole message as the
 *   caller knows it. It equals the size in the ioctl number; KDAPL_SIZED makes the number of a
 *   message of another size. New members are added at the end of a message. The kernel treats a
 *   message that is shorter than its own as if zeros followed, down to the first published size. It
 *   accepts a longer message if all bytes beyond its own size are zero (E2BIG otherwise). It writes
 *   no further than `size`.
 * -  An array is passed as an address, a count, and the size of an element as the caller knows it:
 *   a multiple of 8, at most KDAPL_ELEMENT_MAX. Elements are extended as messages are. In an
 *   element that the kernel fills in, the bytes beyond its own size become zero. Private data are
 *   bytes, not an array.
 * -  A struct inside a message can be extended as well: it has reserved words (kdapl_ep_attr,
 *   kdapl_sockaddr), is the last member (kdapl_dto), or is an element of an array (kdapl_event).
 *   kdapl_hdr never changes.
 * -  `hdr.flags` is 0 except for the KDAPL_FLAG_* that the call supports. Members named `pad` or
 *   `reserved` are zero in both directions.
 * -  `hdr.ret` holds the DAT return code; the ioctl itself then returns 0. errno only reports that
 *   the kernel could not accept the message: EFAULT (bad pointer), ENOTTY (unknown request), EINVAL
 *   (wrong size, unknown version or flag, non-zero padding), E2BIG (unknown trailing members).
 * -  All members have a fixed width and are naturally aligned. There is no hidden padding, so that
 *   32-bit and 64-bit programs have the same layout.
 * -  Times are in nanoseconds, in members whose name ends in _ms in milliseconds. Sizes are in
 *   bytes, queue lengths in entries.
 * -  The numbers of flags, states, events and return codes are those of DAT 2.0.
 */
#ifndef _UAPI_RDMA_KDAPL_H
#define _UAPI_RDMA_KDAPL_H

#include <linux/ioctl.h>
#include <rdma/kdapl/common.h>
#include <rdma/kdapl/device.h>
#include <rdma/kdapl/ia.h>
#include <rdma/kdapl/event.h>
#include <rdma/kdapl/evd.h>
#include <rdma/kdapl/mapped_events.h>
#include <rdma/kdapl/cno.h>
#include <rdma/kdapl/ep.h>
#include <rdma/kdapl/connect.h>
#include <rdma/kdapl/dto.h>
#include <rdma/kdapl/mapped_posts.h>
#include <rdma/kdapl/service.h>
#include <rdma/kdapl/cr.h>
#include <rdma/kdapl/lmr.h>
#include <rdma/kdapl/rmr.h>
#include <rdma/kdapl/srq.h>
#include <rdma/kdapl/uring.h>

#define KDAPL_IOC_MAGIC		0xda

/* Makes the number of a request whose message has another size. */
#define KDAPL_SIZED(request, size) \
	_IOC(_IOC_DIR(request), _IOC_TYPE(request), _IOC_NR(request), size)

#define KDAPL_DEVICE_GET	_IOWR(KDAPL_IOC_MAGIC, 0x00, struct kdapl_device)
#define KDAPL_IA_OPEN		_IOWR(KDAPL_IOC_MAGIC, 0x01, struct kdapl_ia_open)
#define KDAPL_IA_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x02, struct kdapl_ia_query)
#define KDAPL_IA_CLOSE		_IOWR(KDAPL_IOC_MAGIC, 0x03, struct kdapl_ia_close)
#define KDAPL_PORT_GET		_IOWR(KDAPL_IOC_MAGIC, 0x04, struct kdapl_port)
#define KDAPL_IA_STAT		_IOWR(KDAPL_IOC_MAGIC, 0x05, struct kdapl_ia_stat)

#define KDAPL_PZ_CREATE		_IOWR(KDAPL_IOC_MAGIC, 0x10, struct kdapl_handle)
#define KDAPL_PZ_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x11, struct kdapl_handle)

#define KDAPL_EVD_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x20, struct kdapl_evd_create)
#define KDAPL_EVD_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x21, struct kdapl_handle)
#define KDAPL_EVD_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x22, struct kdapl_evd_query)
#define KDAPL_EVD_WAIT		_IOWR(KDAPL_IOC_MAGIC, 0x23, struct kdapl_evd_wait)
#define KDAPL_EVD_DEQUEUE	_IOWR(KDAPL_IOC_MAGIC, 0x24, struct kdapl_evd_wait)
#define KDAPL_EVD_POST_SE	_IOWR(KDAPL_IOC_MAGIC, 0x25, struct kdapl_evd_post_se)

#define KDAPL_EVD_MODIFY_CNO	_IOWR(KDAPL_IOC_MAGIC, 0x26, struct kdapl_evd_modify_cno)
#define KDAPL_EVD_ENABLE	_IOWR(KDAPL_IOC_MAGIC, 0x27, struct kdapl_handle)
#define KDAPL_EVD_DISABLE	_IOWR(KDAPL_IOC_MAGIC, 0x28, struct kdapl_handle)
#define KDAPL_EVD_SET_UNWAITABLE _IOWR(KDAPL_IOC_MAGIC, 0x29, struct kdapl_handle)
#define KDAPL_EVD_CLEAR_UNWAITABLE _IOWR(KDAPL_IOC_MAGIC, 0x2a, struct kdapl_handle)
#define KDAPL_EVD_RESIZE	_IOWR(KDAPL_IOC_MAGIC, 0x2b, struct kdapl_evd_resize)
#define KDAPL_EVD_FD		_IOWR(KDAPL_IOC_MAGIC, 0x2c, struct kdapl_evd_fd)

#define KDAPL_EP_CREATE		_IOWR(KDAPL_IOC_MAGIC, 0x30, struct kdapl_ep_create)
#define KDAPL_EP_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x31, struct kdapl_handle)
#define KDAPL_EP_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x32, struct kdapl_ep_query)
#define KDAPL_EP_GET_STATUS	_IOWR(KDAPL_IOC_MAGIC, 0x33, struct kdapl_ep_status)
#define KDAPL_EP_CONNECT	_IOWR(KDAPL_IOC_MAGIC, 0x34, struct kdapl_ep_connect)
#define KDAPL_EP_DISCONNECT	_IOWR(KDAPL_IOC_MAGIC, 0x35, struct kdapl_ep_disconnect)
#define KDAPL_EP_PRIVATE_DATA	_IOWR(KDAPL_IOC_MAGIC, 0x36, struct kdapl_ep_private_data)
#define KDAPL_EP_POST		_IOWR(KDAPL_IOC_MAGIC, 0x37, struct kdapl_ep_post)
#define KDAPL_EP_MODIFY		_IOWR(KDAPL_IOC_MAGIC, 0x38, struct kdapl_ep_modify)
#define KDAPL_EP_RESET		_IOWR(KDAPL_IOC_MAGIC, 0x39, struct kdapl_handle)
#define KDAPL_EP_DUP_CONNECT	_IOWR(KDAPL_IOC_MAGIC, 0x3a, struct kdapl_ep_dup_connect)
#define KDAPL_EP_COMMON_CONNECT	_IOWR(KDAPL_IOC_MAGIC, 0x3b, struct kdapl_ep_common_connect)
#define KDAPL_EP_SUBMIT		_IOWR(KDAPL_IOC_MAGIC, 0x3c, struct kdapl_ep_submit)
#define KDAPL_EP_SET_WATERMARK	_IOWR(KDAPL_IOC_MAGIC, 0x3d, struct kdapl_ep_watermark)
#define KDAPL_EP_RECV_QUERY	_IOWR(KDAPL_IOC_MAGIC, 0x3e, struct kdapl_ep_recv_query)
#define KDAPL_EP_READY		_IOWR(KDAPL_IOC_MAGIC, 0x3f, struct kdapl_handle)

#define KDAPL_PSP_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x40, struct kdapl_psp_create)
#define KDAPL_PSP_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x41, struct kdapl_handle)
#define KDAPL_PSP_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x42, struct kdapl_psp_query)
#define KDAPL_RSP_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x43, struct kdapl_rsp)
#define KDAPL_RSP_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x44, struct kdapl_handle)
#define KDAPL_RSP_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x45, struct kdapl_rsp)
#define KDAPL_CSP_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x46, struct kdapl_csp)
#define KDAPL_CSP_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x47, struct kdapl_handle)
#define KDAPL_CSP_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x48, struct kdapl_csp)

#define KDAPL_CR_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x50, struct kdapl_cr_query)
#define KDAPL_CR_ACCEPT		_IOWR(KDAPL_IOC_MAGIC, 0x51, struct kdapl_cr_answer)
#define KDAPL_CR_REJECT		_IOWR(KDAPL_IOC_MAGIC, 0x52, struct kdapl_cr_answer)
#define KDAPL_CR_HANDOFF	_IOWR(KDAPL_IOC_MAGIC, 0x53, struct kdapl_cr_handoff)

#define KDAPL_LMR_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x60, struct kdapl_lmr_create)
#define KDAPL_LMR_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x61, struct kdapl_handle)
#define KDAPL_LMR_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x62, struct kdapl_lmr_query)

#define KDAPL_RMR_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x63, struct kdapl_rmr_create)
#define KDAPL_RMR_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x64, struct kdapl_handle)
#define KDAPL_RMR_BIND		_IOWR(KDAPL_IOC_MAGIC, 0x65, struct kdapl_rmr_bind)
#define KDAPL_RMR_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x66, struct kdapl_rmr_query)

#define KDAPL_CNO_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x70, struct kdapl_cno)
#define KDAPL_CNO_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x71, struct kdapl_handle)
#define KDAPL_CNO_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x72, struct kdapl_cno_query)
#define KDAPL_CNO_WAIT		_IOWR(KDAPL_IOC_MAGIC, 0x73, struct kdapl_cno_wait)
#define KDAPL_CNO_TRIGGER	_IOWR(KDAPL_IOC_MAGIC, 0x74, struct kdapl_handle)
#define KDAPL_CNO_MODIFY_AGENT	_IOWR(KDAPL_IOC_MAGIC, 0x75, struct kdapl_cno)
#define KDAPL_CNO_FD		_IOWR(KDAPL_IOC_MAGIC, 0x76, struct kdapl_cno_fd)

#define KDAPL_SRQ_CREATE	_IOWR(KDAPL_IOC_MAGIC, 0x80, struct kdapl_srq_create)
#define KDAPL_SRQ_FREE		_IOWR(KDAPL_IOC_MAGIC, 0x81, struct kdapl_handle)
#define KDAPL_SRQ_POST_RECV	_IOWR(KDAPL_IOC_MAGIC, 0x82, struct kdapl_srq_post)
#define KDAPL_SRQ_QUERY		_IOWR(KDAPL_IOC_MAGIC, 0x83, struct kdapl_srq_query)
#define KDAPL_SRQ_RESIZE	_IOWR(KDAPL_IOC_MAGIC, 0x84, struct kdapl_srq_number)
#define KDAPL_SRQ_SET_LW	_IOWR(KDAPL_IOC_MAGIC, 0x85, struct kdapl_srq_number)

#define KDAPL_URING_CANCEL	_IOWR(KDAPL_IOC_MAGIC, 0x90, struct kdapl_uring_cancel)
#define KDAPL_URING_STREAM	_IOWR(KDAPL_IOC_MAGIC, 0x91, struct kdapl_uring_stream)

#endif /* _UAPI_RDMA_KDAPL_H */

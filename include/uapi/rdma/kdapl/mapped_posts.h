/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Mapped posts: DTOs that a process posts without a call for each. */
#ifndef _UAPI_RDMA_KDAPL_MAPPED_POSTS_H
#define _UAPI_RDMA_KDAPL_MAPPED_POSTS_H

#include <rdma/kdapl/common.h>
#include <rdma/kdapl/dto.h>
#include <rdma/kdapl/mapped_events.h>

/*
 * Mapped posts: mmap() of /dev/kdapl at KDAPL_MAP_POSTS_OFFSET. See docs/ioctl/dto.md, "Mapped
 * posts".
 */
#define KDAPL_MAP_PROMISE	0	/* one page, read-only: kdapl_mapped_promise */
#define KDAPL_MAP_POSTS		1	/* two pages, to write: kdapl_mapped_posts, the DTOs */
#define KDAPL_MAP_IS_EP		0x1000000000000000ULL
#define KDAPL_MAP_POSTS_OFFSET(ep, area)	(KDAPL_MAP_IS_EP | KDAPL_MAP_OFFSET(ep, area))

/**
 * struct kdapl_mapped_promise - promise of the kernel to post mapped DTOs
 * @promise: number of the promise, or 0 while there is none
 * @slots: number of slots for DTOs: a power of two
 * @dto_size: size of a slot in bytes: that of the kernel's struct kdapl_mapped_dto
 * @room: number of DTOs that may be mapped under this promise
 * @pad: 0
 */
struct kdapl_mapped_promise {
	__u32 promise;
	__u32 slots;
	__u32 dto_size;
	__u32 room;
	__u32 pad;
};

/**
 * struct kdapl_mapped_posts - position of the process in the mapped DTOs
 * @tail: index after the newest DTO. The process advances it.
 * @pad: 0
 *
 * The slot of an index is its remainder by the number of slots. The slots are the second page.
 */
struct kdapl_mapped_posts {
	__u32 tail;
	__u32 pad;
};

/**
 * struct kdapl_mapped_dto - DTO that a process posts without a call
 * @operation: KDAPL_DTO_SEND, _RDMA_WRITE or _RDMA_READ
 * @flags: KDAPL_COMPLETION_*
 * @cookie: cookie of the completion
 * @local: the local segment
 * @remote: segment of the peer's memory, as in struct kdapl_dto
 * @reserved: 0
 */
struct kdapl_mapped_dto {
	__u32 operation;
	__u32 flags;
	__u64 cookie;
	struct kdapl_triplet local;
	struct kdapl_triplet remote;
	__u64 reserved[2];
};

#endif /* _UAPI_RDMA_KDAPL_MAPPED_POSTS_H */

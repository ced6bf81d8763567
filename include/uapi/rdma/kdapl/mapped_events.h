/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Mapped events: an EVD whose events a process takes without a call. */
#ifndef _UAPI_RDMA_KDAPL_MAPPED_EVENTS_H
#define _UAPI_RDMA_KDAPL_MAPPED_EVENTS_H

#include <rdma/kdapl/common.h>
#include <rdma/kdapl/event.h>

/*
 * Mapped events: mmap() of /dev/kdapl at KDAPL_MAP_OFFSET. See docs/ioctl/events.md, "Mapped events".
 */
#define KDAPL_MAP_EVENTS	0	/* two pages, read-only: kdapl_mapped_ring, the events */
#define KDAPL_MAP_INDEX		1	/* one page, to read and write: kdapl_mapped_index */
#define KDAPL_MAP_EVD_SHIFT	17
#define KDAPL_MAP_EVD_MASK	0x7ffffffffffULL	/* low bits of the handle */
#define KDAPL_MAP_AREA_SHIFT	16
#define KDAPL_MAP_OFFSET(evd, area) \
	(((evd) & KDAPL_MAP_EVD_MASK) << KDAPL_MAP_EVD_SHIFT | (area) << KDAPL_MAP_AREA_SHIFT)

/* struct kdapl_mapped_ring.empty */
#define KDAPL_MAPPED_EMPTY	1

/* struct kdapl_mapped_ring.flags */
#define KDAPL_MAPPED_CALLS_ONLY	0x1	/* take events by calls */

/**
 * struct kdapl_mapped_ring - events of an EVD that a process takes without a call
 * @tail: index after the newest event. The kernel advances it.
 * @flags: KDAPL_MAPPED_*
 * @slots: number of slots: a power of two
 * @empty: KDAPL_MAPPED_EMPTY while no event is queued but the mapped ones
 * @event_size: size of a slot in bytes: that of the kernel's struct kdapl_event
 *
 * The slot of an index is its remainder by @slots. The slots are the second page. A program that
 * knows a shorter struct kdapl_event ignores the end of each slot.
 */
struct kdapl_mapped_ring {
	__u32 tail;
	__u32 flags;
	__u32 slots;
	__u32 empty;
	__u32 event_size;
};

/**
 * struct kdapl_mapped_index - position of the process in the mapped events
 * @head: index of the oldest event. A thread takes an event by advancing it with a
 *        compare-and-exchange.
 * @pad: 0
 */
struct kdapl_mapped_index {
	__u32 head;
	__u32 pad;
};

#endif /* _UAPI_RDMA_KDAPL_MAPPED_EVENTS_H */

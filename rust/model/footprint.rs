// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Estimates of the memory that a driver allocates for an object, and of an allocation of this
//! module, in kilobytes.
//!
//! A driver neither reports its allocations nor charges them to a memory cgroup. The estimates
//! follow soft-RoCE (`rdma_rxe`), which allocates the most. Its queues have a power of two of
//! slots, with one slot more than requested, and each slot has a power of two of bytes. Drivers of
//! adapters keep similar queues in host memory.

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Bytes of a scatter/gather element.
const SEGMENT: u64 = 16;

/// Bytes of a completion queue entry.
const COMPLETION: u64 = 128;

/// Bytes of a send queue entry without its scatter/gather elements.
const REQUEST: u64 = 208;

/// Bytes of a receive queue entry without its scatter/gather elements.
const RECEIVE: u64 = 48;

/// Bytes of the smallest queue slot: a cache line.
const LEAST_SLOT: u64 = 64;

/// Bytes of a queue pair without its queues: its structure, the resources for incoming RDMA reads,
/// the socket that soft-RoCE opens, and the connection ids of `rdma_cm` and `ib_cm`.
const QUEUE_PAIR: u64 = 12 << 10;

/// Bytes of the structure of any other object: protection domain, completion queue, memory region.
const OBJECT: u64 = 1 << 10;

/// Bytes of a memory region for each page that it covers.
const REGION_PAGE: u64 = 32;

/// Bytes that `rdma_cm` and `ib_cm` allocate for a listener, without its backlog over iWARP, or for
/// an unanswered connection request.
const IDENTIFIER: u64 = 4 << 10;

/// Backlog of a listener over iWARP: connection requests for which `rdma_cm` has not called the
/// handler yet. `iw_cm` and the driver allocate memory for each when they begin to listen. A
/// service point limits its unanswered requests itself.
pub(crate) const IWARP_BACKLOG: u32 = 128;

/// Bytes for each connection request of this backlog: `struct iwcm_work`, and that of siw or erdma.
/// Includes a part of the listener's socket.
const IWARP_REQUEST: u64 = 800;

/// Converts bytes to kilobytes, rounding up.
fn kilobytes(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

/// Returns the bytes of a queue of `count` entries of `entry` bytes: whole pages.
fn queue(count: u32, entry: u64) -> u64 {
    let slots = u64::from(count).saturating_add(1).next_power_of_two();
    let slot = entry.max(LEAST_SLOT).next_power_of_two();
    slots
        .saturating_mul(slot)
        .div_ceil(PAGE)
        .saturating_add(1)
        .saturating_mul(PAGE)
}

/// Returns the bytes of a queue entry with `segments` scatter/gather elements.
fn entry(fixed: u64, segments: u32) -> u64 {
    u64::from(segments)
        .saturating_mul(SEGMENT)
        .saturating_add(fixed)
}

/// Returns the kilobytes of an object without queues: a protection domain, or an open adapter.
pub(crate) fn object() -> u32 {
    kilobytes(OBJECT)
}

/// Returns the kilobytes of a completion queue.
pub(crate) fn completion_queue(entries: u32) -> u32 {
    kilobytes(queue(entries, COMPLETION).saturating_add(OBJECT))
}

/// Size of one of the two queues of a queue pair: the number of Data Transfer Operations, and the
/// number of segments of each.
#[derive(Clone, Copy)]
pub(crate) struct WorkQueue {
    pub(crate) dtos: u32,
    pub(crate) segments: u32,
}

/// Returns the kilobytes of a queue pair with these queues.
pub(crate) fn queue_pair(requests: WorkQueue, receives: WorkQueue) -> u32 {
    let requests = queue(requests.dtos, entry(REQUEST, requests.segments));
    let receives = queue(receives.dtos, entry(RECEIVE, receives.segments));
    kilobytes(requests.saturating_add(receives).saturating_add(QUEUE_PAIR))
}

/// Returns the kilobytes of a shared receive queue.
pub(crate) fn receive_queue(receives: WorkQueue) -> u32 {
    let receives = queue(receives.dtos, entry(RECEIVE, receives.segments));
    kilobytes(receives.saturating_add(OBJECT))
}

/// Returns the kilobytes of a memory region of `length` bytes.
pub(crate) fn region(length: u64) -> u32 {
    let pages = (length / PAGE).saturating_add(2);
    kilobytes(pages.saturating_mul(REGION_PAGE).saturating_add(OBJECT))
}

/// Returns the kilobytes of an unanswered connection request.
pub(crate) fn identifier() -> u32 {
    kilobytes(IDENTIFIER)
}

/// Returns the kilobytes of a listener.
pub(crate) fn listener(is_iwarp: bool) -> u32 {
    let backlog = match is_iwarp {
        true => u64::from(IWARP_BACKLOG).saturating_mul(IWARP_REQUEST),
        false => 0,
    };
    kilobytes(IDENTIFIER.saturating_add(backlog))
}

/// Returns the kilobytes of an allocation of this module. The allocator gives a power of two of
/// bytes, or of pages if it is large.
pub(crate) fn allocation(bytes: usize) -> u32 {
    match bytes {
        0 => 0,
        // Widening cast.
        _ => kilobytes(
            (bytes as u64)
                .checked_next_power_of_two()
                .unwrap_or(u64::MAX),
        ),
    }
}

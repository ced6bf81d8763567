// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How much memory a driver is likely to allocate for what it is asked for, in kilobytes.
//!
//! A driver allocates without telling how much, and charges nobody. The estimate follows soft-RoCE,
//! which takes most: queues have a power of two of slots, one more than asked for, and slots have a
//! power of two of bytes. Adapters keep the same queues in the host's memory.

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Bytes of a scatter/gather element.
const SEGMENT: u64 = 16;

/// Bytes of a completion.
const COMPLETION: u64 = 128;

/// Bytes of a request without its segments.
const REQUEST: u64 = 208;

/// Bytes of a receive without its segments.
const RECEIVE: u64 = 48;

/// The smallest slot: a cache line.
const LEAST_SLOT: u64 = 64;

/// Bytes of a queue pair beside its queues: its structure, what it keeps for RDMA reads, a socket of
/// soft-RoCE's, and the id of its connection with `rdma_cm` and `ib_cm`.
const QUEUE_PAIR: u64 = 12 << 10;

/// Bytes of anything else: protection domain, completion queue, region.
const OBJECT: u64 = 1 << 10;

/// Bytes that a region takes for each page of memory.
const REGION_PAGE: u64 = 32;

/// Bytes that `rdma_cm` and `ib_cm` take for a connection request that waits, or a listener.
const IDENTIFIER: u64 = 4 << 10;

/// The kilobytes that hold so many bytes.
fn kilobytes(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

/// Bytes of a queue for `count` entries of so many bytes: whole pages.
fn queue(count: u32, entry: u64) -> u64 {
    let slots = u64::from(count).saturating_add(1).next_power_of_two();
    let slot = entry.max(LEAST_SLOT).next_power_of_two();
    slots
        .saturating_mul(slot)
        .div_ceil(PAGE)
        .saturating_add(1)
        .saturating_mul(PAGE)
}

/// Bytes of an entry with so many segments.
fn entry(fixed: u64, segments: u32) -> u64 {
    u64::from(segments)
        .saturating_mul(SEGMENT)
        .saturating_add(fixed)
}

/// A protection domain.
pub(crate) fn object() -> u32 {
    kilobytes(OBJECT)
}

/// A completion queue for so many completions.
pub(crate) fn completion_queue(entries: u32) -> u32 {
    kilobytes(queue(entries, COMPLETION).saturating_add(OBJECT))
}

/// One of the two queues of a queue pair: how many DTOs, of how many segments.
#[derive(Clone, Copy)]
pub(crate) struct WorkQueue {
    pub(crate) dtos: u32,
    pub(crate) segments: u32,
}

/// A queue pair with these queues.
pub(crate) fn queue_pair(requests: WorkQueue, receives: WorkQueue) -> u32 {
    let requests = queue(requests.dtos, entry(REQUEST, requests.segments));
    let receives = queue(receives.dtos, entry(RECEIVE, receives.segments));
    kilobytes(requests.saturating_add(receives).saturating_add(QUEUE_PAIR))
}

/// A region over so many bytes.
pub(crate) fn region(length: u64) -> u32 {
    let pages = (length / PAGE).saturating_add(2);
    kilobytes(pages.saturating_mul(REGION_PAGE).saturating_add(OBJECT))
}

/// A connection request that waits, or a listener.
pub(crate) fn identifier() -> u32 {
    kilobytes(IDENTIFIER)
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Counts of the resources that one user holds.
//!
//! A count never exceeds its limit, even if several threads charge and uncharge at the same time.
//! Memory that a driver allocates cannot be charged to a memory cgroup. It is
//! [estimated](super::footprint) and counted here instead.

use super::atomic::AtomicU32;

/// A resource that is counted for each user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// Open Interface Adapters.
    Adapter,
    /// Handles, and connection requests that have not been answered.
    Object,
    /// Service points: public, reserved and common ones.
    ServicePoint,
    /// Queue pairs.
    QueuePair,
    /// Completion queues.
    CompletionQueue,
    /// Protection domains.
    Domain,
    /// Shared receive queues.
    SharedReceiveQueue,
    /// Memory regions.
    Region,
    /// Kilobytes of memory that drivers and `rdma_cm` allocate.
    DriverMemory,
    /// Kilobytes of memory of this module whose size the user determines.
    ModuleMemory,
    /// Kilobytes of memory of processes that are pinned.
    PinnedMemory,
    /// Local ports of `rdma_cm`.
    LocalPort,
}

/// Every item, in the order of the discriminants.
pub(crate) const ITEMS: [Item; 12] = [
    Item::Adapter,
    Item::Object,
    Item::ServicePoint,
    Item::QueuePair,
    Item::CompletionQueue,
    Item::Domain,
    Item::SharedReceiveQueue,
    Item::Region,
    Item::DriverMemory,
    Item::ModuleMemory,
    Item::PinnedMemory,
    Item::LocalPort,
];

impl Item {
    /// Returns the name that `debugfs/kdapl/users` shows.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Adapter => "adapters",
            Self::Object => "objects",
            Self::ServicePoint => "service_points",
            Self::QueuePair => "queue_pairs",
            Self::CompletionQueue => "completion_queues",
            Self::Domain => "protection_domains",
            Self::SharedReceiveQueue => "shared_receive_queues",
            Self::Region => "memory_regions",
            Self::DriverMemory => "driver_memory_kb",
            Self::ModuleMemory => "module_memory_kb",
            Self::PinnedMemory => "pinned_memory_kb",
            Self::LocalPort => "local_ports",
        }
    }
}

/// Resource counts of one user.
pub(crate) struct Ledger {
    counts: [AtomicU32; ITEMS.len()],
    /// Number of requests that exceeded a limit.
    refused: AtomicU32,
}

impl Ledger {
    /// Creates a ledger with all counts at zero.
    pub(crate) fn new() -> Self {
        Self {
            counts: core::array::from_fn(|_| AtomicU32::new(0)),
            refused: AtomicU32::new(0),
        }
    }

    fn count(&self, item: Item) -> Option<&AtomicU32> {
        self.counts.get(item as usize)
    }

    /// Returns the amount of an item that is held.
    pub(crate) fn held(&self, item: Item) -> u32 {
        self.count(item).map_or(0, AtomicU32::load)
    }

    /// Returns the number of requests that were refused because they exceeded a limit.
    pub(crate) fn refused(&self) -> u32 {
        self.refused.load()
    }

    /// Charges `amount` of an item. Returns `false`, and charges nothing, if the count would exceed
    /// `limit`.
    pub(crate) fn take(&self, item: Item, amount: u32, limit: u32) -> bool {
        let taken = self
            .count(item)
            .is_some_and(|count| take_from(count, amount, limit));
        if !taken {
            self.refused.add(1);
        }
        taken
    }

    /// Uncharges `amount` of an item, which the caller has charged with [`Ledger::take`].
    pub(crate) fn give_back(&self, item: Item, amount: u32) {
        if let Some(count) = self.count(item) {
            count.sub(amount);
        }
    }
}

/// Raises a count by `amount`. Returns `false`, and leaves the count, if it would exceed `limit`.
fn take_from(count: &AtomicU32, amount: u32, limit: u32) -> bool {
    let mut held = count.load();
    loop {
        let wanted = match held.checked_add(amount) {
            Some(wanted) if wanted <= limit => wanted,
            Some(_) | None => return false,
        };
        match count.exchange_if(held, wanted) {
            Ok(()) => return true,
            Err(other) => held = other,
        }
    }
}

/// Returns the amount of an item that one user may hold where `available` of them exist: on a
/// device, or in a network namespace.
///
/// `share` is a percentage; the rest is left to other users. The result is at least 1. A device
/// that reports 0 does not report its limit, so the result is `u32::MAX`.
pub(crate) fn share_of(available: u32, share: u32) -> u32 {
    if available == 0 {
        return u32::MAX;
    }
    let part = u64::from(available).saturating_mul(share.min(100).into()) / 100;
    u32::try_from(part).unwrap_or(u32::MAX).max(1)
}

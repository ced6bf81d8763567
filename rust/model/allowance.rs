// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What one user holds, and how much of it.
//!
//! A count never exceeds its limit, whichever threads take and give back at the same time. Memory
//! that a driver allocates cannot be charged to a memory cgroup: it is [estimated](super::footprint)
//! and counted here.

use super::atomic::AtomicU32;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// Open adapters.
    Adapter,
    /// Handles, and connection requests that wait.
    Object,
    /// Service points.
    ServicePoint,
    /// Queue pairs.
    QueuePair,
    /// Completion queues.
    CompletionQueue,
    /// Protection domains.
    Domain,
    /// Memory regions.
    Region,
    /// Kilobytes that drivers and `rdma_cm` allocate.
    DriverMemory,
}

/// Every item, in the order of its number.
pub(crate) const ITEMS: [Item; 8] = [
    Item::Adapter,
    Item::Object,
    Item::ServicePoint,
    Item::QueuePair,
    Item::CompletionQueue,
    Item::Domain,
    Item::Region,
    Item::DriverMemory,
];

impl Item {
    /// Its name in `debugfs/kdapl/users`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Adapter => "adapters",
            Self::Object => "objects",
            Self::ServicePoint => "service_points",
            Self::QueuePair => "queue_pairs",
            Self::CompletionQueue => "completion_queues",
            Self::Domain => "protection_domains",
            Self::Region => "memory_regions",
            Self::DriverMemory => "driver_memory_kb",
        }
    }
}

/// The counts of one user.
pub(crate) struct Ledger {
    counts: [AtomicU32; ITEMS.len()],
    refused: AtomicU32,
}

impl Ledger {
    /// Nothing is held.
    pub(crate) fn new() -> Self {
        Self {
            counts: core::array::from_fn(|_| AtomicU32::new(0)),
            refused: AtomicU32::new(0),
        }
    }

    fn count(&self, item: Item) -> Option<&AtomicU32> {
        self.counts.get(item as usize)
    }

    /// How much of an item is held.
    pub(crate) fn held(&self, item: Item) -> u32 {
        self.count(item).map_or(0, AtomicU32::load)
    }

    /// How often more was asked for than the limit.
    pub(crate) fn refused(&self) -> u32 {
        self.refused.load()
    }

    /// Takes `amount` of an item, unless more than `limit` would be held then.
    pub(crate) fn take(&self, item: Item, amount: u32, limit: u32) -> bool {
        let taken = self
            .count(item)
            .is_some_and(|count| take_from(count, amount, limit));
        if !taken {
            self.refused.add(1);
        }
        taken
    }

    /// Gives back what was taken.
    pub(crate) fn give_back(&self, item: Item, amount: u32) {
        if let Some(count) = self.count(item) {
            count.sub(amount);
        }
    }
}

/// Raises a count by `amount`, unless it would exceed `limit`.
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

/// How many of an item one user may hold of a device that has `available` of them.
///
/// `share` is a percentage: what is left over is for others. A device that says 0 tells nothing.
pub(crate) fn share_of(available: u32, share: u32) -> u32 {
    if available == 0 {
        return u32::MAX;
    }
    let part = u64::from(available).saturating_mul(share.min(100).into()) / 100;
    u32::try_from(part).unwrap_or(u32::MAX).max(1)
}

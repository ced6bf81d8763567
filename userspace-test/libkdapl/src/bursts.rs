// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Knowledge of an open file that its endpoints need to [map posts](crate::ep).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

/// Number of calls, and the registered memory, of an open file.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    /// Number of calls that took events or waited for them. A burst of posts ends with one.
    takes: AtomicU32,
    /// A DTO was mapped after the last of these calls.
    has_mapped: AtomicBool,
    /// Events are taken without such calls, so a mapped DTO might wait for the kernel's timer.
    has_files: AtomicBool,
    /// Addresses of the regions, by their LMR contexts.
    regions: RwLock<HashMap<u32, Range<u64>>>,
    /// Number of regions that were freed so far.
    frees: AtomicU32,
}

impl Bursts {
    /// Notes a call that takes events or waits for them. The kernel first posts the mapped DTOs.
    pub(crate) fn note_take(&self) {
        self.has_mapped.store(false, Ordering::Relaxed);
        self.takes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of calls so far.
    pub(crate) fn takes(&self) -> u32 {
        self.takes.load(Ordering::Relaxed)
    }

    /// Notes a mapped DTO.
    pub(crate) fn note_mapped(&self) {
        self.has_mapped.store(true, Ordering::Relaxed);
    }

    /// Checks whether a DTO was mapped after the last call.
    pub(crate) fn has_mapped(&self) -> bool {
        self.has_mapped.load(Ordering::Relaxed)
    }

    /// Notes that events are taken from a file or by io_uring. No DTO is mapped from now on.
    pub(crate) fn note_file(&self) {
        self.has_files.store(true, Ordering::Relaxed);
    }

    /// Checks whether DTOs may be mapped.
    pub(crate) fn may_map(&self) -> bool {
        !self.has_files.load(Ordering::Relaxed)
    }

    /// Adds a region.
    pub(crate) fn add_region(&self, context: u32, memory: Range<u64>) {
        self.regions.write().unwrap_or_else(PoisonError::into_inner).insert(context, memory);
    }

    /// Removes a region, which is about to be freed. Has no effect if it was removed before.
    pub(crate) fn remove_region(&self, context: u32, memory: &Range<u64>) {
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        if regions.get(&context) == Some(memory) {
            regions.remove(&context);
            self.frees.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns the addresses of the region with this context.
    pub(crate) fn region(&self, context: u32) -> Option<Range<u64>> {
        let regions = self.regions.read().unwrap_or_else(PoisonError::into_inner);
        regions.get(&context).cloned()
    }

    /// Returns the number of regions that were freed so far.
    pub(crate) fn frees(&self) -> u32 {
        self.frees.load(Ordering::SeqCst)
    }
}

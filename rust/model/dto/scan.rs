// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Search for the Data Transfer Operations (DTOs) in flight, which is carried out in parts.
//!
//! The caller holds a spinlock, and the consumer chooses the number of slots. So the caller
//! releases the lock after each part.

use super::Dto;

/// Result of a [`DtoSlots::find_busy`](super::DtoSlots::find_busy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Slot of the first DTO in flight, and the DTO; `None` if all slots that were examined are
    /// free.
    pub(crate) found: Option<(u32, Dto)>,
    /// Slot at which the next scan starts; `None` after the last one.
    pub(crate) next: Option<u32>,
}

/// A part of a search, which ends after a number of DTOs, or after many free slots.
pub(crate) struct ScanPart {
    next: Option<u32>,
    /// Number of DTOs that the part may still find.
    left: u32,
}

impl ScanPart {
    /// Begins a part that starts at slot `from`, and finds at most `most` DTOs.
    pub(crate) const fn new(from: u32, most: u32) -> Self {
        Self {
            next: Some(from),
            left: most,
        }
    }

    /// Returns the next DTO in flight and its slot; `None` at the end of the part. `find` is a
    /// [`DtoSlots::find_busy`](super::DtoSlots::find_busy).
    pub(crate) fn advance(&mut self, find: impl FnOnce(u32) -> Scan) -> Option<(u32, Dto)> {
        self.left = self.left.checked_sub(1)?;
        let scan = find(self.next?);
        self.next = scan.next;
        if scan.found.is_none() {
            self.left = 0;
        }
        scan.found
    }

    /// Returns the slot at which the next part starts; `None` at the end of the search.
    pub(crate) const fn rest(&self) -> Option<u32> {
        self.next
    }
}

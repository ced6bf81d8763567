// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A table that grows without moving its entries.
//!
//! A vector that grows copies its entries. Under a spinlock that can take too long, since a program
//! chooses their number. This table grows by another segment, which the caller allocates and
//! initializes before it takes the lock. The entries stay at their addresses.
//!
//! ```text
//!   segment:    0            1                        2
//!   entries:  0..16       16..48                  48..112  ...       each twice the last
//! ```
//!
//! Finding an entry takes a count of leading zeros and two array accesses at any length. No
//! function here iterates over the entries.

use core::ops::DerefMut;

/// Number of entries of the first segment: a power of two.
const FIRST: u32 = 1 << FIRST_SHIFT;

const FIRST_SHIFT: u32 = 4;

/// Largest number of segments. They hold more entries than an adapter has handles.
const MAX_SEGMENTS: usize = 17;

/// Returns the segment that holds an entry, and the offset of the entry in it.
const fn locate(index: u32) -> Option<(usize, usize)> {
    // After adding FIRST, each segment starts at a power of two.
    let Some(index) = index.checked_add(FIRST) else {
        return None;
    };
    let power = index.ilog2();
    let segment = power.wrapping_sub(FIRST_SHIFT);
    let offset = index ^ 1_u32.wrapping_shl(power);
    Some((segment as usize, offset as usize))
}

/// A table of segments, over storage that the caller provides.
pub(crate) struct SegmentedTable<S> {
    segments: [Option<S>; MAX_SEGMENTS],
    /// Number of segments.
    count: u32,
}

impl<T, S: DerefMut<Target = [T]>> SegmentedTable<S> {
    /// Creates a table without entries.
    pub(crate) const fn new() -> Self {
        Self {
            segments: [const { None }; MAX_SEGMENTS],
            count: 0,
        }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> u32 {
        FIRST.wrapping_shl(self.count).wrapping_sub(FIRST)
    }

    /// Returns the length of the next segment; `None` if the table has the maximum.
    pub(crate) fn next_len(&self) -> Option<usize> {
        ((self.count as usize) < MAX_SEGMENTS).then_some(FIRST.wrapping_shl(self.count) as usize)
    }

    /// Adds a segment.
    ///
    /// # Errors
    ///
    /// Returns the segment if its length is not [`SegmentedTable::next_len`], because another
    /// caller has added a segment in the meantime. The caller drops it after it has released the
    /// lock.
    pub(crate) fn grow(&mut self, segment: S) -> Result<(), S> {
        if self.next_len() != Some(segment.len()) {
            return Err(segment);
        }
        let Some(slot) = self.segments.get_mut(self.count as usize) else {
            return Err(segment);
        };
        *slot = Some(segment);
        self.count = self.count.wrapping_add(1);
        Ok(())
    }

    /// Returns the entry with this number.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (segment, offset) = locate(index)?;
        self.segments.get(segment)?.as_ref()?.get(offset)
    }

    /// Returns the entry with this number, mutably.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let (segment, offset) = locate(index)?;
        self.segments.get_mut(segment)?.as_mut()?.get_mut(offset)
    }
}

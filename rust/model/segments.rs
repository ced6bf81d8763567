// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A table that grows without moving its entries.
//!
//! A vector that grows copies all that it holds. Under a spinlock that takes too long: a program
//! chooses how many entries there are. Here a longer table is one segment more, which the caller
//! allocates and initialises before it takes the lock. The entries stay where they are.
//!
//! ```text
//!   segment:    0            1                        2
//!   entries:  0..16       16..48                  48..112  ...       each as long as two of the last
//! ```
//!
//! Finding an entry takes a count of leading zeros and two array accesses, whatever the length.
//! Nothing here walks the entries: each call touches one.

use core::ops::DerefMut;

/// Entries of the first segment: a power of two.
const FIRST: u32 = 1 << FIRST_SHIFT;

const FIRST_SHIFT: u32 = 4;

/// The most segments: with them a table has an entry for each handle of an adapter, and more.
const MOST: usize = 17;

/// Which segment holds an entry, and at which place.
const fn place(index: u32) -> Option<(usize, usize)> {
    // Counted from FIRST, the segments begin at powers of two.
    let Some(index) = index.checked_add(FIRST) else {
        return None;
    };
    let power = index.ilog2();
    let segment = power.wrapping_sub(FIRST_SHIFT);
    let offset = index ^ 1_u32.wrapping_shl(power);
    Some((segment as usize, offset as usize))
}

/// A table in segments, over caller-provided storage.
pub(crate) struct Segments<S> {
    segments: [Option<S>; MOST],
    /// How many segments there are.
    count: u32,
}

impl<T, S: DerefMut<Target = [T]>> Segments<S> {
    /// Makes a table without entries.
    pub(crate) const fn new() -> Self {
        Self {
            segments: [const { None }; MOST],
            count: 0,
        }
    }

    /// Returns how many entries there are.
    pub(crate) fn len(&self) -> u32 {
        FIRST.wrapping_shl(self.count).wrapping_sub(FIRST)
    }

    /// Returns how long the next segment has to be; `None` if there may be no more.
    pub(crate) fn next_len(&self) -> Option<usize> {
        ((self.count as usize) < MOST).then_some(FIRST.wrapping_shl(self.count) as usize)
    }

    /// Adds a segment.
    ///
    /// # Errors
    ///
    /// The segment comes back if its length is not [`Segments::next_len`]: another caller has added
    /// one of that length in the meantime. The caller drops it after the lock.
    pub(crate) fn grow(&mut self, segment: S) -> Result<(), S> {
        if self.next_len() != Some(segment.len()) {
            return Err(segment);
        }
        let Some(place) = self.segments.get_mut(self.count as usize) else {
            return Err(segment);
        };
        *place = Some(segment);
        self.count = self.count.wrapping_add(1);
        Ok(())
    }

    /// Returns the entry with this number.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (segment, offset) = place(index)?;
        self.segments.get(segment)?.as_ref()?.get(offset)
    }

    /// Returns the entry with this number, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let (segment, offset) = place(index)?;
        self.segments.get_mut(segment)?.as_mut()?.get_mut(offset)
    }
}

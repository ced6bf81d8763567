// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Byte ranges of a message that have arrived.
//!
//! The parts of a striped message arrive in any order. Ranges that touch collapse into one, so that
//! a message of at most `2 * N` parts never needs more than `N` ranges, and a complete message is
//! one range.

/// Arrived ranges: each has a start and an end, they are sorted, and none touches another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ranges<const N: usize> {
    ranges: [(u64, u64); N],
    count: usize,
}

impl<const N: usize> Ranges<N> {
    /// Creates an empty set.
    pub(crate) const fn new() -> Self {
        Self {
            ranges: [(0, 0); N],
            count: 0,
        }
    }

    /// Adds a range. Returns `false`, and changes nothing, if it is empty, if a part of it has
    /// arrived already, or if there are too many gaps.
    pub(crate) fn insert(&mut self, start: u64, length: u64) -> bool {
        let Some(end) = start.checked_add(length).filter(|_| length > 0) else {
            return false;
        };
        let used = self.ranges.get(..self.count).unwrap_or_default();
        // The ranges before this position end before the new one.
        let at = used.partition_point(|range| range.1 <= start);
        if used.get(at).is_some_and(|range| range.0 < end) {
            return false;
        }
        let touches_left = at > 0 && used.get(at.wrapping_sub(1)).is_some_and(|r| r.1 == start);
        let touches_right = used.get(at).is_some_and(|range| range.0 == end);
        match (touches_left, touches_right) {
            (true, true) => self.join(at),
            (true, false) => self.set(at.wrapping_sub(1), |range| range.1 = end),
            (false, true) => self.set(at, |range| range.0 = start),
            (false, false) => return self.open(at, (start, end)),
        }
        true
    }

    /// Returns whether all bytes up to `length` have arrived, and none after it.
    pub(crate) fn is_whole(&self, length: u64) -> bool {
        self.count == 1 && self.ranges.first() == Some(&(0, length))
    }

    /// Collapses the ranges before and at `at`, whose gap was filled.
    fn join(&mut self, at: usize) {
        let Some(&(_, end)) = self.ranges.get(at) else {
            return;
        };
        self.set(at.wrapping_sub(1), |range| range.1 = end);
        self.ranges.copy_within(at.wrapping_add(1)..self.count, at);
        self.count = self.count.wrapping_sub(1);
    }

    /// Inserts a range that touches no other one.
    fn open(&mut self, at: usize, range: (u64, u64)) -> bool {
        if self.count >= N {
            return false;
        }
        self.ranges.copy_within(at..self.count, at.wrapping_add(1));
        self.set(at, |place| *place = range);
        self.count = self.count.wrapping_add(1);
        true
    }

    fn set(&mut self, at: usize, change: impl FnOnce(&mut (u64, u64))) {
        if let Some(range) = self.ranges.get_mut(at) {
            change(range);
        }
    }
}

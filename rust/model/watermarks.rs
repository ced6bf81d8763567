// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! High watermarks of the receive buffers of an Endpoint: `dat_ep_set_watermark`.
//!
//! A receive counts from its completion until the consumer has taken its event. The soft watermark
//! is reported once after each setting. The hard watermark holds until it is changed.

/// Watermarks; `None` for `DAT_WATERMARK_INFINITE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) soft: Option<u32>,
    pub(crate) hard: Option<u32>,
}

impl Marks {
    /// Returns whether there is a watermark to compare with.
    pub(crate) fn any(self) -> bool {
        self.soft.is_some() || self.hard.is_some()
    }
}

/// Watermarks that a count has exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exceeded {
    pub(crate) soft: bool,
    pub(crate) hard: bool,
}

/// Watermarks of an Endpoint, and the number of its receives that count.
pub(crate) struct Watermarks {
    marks: Marks,
    /// The soft watermark was reported since it was set.
    reported: bool,
    count: u32,
}

impl Watermarks {
    /// Sets the watermarks of an Endpoint with `count` receives.
    pub(crate) fn new(marks: Marks, count: u32) -> Self {
        Self {
            marks,
            reported: false,
            count,
        }
    }

    /// Counts receives that have completed.
    pub(crate) fn add(&mut self, count: u32) {
        self.count = self.count.saturating_add(count);
    }

    /// Counts a receive whose event the consumer has taken.
    pub(crate) fn take_one(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// Returns the watermarks that are exceeded, but the soft one only once.
    pub(crate) fn check(&mut self) -> Exceeded {
        let exceeds = |mark: Option<u32>| mark.is_some_and(|mark| self.count > mark);
        let (soft, hard) = (exceeds(self.marks.soft), exceeds(self.marks.hard));
        let is_new = soft && !self.reported;
        self.reported |= soft;
        Exceeded { soft: is_new, hard }
    }
}

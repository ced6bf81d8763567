// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Deadlines of waits.

use super::alarm::NextCheck;
use kdapl_bindings as bindings;

/// Time at which a wait ends with a time-out.
#[derive(Clone, Copy)]
pub(crate) enum Deadline {
    /// The wait has no time-out.
    Never,
    /// The wait ends at this time.
    At(Time),
}

/// Time of a [`Deadline`].
#[derive(Clone, Copy)]
pub(crate) struct Time {
    /// Time of `CLOCK_MONOTONIC`, in nanoseconds.
    pub(super) at: i64,
    pub(super) next_check: NextCheck,
}

impl Time {
    /// Returns the remaining time in nanoseconds.
    pub(super) fn left(&self) -> i64 {
        self.at.saturating_sub(now())
    }
}

impl Deadline {
    /// Returns the deadline that is `microseconds` from now.
    pub(crate) fn after_micros(microseconds: u32) -> Self {
        Self::after_nanos(u64::from(microseconds).saturating_mul(1_000))
    }

    /// Returns the deadline that is `nanoseconds` from now.
    pub(crate) fn after_nanos(nanoseconds: u64) -> Self {
        let nanoseconds = i64::try_from(nanoseconds).unwrap_or(i64::MAX);
        Self::At(Time {
            at: now().saturating_add(nanoseconds),
            next_check: NextCheck::with(nanoseconds),
        })
    }

    /// Returns the deadline at which `CLOCK_MONOTONIC` of the calling process reads `nanoseconds`.
    ///
    /// Context: process.
    pub(crate) fn at_nanos(nanoseconds: u64) -> Self {
        let nanoseconds = i64::try_from(nanoseconds).unwrap_or(i64::MAX);
        // SAFETY: The calling task is a live process, so it has a time namespace.
        let offset = unsafe { bindings::kdapl_helper_monotonic_offset() };
        Self::At(Time {
            // The kernel's timers accept no negative time.
            at: nanoseconds.saturating_sub(offset).max(0),
            next_check: NextCheck::unknown(),
        })
    }

    /// Returns the remaining milliseconds, rounded up, or `None` without a time-out.
    pub(crate) fn millis_left(self) -> Option<u64> {
        match self {
            Self::Never => None,
            Self::At(time) => Some(u64::try_from(time.left()).unwrap_or(0).div_ceil(1_000_000)),
        }
    }

    /// Returns the remaining nanoseconds, or `None` without a time-out.
    pub(crate) fn nanos_left(self) -> Option<i64> {
        match self {
            Self::Never => None,
            Self::At(time) => Some(time.left().max(0)),
        }
    }

    /// Returns whether the deadline has passed.
    pub(crate) fn has_passed(self) -> bool {
        match self {
            Self::Never => false,
            Self::At(time) => time.left() <= 0,
        }
    }
}

/// Returns the time of `CLOCK_MONOTONIC`, in nanoseconds.
pub(crate) fn now() -> i64 {
    // SAFETY: Reading the clock has no precondition.
    unsafe { bindings::ktime_get() }
}

#[kernel::prelude::kunit_tests(kdapl_sys_wait_deadline)]
mod tests {
    use super::*;

    #[test]
    fn never() {
        assert!(!Deadline::Never.has_passed());
        assert!(Deadline::Never.millis_left().is_none());
    }

    #[test]
    fn nothing_is_left_of_a_passed_deadline() {
        for deadline in [
            Deadline::after_micros(0),
            Deadline::after_nanos(0),
            Deadline::at_nanos(0),
        ] {
            assert!(deadline.has_passed());
            assert_eq!(deadline.millis_left(), Some(0));
        }
    }

    #[test]
    fn the_farthest_deadlines_do_not_wrap_around() {
        for deadline in [
            Deadline::after_nanos(u64::MAX),
            Deadline::at_nanos(u64::MAX),
            Deadline::after_micros(u32::MAX),
        ] {
            assert!(!deadline.has_passed());
            assert!(deadline.millis_left() > Some(0));
        }
    }
}

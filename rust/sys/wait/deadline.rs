// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! When a wait gives up.

use super::alarm::Look;
use kdapl_bindings as bindings;

/// When a wait gives up.
#[derive(Clone, Copy)]
pub(crate) enum Deadline {
    /// Never.
    Never,
    /// At some time.
    At(Time),
}

/// The time of a [`Deadline`].
#[derive(Clone, Copy)]
pub(crate) struct Time {
    /// Of `CLOCK_MONOTONIC`, in nanoseconds.
    pub(super) at: i64,
    pub(super) look: Look,
}

impl Time {
    /// How many nanoseconds are left.
    pub(super) fn left(&self) -> i64 {
        self.at.saturating_sub(now())
    }
}

impl Deadline {
    /// `microseconds` from now.
    pub(crate) fn after_micros(microseconds: u32) -> Self {
        let nanoseconds = i64::from(microseconds).saturating_mul(1_000);
        Self::At(Time {
            at: now().saturating_add(nanoseconds),
            look: Look::with(nanoseconds),
        })
    }

    /// `nanoseconds` from now.
    pub(crate) fn after_nanos(nanoseconds: u64) -> Self {
        let nanoseconds = i64::try_from(nanoseconds).unwrap_or(i64::MAX);
        Self::At(Time {
            at: now().saturating_add(nanoseconds),
            look: Look::with(nanoseconds),
        })
    }

    /// When the calling process' `CLOCK_MONOTONIC` shows `nanoseconds`. Context: process.
    pub(crate) fn at_nanos(nanoseconds: u64) -> Self {
        let nanoseconds = i64::try_from(nanoseconds).unwrap_or(i64::MAX);
        // SAFETY: The caller is a process that lives, and so is in a time namespace.
        let offset = unsafe { bindings::kdapl_helper_monotonic_offset() };
        Self::At(Time {
            // The kernel's timers take no time before the start of the clock.
            at: nanoseconds.saturating_sub(offset).max(0),
            look: Look::unknown(),
        })
    }

    /// How many milliseconds are left, rounded up; `None` of one that never passes.
    pub(crate) fn millis_left(self) -> Option<u64> {
        match self {
            Self::Never => None,
            Self::At(time) => Some(u64::try_from(time.left()).unwrap_or(0).div_ceil(1_000_000)),
        }
    }

    /// Whether it is over.
    pub(crate) fn has_passed(self) -> bool {
        match self {
            Self::Never => false,
            Self::At(time) => time.left() <= 0,
        }
    }
}

/// The time of `CLOCK_MONOTONIC`, in nanoseconds.
pub(crate) fn now() -> i64 {
    // SAFETY: Reading the clock has no precondition.
    unsafe { bindings::ktime_get() }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Time-outs: a duration, or a point in time.

use crate::raw::monotonic_nanoseconds;
use crate::sys::*;
use std::time::Duration;

/// A point in time of `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(pub u64);

impl Monotonic {
    /// Returns the current time.
    #[must_use]
    pub fn now() -> Self {
        Self(monotonic_nanoseconds())
    }

    /// Returns the time `duration` from now.
    #[must_use]
    pub fn after(duration: Duration) -> Self {
        Self(Self::now().0.saturating_add(nanoseconds(duration)))
    }
}

/// Time-out of a call, in the form of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Until {
    pub(crate) timeout_ns: u64,
    flags: u32,
}

impl Until {
    /// Does not wait.
    pub(crate) const NOW: Self = Self { timeout_ns: 0, flags: 0 };

    /// Does not wait, and takes a trigger for the agent of a CNO.
    pub(crate) const NOW_FOR_AGENT: Self = Self { timeout_ns: 0, flags: KDAPL_FLAG_AGENT };

    /// Ends after a duration; `None` sets no limit.
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        Self { timeout_ns: timeout.map_or(KDAPL_TIMEOUT_INFINITE, nanoseconds), flags: 0 }
    }

    /// Ends at a point in time.
    pub(crate) fn at(time: Monotonic) -> Self {
        // `KDAPL_TIMEOUT_INFINITE` would set no limit.
        let timeout_ns = time.0.min(KDAPL_TIMEOUT_INFINITE - 1);
        Self { timeout_ns, flags: KDAPL_FLAG_ABSOLUTE }
    }

    /// Converts a duration to a point in time. After signals that call no handler the kernel
    /// restarts a wait until a point in time, but not a wait for a duration.
    pub(crate) fn restartable(self) -> Self {
        match (self.timeout_ns, self.flags) {
            (KDAPL_TIMEOUT_INFINITE.. | 0, _) | (_, 1..) => self,
            (nanoseconds, 0) => Self::at(Monotonic(Monotonic::now().0.saturating_add(nanoseconds))),
        }
    }

    /// Returns a message header with the flags of the time-out.
    pub(crate) fn hdr(self) -> kdapl_hdr {
        kdapl_hdr { flags: self.flags, ..Default::default() }
    }
}

/// Converts a duration. A long one becomes the largest finite time-out.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).map_or(KDAPL_TIMEOUT_INFINITE - 1, |nanoseconds| {
        nanoseconds.min(KDAPL_TIMEOUT_INFINITE - 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_never_become_infinite() {
        let ns = |timeout| Until::after(timeout).timeout_ns;
        assert_eq!(ns(None), i64::MAX as u64);
        assert_eq!(ns(Some(Duration::ZERO)), 0);
        assert_eq!(ns(Some(Duration::from_nanos(1))), 1);
        assert_eq!(ns(Some(Duration::from_micros(7))), 7_000);
        assert_eq!(ns(Some(Duration::from_nanos(u64::MAX))), i64::MAX as u64 - 1);
        assert_eq!(ns(Some(Duration::MAX)), i64::MAX as u64 - 1);
        assert_eq!(Until::at(Monotonic(u64::MAX)).timeout_ns, i64::MAX as u64 - 1);
    }

    #[test]
    fn durations_become_points_in_time() {
        let second = Duration::from_secs(1);
        let (before, until) = (Monotonic::now().0, Until::after(Some(second)).restartable());
        assert_eq!(until.flags, KDAPL_FLAG_ABSOLUTE);
        let range = before + 1_000_000_000..=Monotonic::after(second).0;
        assert!(range.contains(&until.timeout_ns), "{until:?} not in {range:?}");
        // The end of time stays finite.
        let farthest = Until::after(Some(Duration::MAX)).restartable();
        assert_eq!(farthest, Until::at(Monotonic(u64::MAX)));
        let past = Until::at(Monotonic(1));
        for same in [Until::NOW, Until::NOW_FOR_AGENT, Until::after(None), past] {
            assert_eq!(same.restartable(), same);
        }
    }

    #[test]
    fn the_clock_goes_on() {
        let (before, after) = (Monotonic::now(), Monotonic::after(Duration::from_secs(1)));
        assert!(before.0 > 0 && after.0 >= before.0 + 1_000_000_000);
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Time-outs: a duration from now, or a time.

use crate::raw::monotonic_nanoseconds;
use crate::sys::*;
use std::time::Duration;

/// A time of `CLOCK_MONOTONIC`, in nanoseconds: until when to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(pub u64);

impl Monotonic {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self(monotonic_nanoseconds())
    }

    /// So long from now.
    #[must_use]
    pub fn after(duration: Duration) -> Self {
        Self(Self::now().0.saturating_add(nanoseconds(duration)))
    }
}

/// When a call gives up, as its message says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Until {
    pub(crate) timeout_ns: u64,
    flags: u32,
}

impl Until {
    /// At once.
    pub(crate) const NOW: Self = Self { timeout_ns: 0, flags: 0 };

    /// So long from now; `None` is never.
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        Self { timeout_ns: timeout.map_or(KDAPL_TIMEOUT_INFINITE, nanoseconds), flags: 0 }
    }

    /// At a time.
    pub(crate) fn at(time: Monotonic) -> Self {
        // That one means never.
        let timeout_ns = time.0.min(KDAPL_TIMEOUT_INFINITE - 1);
        Self { timeout_ns, flags: KDAPL_FLAG_ABSOLUTE }
    }

    /// The head of the message.
    pub(crate) fn hdr(self) -> kdapl_hdr {
        kdapl_hdr { flags: self.flags, ..Default::default() }
    }
}

/// All of them, but never for ever.
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
    fn the_clock_goes_on() {
        let (before, after) = (Monotonic::now(), Monotonic::after(Duration::from_secs(1)));
        assert!(before.0 > 0 && after.0 >= before.0 + 1_000_000_000);
    }
}

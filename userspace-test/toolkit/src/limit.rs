// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! End of a measurement: after a number of operations or a time, or when a stop is requested.

use crate::stop;
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
/// End of a measurement.
pub enum Limit {
    /// After a number of operations.
    Count(u64),
    /// At a time.
    Until(Instant),
}

impl Limit {
    /// Limits a measurement that starts now to `seconds`, or without them to `count` operations.
    pub fn new(count: u64, seconds: Option<u64>) -> Self {
        match seconds {
            Some(seconds) => Self::Until(Instant::now() + Duration::from_secs(seconds)),
            None => Self::Count(count),
        }
    }

    /// Returns whether the measurement ends after `done` operations.
    pub fn reached(self, done: u64) -> bool {
        self.left(done) == 0
    }

    /// Returns the number of operations that may follow the first `done`.
    pub fn left(self, done: u64) -> u64 {
        match self {
            _ if stop::requested() => 0,
            Self::Count(count) => count.saturating_sub(done),
            Self::Until(end) if Instant::now() >= end => 0,
            Self::Until(_) => u64::MAX,
        }
    }

    /// Returns the number of operations, if it is known.
    pub fn total(self) -> Option<u64> {
        match self {
            Self::Count(count) => Some(count),
            Self::Until(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Limit;

    #[test]
    fn a_measurement_ends_after_its_operations_or_its_time() {
        assert_eq!(Limit::new(3, None).left(1), 2);
        assert!(Limit::new(3, None).reached(3));
        assert!(Limit::new(3, Some(0)).reached(0));
        assert!(!Limit::new(3, Some(60)).reached(1000));
    }
}

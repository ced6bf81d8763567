// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Times of single calls, of which the longest matters.

use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// Times of calls of one type.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Makes a call and keeps its time.
    pub fn call<T>(&mut self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let result = call()?;
        self.0.push(start.elapsed());
        Ok(result)
    }

    /// Returns the number of calls.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the longest time in microseconds, without the `but` longest ones.
    pub fn longest(mut self, but: usize) -> Result<f64> {
        self.0.sort_unstable();
        let position = self.0.len().checked_sub(but + 1).context("too few calls")?;
        Ok(self.0[position].as_secs_f64() * 1e6)
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Observation of threads and of the kernel: which threads sleep, what wakes them, and what
//! tracepoints record. Formats of test results. Used by the tests and by the benchmarks.

pub mod count;
pub mod ktap;
pub mod threads;
pub mod timers;
pub mod trace;
mod waiter;

pub use waiter::Waiter;

use anyhow::Result;
use std::fmt;

/// Error for a property that this kernel or this machine cannot show.
#[derive(Debug)]
pub struct Skip(pub String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

/// Returns a [`Skip`] with a reason.
///
/// # Errors
/// Always [`Skip`].
pub fn skip<T>(why: impl Into<String>) -> Result<T> {
    Err(Skip(why.into()).into())
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Repeats tests that a driver or the link may spoil.

use anyhow::{Error, Result};
use std::fmt;

/// Number of attempts where a driver or the link may spoil a test.
pub const TRIES: usize = 3;

/// Runs `work` once. If a driver or the link may spoil it, runs it up to [`TRIES`] times, as long
/// as it fails with an error that `excused` accepts.
pub fn repeat_if_spoilt(
    may_be_spoilt: bool,
    excused: impl Fn(&Error) -> bool,
    work: impl Fn() -> Result<()>,
) -> Result<()> {
    for _ in 1..if may_be_spoilt { TRIES } else { 1 } {
        match work() {
            Err(error) if excused(&error) => println!("repeated after: {error:#}"),
            other => return other,
        }
    }
    work()
}

/// Error of a test that got an unexpected event, or none. The driver or the link may have caused
/// it. Results of calls, and contents of memory and of events, are never reported with this error.
#[derive(Debug)]
pub struct Unheard(pub String);

impl fmt::Display for Unheard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unheard {}

/// Returns an [`Unheard`] error.
macro_rules! unheard {
    ($($argument:tt)*) => {
        return Err($crate::repeat::Unheard(format!($($argument)*)).into())
    };
}
pub(crate) use unheard;

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests that are tried again where somebody else may spoil them.

use anyhow::{Error, Result};
use std::fmt;

/// How often something is tried where others may spoil it.
pub const TRIES: usize = 3;

/// Does it once; where it may be spoilt up to three times, as long as it fails in a way that `excused` knows.
pub fn again(
    may_be_spoilt: bool,
    excused: impl Fn(&Error) -> bool,
    work: impl Fn() -> Result<()>,
) -> Result<()> {
    for _ in 1..if may_be_spoilt { TRIES } else { 1 } {
        match work() {
            Err(error) if excused(&error) => println!("once more, for {error:#}"),
            other => return other,
        }
    }
    work()
}

/// Something else came than was expected, or nothing: that may be the fault of who carries the messages. What a
/// call returned, what is in memory or in an event never is.
#[derive(Debug)]
pub struct Unheard(pub String);

impl fmt::Display for Unheard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unheard {}

/// Returns an error that says so.
macro_rules! unheard {
    ($($argument:tt)*) => {
        return Err($crate::again::Unheard(format!($($argument)*)).into())
    };
}
pub(crate) use unheard;

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Looks at threads that sleep, at who wakes them, and at what the kernel traces: for the tests, which
//! judge it, and for the benchmarks, which count it.

pub mod count;
pub mod threads;
pub mod trace;
mod waiter;

pub use waiter::Waiter;

use anyhow::Result;
use std::fmt;

/// An error of something that this kernel or this machine cannot show.
#[derive(Debug)]
pub struct Skip(pub String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

/// Says what cannot be shown here.
///
/// # Errors
/// Always [`Skip`].
pub fn skip<T>(why: impl Into<String>) -> Result<T> {
    Err(Skip(why.into()).into())
}

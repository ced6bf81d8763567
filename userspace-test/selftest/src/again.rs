// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests that are tried again where somebody else may spoil them.

use anyhow::{Error, Result};

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

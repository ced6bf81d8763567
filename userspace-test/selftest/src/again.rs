// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests that are tried again where somebody else may spoil them.

use crate::context::Context;
use crate::harness::Skip;
use anyhow::{Error, Result};

/// How often something is tried where others may spoil it.
const TRIES: usize = 3;

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

/// Software iWARP may be deaf to a peer's first words: `siw_accept()` answers before it listens to the socket, and
/// what comes in between lies there until there is more; and who hangs up cuts off what TCP has not sent. So over it
/// an exchange has three tries.
pub fn heard(context: &Context, exchange: fn(&Context) -> Result<()>) -> Result<()> {
    again(context.client.is_siw(), |error| !error.is::<Skip>(), || exchange(context))
}

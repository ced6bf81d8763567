// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The system calls of a client, as `strace` sees them.

use crate::side::text;
use anyhow::{Context, Result};

const OUTPUT: &str = "/tmp/kdapl-bench.strace";

/// Runs a client to its end; returns a line for each system call that it made.
///
/// Looking at the clock is left out: it is a system call only where there is no better way.
pub fn calls_of(line: &str) -> Result<Vec<String>> {
    text(&format!("strace -f -qq -e trace=!clock_gettime -e signal=none -o {OUTPUT} {line}"))?;
    let trace = std::fs::read_to_string(OUTPUT).context(OUTPUT)?;
    // A call that another thread's interrupts has a second line.
    Ok(trace.lines().filter(|line| !line.contains(" resumed>")).map(String::from).collect())
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! System calls of a client, recorded with `strace`.

use crate::side::text;
use anyhow::{Context, Result};

const OUTPUT: &str = "/tmp/kdapl-bench.strace";

/// Runs a client until it exits; returns a line for each of its system calls.
///
/// Omits `clock_gettime`, which is a system call only on machines without a vDSO clock.
pub fn calls_of(line: &str) -> Result<Vec<String>> {
    text(&format!("strace -f -qq -e trace=!clock_gettime -e signal=none -o {OUTPUT} {line}"))?;
    let trace = std::fs::read_to_string(OUTPUT).context(OUTPUT)?;
    // A system call that is interrupted by another thread's has a second line.
    Ok(trace.lines().filter(|line| !line.contains(" resumed>")).map(String::from).collect())
}

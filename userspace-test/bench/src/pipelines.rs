// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Many small operations in flight, by Debian's `dapltest` over kDAPL's provider, compared with
//! Debian's own.
//!
//! The client keeps a pipeline full, and waits for each completion (`-m b`).

use crate::benchmark::Sink;
use crate::sample::Sample;
use crate::side::both;
use crate::udapl::figure;
use anyhow::Result;

/// Names and arguments of the tests.
const TESTS: [(&str, &str); 4] = [
    ("-p 16 RW 4: an operation", "-i 1024 -p 16 -m b RW 4 1"),
    ("-p 64 RW 4: an operation", "-i 1024 -p 64 -m b RW 4 1"),
    ("-p 16 RW 4096: an operation", "-i 1024 -p 16 -m b RW 4096 1"),
    ("-p 16 RR 4: an operation", "-i 1024 -p 16 -m b RR 4 1"),
];

/// Largest ratio of the times.
const LIMIT: f64 = 0.9;

/// Position of the operations per second in the figures of `dapltest`.
const OPERATIONS: usize = 6;

pub fn run(sink: Sink<'_>) -> Result<()> {
    for (what, test) in TESTS {
        let times = both(|side| Ok(1e6 / figure(side, test, OPERATIONS)?))?;
        let sample = Sample::new("pipelines", &format!("dapltest -m b {what}"), "us", times, 1.0);
        sink(Sample { limit: Some(LIMIT), ..sample })?;
    }
    Ok(())
}

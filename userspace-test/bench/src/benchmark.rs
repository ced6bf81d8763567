// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The list of benchmarks. Another one is another line here and a file beside this one.

use crate::connect;
use crate::ping;
use crate::sample::Sample;
use anyhow::{bail, Result};

/// Takes samples as they are measured.
pub type Sink<'a> = &'a mut dyn FnMut(Sample) -> Result<()>;

/// Something to measure on both sides.
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(Sink<'_>) -> Result<()>,
}

pub const ALL: &[Benchmark] = &[
    Benchmark {
        name: "connect",
        about: "making and ending connections, beside a user-space rdma_cm program",
        run: connect::run,
    },
    Benchmark {
        name: "ping",
        about: "messages there and back between sleepers, beside user-space verbs",
        run: ping::run,
    },
];

/// Those with these names, in this order; all if there are none.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Benchmark>> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let find = |name: &String| match ALL.iter().find(|benchmark| benchmark.name == name) {
        Some(benchmark) => Ok(benchmark),
        None => bail!("there is no benchmark '{name}' (see: kdapl-bench list)"),
    };
    names.iter().map(find).collect()
}

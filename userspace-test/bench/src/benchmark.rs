// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The list of benchmarks. Another one is another line here and a file beside this one.

use crate::sample::Sample;
use crate::{connect, kernel_ping, memory, ping, polling, scale, tenant, udapl, wakeups};
use anyhow::{bail, Result};

/// Takes samples as they are measured.
pub type Sink<'a> = &'a mut dyn FnMut(Sample) -> Result<()>;

/// Something to measure, on both sides where there are two.
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    /// On machines of how many processors it is run.
    pub processors: &'static [usize],
    pub run: fn(Sink<'_>) -> Result<()>,
}

pub const ALL: &[Benchmark] = &[
    Benchmark {
        name: "connect",
        about: "making and ending connections, beside a user-space rdma_cm program",
        processors: &[1],
        run: connect::run,
    },
    Benchmark {
        name: "ping",
        about: "messages there and back between sleepers, beside user-space verbs",
        processors: &[1],
        run: ping::run,
    },
    Benchmark {
        name: "udapl",
        about: "Debian's uDAPL programs over our provider, beside Debian's own",
        processors: &[1],
        run: udapl::run,
    },
    Benchmark {
        name: "wakeups",
        about: "context switches from an event to who waits for it, by kind of event",
        processors: &[1],
        run: wakeups::run,
    },
    Benchmark {
        name: "scale",
        about: "an event of one among many endpoints or queues, beside one alone",
        processors: &[1],
        run: scale::run,
    },
    Benchmark {
        name: "polling",
        about: "a consumer that only dequeues: what is armed, and what an event costs",
        processors: &[1],
        run: polling::run,
    },
    Benchmark {
        name: "tenant",
        about: "messages there and back beside a user at its limits, beside none",
        processors: &[1],
        run: tenant::run,
    },
    Benchmark {
        name: "memory",
        about: "bytes of an event queue and of an event, and allocations",
        processors: &[1],
        run: memory::run,
    },
    Benchmark {
        name: "kernel-ping",
        about: "messages there and back between threads of the kernel, beside raw verbs",
        processors: &[1, 2],
        run: kernel_ping::run,
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

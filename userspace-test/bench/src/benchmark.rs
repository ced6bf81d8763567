// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! List of the benchmarks. A new one is an entry here and a file in this folder.

use crate::sample::Sample;
use crate::{
    bmi, connect, crowd, kernel_ping, memory, nvme, ping, pipelines, polling, posts, preposted,
    scale, tenant, transfer, udapl, uring, wakeups,
};
use anyhow::{bail, Result};

/// Receives samples as they are measured.
pub type Sink<'a> = &'a mut dyn FnMut(Sample) -> Result<()>;

/// A measurement, of both sides if it is a comparison.
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    /// Numbers of CPUs of the machines on which it runs.
    pub processors: &'static [usize],
    pub run: fn(Sink<'_>) -> Result<()>,
}

pub const ALL: &[Benchmark] = &[
    Benchmark {
        name: "connect",
        about: "set-up and tear-down of connections, compared with an rdma_cm program",
        processors: &[1],
        run: connect::run,
    },
    Benchmark {
        name: "ping",
        about: "ping-pong between waiting threads, compared with user-space verbs",
        processors: &[1],
        run: ping::run,
    },
    Benchmark {
        name: "udapl",
        about: "Debian's uDAPL programs over kDAPL's provider, compared with Debian's",
        processors: &[1],
        run: udapl::run,
    },
    Benchmark {
        name: "pipelines",
        about: "many small operations in flight by Debian's dapltest, over both providers",
        processors: &[1],
        run: pipelines::run,
    },
    Benchmark {
        name: "transfer",
        about: "memory, lists and streams of 64 KiB, compared with verbs and with Debian's uDAPL",
        processors: &[1],
        run: transfer::run,
    },
    Benchmark {
        name: "wakeups",
        about: "context switches from an event to its waiter, for each type of event",
        processors: &[1],
        run: wakeups::run,
    },
    Benchmark {
        name: "scale",
        about: "cost of an event with many endpoints or EVDs, compared with one",
        processors: &[1],
        run: scale::run,
    },
    Benchmark {
        name: "uring",
        about: "a server of 1,000 connections in one thread, by io_uring, compared with EVD waits",
        processors: &[1],
        run: uring::run,
    },
    Benchmark {
        name: "polling",
        about: "a consumer that polls: arming of completion queues, cost of an event",
        processors: &[1],
        run: polling::run,
    },
    Benchmark {
        name: "posts",
        about: "posts one by one and in lists, requests with and without events",
        processors: &[1],
        run: posts::run,
    },
    Benchmark {
        name: "tenant",
        about: "ping-pong while another user is at its limits, compared with none",
        processors: &[1],
        run: tenant::run,
    },
    Benchmark {
        name: "memory",
        about: "memory of an EVD and of an event, and allocations",
        processors: &[1],
        run: memory::run,
    },
    Benchmark {
        name: "bmi",
        about: "messages of BMI, compared with the same transfers by bare Endpoints",
        processors: &[1],
        run: bmi::run,
    },
    Benchmark {
        name: "crowd",
        about: "longest call on a CNO that a million EVDs trigger",
        processors: &[1],
        run: crowd::run,
    },
    Benchmark {
        name: "preposted",
        about: "longest connection beside Endpoints with 16,384 receives, compared with alone",
        processors: &[1],
        run: preposted::run,
    },
    Benchmark {
        name: "kernel-ping",
        about: "ping-pong between kernel threads, compared with raw verbs",
        processors: &[1, 2],
        run: kernel_ping::run,
    },
    Benchmark {
        name: "kernel-upcalls",
        about: "ping-pong of upcalls in soft interrupts, compared with work items",
        processors: &[1, 2],
        run: kernel_ping::run_upcalls,
    },
    Benchmark {
        name: "nvme",
        about: "NVMe over Fabrics on a null block device, compared with nvme-rdma and nvmet-rdma",
        processors: &[1, 2],
        run: nvme::run,
    },
];

/// Returns the benchmarks with these names, in this order; all if there are no names.
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

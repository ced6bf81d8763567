// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What a connection costs: `kdapltest connect` beside `rdmacm-peer connect`.
//!
//! Both have one thread on each side, which sleeps until something happens; both make one QP on
//! each side for each connection, and share completion queue and memory between connections.
//! Inside the clock:
//!
//! * ready: the connecting side's QP is there. From the call that begins to resolve the address
//!   until ESTABLISHED; the listening side makes its QP within that time.
//! * whole: from making the QP until it is destroyed, with the disconnect; with 64 bytes there
//!   and back in one row.
//!
//! System calls are those that the connecting side makes within that time, counted by `strace`.
//! Both programs give way to other threads (`sched_yield`) when they start the clock and when
//! they stop it, so that their servers begin with nothing left to do: those are the marks.

use crate::benchmark::Sink;
use crate::sample::Sample;
use crate::side::{client, Server};
use anyhow::{bail, Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// Connections of a measurement.
const COUNT: u32 = 100;
/// Connections under `strace`.
const TRACED: u32 = 20;
const MARK: &str = "sched_yield";
const TRACE: &str = "/tmp/kdapl-bench.strace";
/// Caches fill, addresses are resolved.
const WARM_UP: u32 = 10;

/// What both clients print.
#[derive(Deserialize)]
struct Printed {
    connect_us: Times,
    whole_us: Option<Times>,
}

#[derive(Deserialize)]
struct Times {
    median: f64,
}

/// A way to make connections.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    ready: bool,
    data: u32,
}

const WAYS: [Way; 3] = [
    Way { name: "connect, QP ready", ready: true, data: 0 },
    Way { name: "create, connect, disconnect, destroy", ready: false, data: 0 },
    Way {
        name: "create, connect, 64 bytes there and back, disconnect, destroy",
        ready: false,
        data: 64,
    },
];

#[derive(Clone, Copy)]
enum Side {
    Ours,
    Peer,
}

impl Side {
    fn server(self, way: Way, count: u32) -> String {
        let Way { data, .. } = way;
        match self {
            Self::Ours => "kdapltest --json server --once".into(),
            Self::Peer => {
                format!("rdmacm-peer listen -a 10.7.0.1 --connections {count} --data {data}")
            }
        }
    }

    fn client(self, way: Way, count: u32) -> String {
        let Way { data, ready, .. } = way;
        let ready = if ready { "--ready" } else { "" };
        let program = match self {
            Self::Ours => "kdapltest --json connect -s 10.7.0.1",
            Self::Peer => "rdmacm-peer connect --json -a 10.7.0.1",
        };
        format!("{program} --connections {count} --data {data} {ready}")
    }

    /// Microseconds of one connection, the median of `count`.
    fn time(self, way: Way, count: u32) -> Result<f64> {
        let server = Server::start(&self.server(way, count))?;
        let printed: Printed = client(&self.client(way, count))?;
        server.ends()?;
        let times = if way.ready { Some(printed.connect_us) } else { printed.whole_us };
        Ok(times.context("the client did not print its times")?.median)
    }

    /// System calls that the client makes for a connection.
    fn calls(self, way: Way) -> Result<f64> {
        let server = Server::start(&self.server(way, TRACED))?;
        // Looking at the clock is a system call only where there is no better way.
        let strace = format!("strace -f -qq -e trace=!clock_gettime -e signal=none -o {TRACE}");
        let _: Value = client(&format!("{strace} {}", self.client(way, TRACED)))?;
        server.ends()?;
        let trace = std::fs::read_to_string(TRACE).context(TRACE)?;
        let lines: Vec<_> = trace.lines().filter(|line| !line.contains(" resumed>")).collect();
        let marks: Vec<_> = (0..lines.len()).filter(|i| lines[*i].contains(MARK)).collect();
        let &[start, end] = &marks[..] else {
            bail!("{} marks instead of two in the client's system calls", marks.len());
        };
        Ok((end - start - 1) as f64 / f64::from(TRACED))
    }
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    for way in WAYS {
        let both = |measure: &dyn Fn(Side) -> Result<f64>| -> Result<(f64, f64)> {
            Ok((measure(Side::Ours)?, measure(Side::Peer)?))
        };
        both(&|side| side.time(way, WARM_UP))?;
        let (ours, peer) = both(&|side| side.time(way, COUNT))?;
        sink(sample(&format!("{}: time", way.name), "us", ours, peer))?;
        let (ours, peer) = both(&|side| side.calls(way))?;
        sink(sample(&format!("{}: system calls", way.name), "calls", ours, peer))?;
    }
    Ok(())
}

fn sample(name: &str, unit: &str, ours: f64, peer: f64) -> Sample {
    let (benchmark, limit) = ("connect".into(), 1.0);
    Sample { benchmark, name: name.into(), unit: unit.into(), ours, peer, limit }
}

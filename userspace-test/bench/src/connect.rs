// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cost of a connection: `kdapltest connect` compared with `rdmacm-peer connect`.
//!
//! Both programs have one thread on each side, which sleeps while it waits. Both create one queue
//! pair (QP) on each side for each connection, and share completion queue and memory between
//! connections. The clock includes:
//!
//! * ready: the connecting side's QP exists. From the call that starts to resolve the address until
//!   ESTABLISHED. The listening side creates its QP in this time.
//! * whole: from the creation of the QP until its destruction, including the disconnect; in one row
//!   with 64 bytes in each direction.
//!
//! System calls are those of the connecting side in this time, counted by `strace`. Both programs
//! call `sched_yield` when they start and stop the clock: the servers can finish earlier work, and
//! the calls mark the interval in the trace.

use crate::benchmark::Sink;
use crate::sample::Sample;
use crate::side::{both, client, Server, Side};
use crate::strace::calls_of;
use anyhow::{bail, Context, Result};
use serde::Deserialize;

/// Number of connections of a measurement.
const COUNT: u32 = 100;
/// Number of connections under `strace`.
const TRACED: u32 = 20;
const MARK: &str = "sched_yield";
/// Number of connections that fill caches and resolve addresses.
const WARM_UP: u32 = 10;

/// Output of both clients.
#[derive(Deserialize)]
struct Printed {
    connect_us: Times,
    whole_us: Option<Times>,
}

#[derive(Deserialize)]
struct Times {
    median: f64,
}

/// A sequence of steps to measure.
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

fn server(side: Side, way: Way, count: u32) -> String {
    match side {
        Side::Ours => "kdapltest --json server --once".into(),
        Side::Peer => {
            let data = way.data;
            format!("rdmacm-peer listen -a 10.7.0.1 --connections {count} --data {data}")
        }
    }
}

fn client_of(side: Side, way: Way, count: u32) -> String {
    let Way { data, ready, .. } = way;
    let ready = if ready { "--ready" } else { "" };
    let program = match side {
        Side::Ours => "kdapltest --json connect 10.7.0.1",
        Side::Peer => "rdmacm-peer connect --json -a 10.7.0.1",
    };
    format!("{program} --connections {count} --data {data} {ready}")
}

/// Returns the microseconds of a connection, the median of `count`.
fn time(side: Side, way: Way, count: u32) -> Result<f64> {
    let server = Server::start(&server(side, way, count))?;
    let printed: Printed = client(&client_of(side, way, count))?;
    server.ends()?;
    let times = if way.ready { Some(printed.connect_us) } else { printed.whole_us };
    Ok(times.context("the client did not print its times")?.median)
}

/// Returns the number of system calls of the client for a connection.
fn calls(side: Side, way: Way) -> Result<f64> {
    let server = Server::start(&server(side, way, TRACED))?;
    let calls = calls_of(&client_of(side, way, TRACED))?;
    server.ends()?;
    let marks: Vec<_> = (0..calls.len()).filter(|i| calls[*i].contains(MARK)).collect();
    let &[start, end] = &marks[..] else {
        bail!("{} marks instead of two in the client's system calls", marks.len());
    };
    Ok((end - start - 1) as f64 / f64::from(TRACED))
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    for way in WAYS {
        both(|side| time(side, way, WARM_UP))?;
        let figures = both(|side| time(side, way, COUNT))?;
        sink(Sample::new("connect", &format!("{}: time", way.name), "us", figures, 1.0))?;
        let figures = both(|side| calls(side, way))?;
        sink(Sample::new(
            "connect",
            &format!("{}: system calls", way.name),
            "calls",
            figures,
            1.0,
        ))?;
    }
    Ok(())
}

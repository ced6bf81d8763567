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
use crate::side::{both, client, Server, Side};
use crate::strace::calls_of;
use anyhow::{bail, Context, Result};
use serde::Deserialize;

/// Connections of a measurement.
const COUNT: u32 = 100;
/// Connections under `strace`.
const TRACED: u32 = 20;
const MARK: &str = "sched_yield";
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
        Side::Ours => "kdapltest --json connect -s 10.7.0.1",
        Side::Peer => "rdmacm-peer connect --json -a 10.7.0.1",
    };
    format!("{program} --connections {count} --data {data} {ready}")
}

/// Microseconds of one connection, the median of `count`.
fn time(side: Side, way: Way, count: u32) -> Result<f64> {
    let server = Server::start(&server(side, way, count))?;
    let printed: Printed = client(&client_of(side, way, count))?;
    server.ends()?;
    let times = if way.ready { Some(printed.connect_us) } else { printed.whole_us };
    Ok(times.context("the client did not print its times")?.median)
}

/// System calls that the client makes for a connection.
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

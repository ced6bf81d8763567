// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cost of a message whose receiver sleeps: `kdapltest ping` compared with `ib_send_lat --events`.
//!
//! Both send a message of 64 bytes back and forth, and sleep until the next one arrives. Half a
//! round trip is the time of all round trips, with all work on both sides, divided by twice their
//! number: posting receives again, taking completions of sends (kdapltest: of one send in 32,
//! `ib_send_lat`: of each), and in kdapltest comparing the received data.
//!
//! System calls are those of the connecting side, counted by `strace`: the difference between two
//! runs, divided by the difference in the number of round trips.

use crate::benchmark::Sink;
use crate::sample::Sample;
use crate::side::{both, client, text, Server, Side};
use crate::strace::calls_of;
use anyhow::{Context, Result};
use serde::Deserialize;

/// Number of round trips measured, and of those before the measurement.
const COUNT: u32 = 2000;
const WARM_UP: u32 = 200;
/// Number of round trips under `strace` in the first and in the second run.
const TRACED: [u32; 2] = [100, 300];

/// Output of `kdapltest ping`.
#[derive(Deserialize)]
struct Printed {
    whole_us: f64,
}

fn server(side: Side, count: u32) -> String {
    match side {
        Side::Ours => "kdapltest server --once".into(),
        // Flush each line: the client starts when the server has printed one.
        Side::Peer => format!("stdbuf -oL {}", send_lat(count)),
    }
}

fn client_of(side: Side, count: u32) -> String {
    match side {
        Side::Ours => format!("kdapltest --json ping 10.7.0.1 --size 64 -n {count}"),
        Side::Peer => format!("{} 10.7.0.1", send_lat(count)),
    }
}

/// Uses the defaults of `ib_send_lat`: inline data for small messages, a completion for each send.
fn send_lat(count: u32) -> String {
    format!("ib_send_lat --events --ib-dev rxe0 --size 64 --iters {count}")
}

fn start(side: Side, count: u32) -> Result<Server> {
    let server = Server::start(&server(side, count))?;
    if matches!(side, Side::Peer) {
        // It prints that it waits before it listens.
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    Ok(server)
}

/// Returns the microseconds of half a round trip, the mean of `count`.
fn time(side: Side, count: u32) -> Result<f64> {
    let server = start(side, count)?;
    let line = client_of(side, count);
    let time = match side {
        Side::Ours => client::<Printed>(&line)?.whole_us / 2.0,
        Side::Peer => mean(&text(&line)?).context("no table in the output of ib_send_lat")?,
    };
    server.ends()?;
    Ok(time)
}

/// Returns the microseconds of half a round trip of kdapltest.
pub fn our_time() -> Result<f64> {
    time(Side::Ours, COUNT)
}

/// Returns the number of system calls of the client for a round trip.
fn calls(side: Side) -> Result<f64> {
    let count = |trips| -> Result<f64> {
        let server = start(side, trips)?;
        let calls = calls_of(&client_of(side, trips))?.len();
        server.ends()?;
        Ok(calls as f64)
    };
    let [fewer, more] = TRACED;
    Ok((count(more)? - count(fewer)?) / f64::from(more - fewer))
}

/// Returns the mean from the row of figures below the heading: bytes, iterations, min, max,
/// typical, mean, ...
fn mean(table: &str) -> Option<f64> {
    let mut lines = table.lines().skip_while(|line| !line.trim_start().starts_with("#bytes"));
    let column = lines.next()?.split_whitespace().position(|word| word.starts_with("t_avg"))?;
    let mean: f64 = lines.next()?.split_whitespace().nth(column)?.parse().ok()?;
    mean.is_finite().then_some(mean)
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    both(|side| time(side, WARM_UP))?;
    let figures = both(|side| time(side, COUNT))?;
    let what = "ping-pong, 64 bytes, waiting: half a round trip";
    sink(Sample::new("ping", what, "us", figures, 0.85))?;
    let what = "ping-pong, 64 bytes, waiting: system calls a round trip";
    sink(Sample::new("ping", what, "calls", both(calls)?, 1.0))
}

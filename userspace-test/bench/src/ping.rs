// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What a message costs whose receiver sleeps: `kdapltest ping` beside `ib_send_lat --events`.
//!
//! Both send a message of 64 bytes there and back, again and again, and sleep until the next one is
//! there. Half a round trip is the time of all of them, with everything that belongs to them on both
//! sides, by twice their number: receives are posted again, completions of sends are taken (by
//! kdapltest of one send in 32, by `ib_send_lat` of each), and kdapltest compares what came back.
//!
//! System calls are those of the connecting side, counted by `strace`: what the second of two runs
//! has more of than the first, by the number of round trips that it has more.

use crate::benchmark::Sink;
use crate::sample::Sample;
use crate::side::{both, client, text, Server, Side};
use crate::strace::calls_of;
use anyhow::{Context, Result};
use serde::Deserialize;

/// Round trips that are measured, the fewer to warm up.
const COUNT: u32 = 2000;
const WARM_UP: u32 = 200;
/// Round trips under `strace`: of the first run, and of the second.
const TRACED: [u32; 2] = [100, 300];

/// What `kdapltest ping` prints.
#[derive(Deserialize)]
struct Printed {
    whole_us: f64,
}

fn server(side: Side, count: u32) -> String {
    match side {
        Side::Ours => "kdapltest server --once".into(),
        // What it prints must not wait for a full buffer.
        Side::Peer => format!("stdbuf -oL {}", send_lat(count)),
    }
}

fn client_of(side: Side, count: u32) -> String {
    match side {
        Side::Ours => format!("kdapltest --json ping -s 10.7.0.1 --size 64 -i {count}"),
        Side::Peer => format!("{} 10.7.0.1", send_lat(count)),
    }
}

/// With its own defaults: small messages travel in the work request, each send has a completion.
fn send_lat(count: u32) -> String {
    format!("ib_send_lat --events --ib-dev rxe0 --size 64 --iters {count}")
}

fn start(side: Side, count: u32) -> Result<Server> {
    let server = Server::start(&server(side, count))?;
    if matches!(side, Side::Peer) {
        // It says that it waits before it does.
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    Ok(server)
}

/// Microseconds of half a round trip, the mean of `count`.
fn time(side: Side, count: u32) -> Result<f64> {
    let server = start(side, count)?;
    let line = client_of(side, count);
    let time = match side {
        Side::Ours => client::<Printed>(&line)?.whole_us / 2.0,
        Side::Peer => mean(&text(&line)?).context("the table of ib_send_lat")?,
    };
    server.ends()?;
    Ok(time)
}

/// Microseconds of half a round trip of ours.
pub fn our_time() -> Result<f64> {
    time(Side::Ours, COUNT)
}

/// System calls that the client makes for a round trip.
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

/// From the row of figures below the heading: bytes, iterations, min, max, typical, mean, ...
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What a message costs whose receiver sleeps: `kdapltest ping` beside `ib_send_lat --events`.
//!
//! Both send a message of 64 bytes there and back, again and again, and sleep until the next one is
//! there. Half a round trip is the time of all of them, with everything that belongs to them on both
//! sides, by twice their number: receives are posted again, completions of sends are taken, and
//! kdapltest compares what came back.
//!
//! System calls are those of the connecting side, counted by `strace`: what the second of two runs
//! has more of than the first, by the number of round trips that it has more.

use crate::benchmark::Sink;
use crate::sample::Sample;
use crate::side::{client, text, Server};
use anyhow::{Context, Result};
use serde::Deserialize;

/// Round trips that are measured, the fewer to warm up.
const COUNT: u32 = 2000;
const WARM_UP: u32 = 200;
/// Round trips under `strace`: of the first run, and of the second.
const TRACED: [u32; 2] = [100, 300];
const TRACE: &str = "/tmp/kdapl-bench.strace";

/// What `kdapltest ping` prints.
#[derive(Deserialize)]
struct Printed {
    whole_us: f64,
}

#[derive(Clone, Copy)]
enum Side {
    Ours,
    Peer,
}

impl Side {
    fn server(self, count: u32) -> String {
        match self {
            Self::Ours => "kdapltest --json server --once".into(),
            // What it prints must not wait for a full buffer.
            Self::Peer => format!("stdbuf -oL {}", Self::send_lat(count)),
        }
    }

    fn client(self, count: u32) -> String {
        match self {
            Self::Ours => format!("kdapltest --json ping -s 10.7.0.1 --size 64 -i {count}"),
            Self::Peer => format!("{} 10.7.0.1", Self::send_lat(count)),
        }
    }

    fn send_lat(count: u32) -> String {
        format!("ib_send_lat --events --ib-dev rxe0 --size 64 --iters {count}")
    }

    /// Microseconds of half a round trip, the mean of `count`.
    fn time(self, count: u32) -> Result<f64> {
        let server = self.start(count)?;
        let line = self.client(count);
        let time = match self {
            Self::Ours => client::<Printed>(&line)?.whole_us / 2.0,
            Self::Peer => mean(&text(&line)?).context("the table of ib_send_lat")?,
        };
        server.ends()?;
        Ok(time)
    }

    fn start(self, count: u32) -> Result<Server> {
        let server = Server::start(&self.server(count))?;
        if matches!(self, Self::Peer) {
            // It says that it waits before it does.
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        Ok(server)
    }

    /// System calls that the client makes for a round trip.
    fn calls(self) -> Result<f64> {
        let [fewer, more] = TRACED;
        Ok((self.calls_of(more)? - self.calls_of(fewer)?) / f64::from(more - fewer))
    }

    fn calls_of(self, count: u32) -> Result<f64> {
        let server = self.start(count)?;
        let strace = format!("strace -f -qq -e trace=!clock_gettime -e signal=none -o {TRACE}");
        text(&format!("{strace} {}", self.client(count)))?;
        server.ends()?;
        let trace = std::fs::read_to_string(TRACE).context(TRACE)?;
        Ok(trace.lines().filter(|line| !line.contains(" resumed>")).count() as f64)
    }
}

/// From the row of figures below the heading: bytes, iterations, min, max, typical, mean, ...
fn mean(table: &str) -> Option<f64> {
    let mut lines = table.lines().skip_while(|line| !line.trim_start().starts_with("#bytes"));
    let column = lines.next()?.split_whitespace().position(|word| word.starts_with("t_avg"))?;
    let mean: f64 = lines.next()?.split_whitespace().nth(column)?.parse().ok()?;
    mean.is_finite().then_some(mean)
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    let both = |measure: &dyn Fn(Side) -> Result<f64>| -> Result<(f64, f64)> {
        Ok((measure(Side::Ours)?, measure(Side::Peer)?))
    };
    both(&|side| side.time(WARM_UP))?;
    let (ours, peer) = both(&|side| side.time(COUNT))?;
    sink(sample("ping-pong, 64 bytes, waiting: half a round trip", "us", ours, peer, 0.85))?;
    let (ours, peer) = both(&|side| side.calls())?;
    sink(sample(
        "ping-pong, 64 bytes, waiting: system calls a round trip",
        "calls",
        ours,
        peer,
        1.0,
    ))
}

fn sample(name: &str, unit: &str, ours: f64, peer: f64, limit: f64) -> Sample {
    Sample { benchmark: "ping".into(), name: name.into(), unit: unit.into(), ours, peer, limit }
}

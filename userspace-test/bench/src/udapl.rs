// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cost of uDAPL: Debian's unmodified programs over kDAPL's provider and over Debian's, which uses
//! `librdmacm` and `libibverbs`. Only the provider differs.
//!
//! `dtest -b 64` sends messages back and forth and prints half a round trip; with `-c` both sides
//! wait on a CNO. `dtestcm -w` prints the time of a connection. `dapltest -m b` waits for each of
//! its RDMA Writes, or keeps 16 of them in flight.
//!
//! System calls and context switches are those of the client: the difference between a longer and a
//! shorter run. They have no limit.

use crate::benchmark::Sink;
use crate::sample::Sample;
use crate::side::{both, text, Server, Side};
use crate::strace::calls_of;
use anyhow::{Context, Result};
use nix::sys::resource::{getrusage, UsageWho};

const ADDRESS: &str = "10.7.0.1";
/// Name of the adapter. It is the same in both configuration files, since client and server
/// exchange it.
const ADAPTER: &str = "ofa0";
/// Number of operations of the two runs whose counts are compared.
const BURSTS: [u32; 2] = [200, 600];

/// Returns the command that runs a program with a provider.
fn over(side: Side, line: &str) -> String {
    let conf = match side {
        Side::Ours => "/etc/dat.conf",
        Side::Peer => "/etc/dat-ofa.conf",
    };
    // Flush each line: the client starts when the server has printed one.
    format!("env DAT_OVERRIDE={conf} stdbuf -oL {line}")
}

/// Runs a server and a client of a program; returns the client's output.
fn pair(side: Side, program: &str, options: &str) -> Result<String> {
    pair_with(side, program, options, text)
}

/// Like [`pair`], with a function that runs the client.
fn pair_with<T>(
    side: Side,
    program: &str,
    options: &str,
    client: impl FnOnce(&str) -> Result<T>,
) -> Result<T> {
    let server = Server::start(&over(side, &format!("{program} -P {ADAPTER} {options}")))?;
    // It prints its name before it listens.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let line = format!("{program} -P {ADAPTER} -h {ADDRESS} {options}");
    let outcome = client(&over(side, &line))?;
    server.ends()?;
    Ok(outcome)
}

/// Returns the number after `words` in the output.
fn number(printed: &str, words: &str) -> Result<f64> {
    let rest =
        printed.split(words).nth(1).with_context(|| format!("no '{words}' in: {printed}"))?;
    let number = rest.split_whitespace().next().unwrap_or_default().trim_end_matches(',');
    number.parse().with_context(|| format!("'{number}' after '{words}'"))
}

fn half_round_trip(side: Side, options: &str) -> Result<f64> {
    number(&pair(side, "dtest", options)?, "us: latency")
}

fn connection(side: Side) -> Result<f64> {
    number(&pair(side, "dtestcm", "-c 100 -b 1 -w")?, "Connections:")
}

/// Runs a performance test of `dapltest`; returns the line of its figures as a list.
fn dapltest(side: Side, test: &str) -> Result<Vec<String>> {
    let server = Server::start(&over(side, &format!("dapltest -T S -D {ADAPTER}")))?;
    std::thread::sleep(std::time::Duration::from_millis(300));
    let line = |kind, rest: &str| {
        over(side, &format!("dapltest -T {kind} -D {ADAPTER} -s {ADDRESS} {rest}"))
    };
    let printed = text(&line("P", test))?;
    text(&line("Q", ""))?;
    server.ends()?;
    let figures = printed.lines().find_map(|line| line.split_once("raw:"));
    let (_, figures) = figures.with_context(|| format!("no figures in: {printed}"))?;
    Ok(figures.split(',').map(|figure| figure.trim().to_string()).collect())
}

/// Returns an element of the list: type, iterations, segment size, segments, pipeline, CPU,
/// operations per second, MB per second, ...
pub fn figure(side: Side, test: &str, place: usize) -> Result<f64> {
    let figures = dapltest(side, test)?;
    let figure = figures.get(place).with_context(|| format!("too few figures: {figures:?}"))?;
    figure.parse().with_context(|| format!("{figures:?}"))
}

fn operation(side: Side) -> Result<f64> {
    Ok(1e6 / figure(side, "-i 2000 -p 1 -m b RW 4 1", 6)?)
}

/// Returns the microseconds of a megabyte, so that less is better.
fn megabyte(side: Side) -> Result<f64> {
    Ok(1e6 / figure(side, "-i 300 -p 16 -m b RW 65536 2", 7)?)
}

/// Returns the increase of a count, measured by `count`, for each additional operation of a client
/// of `dtest`. `-B` is the number of RDMA Writes that the client streams, and of those that it
/// posts and the server answers.
fn each(side: Side, count: impl Fn(&str) -> Result<f64>) -> Result<f64> {
    let with =
        |operations: u32| pair_with(side, "dtest", &format!("-b 64 -B {operations}"), &count);
    let [fewer, more] = BURSTS;
    Ok((with(more)? - with(fewer)?) / f64::from(more - fewer))
}

fn calls(side: Side) -> Result<f64> {
    each(side, |line| Ok(calls_of(line)?.len() as f64))
}

/// Counts voluntary context switches. The client is the only child that exits during the
/// measurement.
fn switches(side: Side) -> Result<f64> {
    let given_up = || -> Result<i64> {
        Ok(getrusage(UsageWho::RUSAGE_CHILDREN)?.voluntary_context_switches())
    };
    each(side, |line| {
        let before = given_up()?;
        text(line)?;
        Ok((given_up()? - before) as f64)
    })
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    let mut measure = |what: &str, unit: &str, measure: &dyn Fn(Side) -> Result<f64>, limit| {
        let sample = Sample::new("udapl", what, unit, both(measure)?, 1.0);
        sink(Sample { limit, ..sample })
    };
    let kept = Some(1.0);
    let plain = |side| half_round_trip(side, "-b 64");
    measure("dtest -b 64: half a round trip", "us", &plain, kept)?;
    let by_cno = |side| half_round_trip(side, "-b 64 -c");
    measure("dtest -b 64 -c: half a round trip, by CNO", "us", &by_cno, kept)?;
    measure("dtestcm -c 100 -b 1 -w: a connection", "us", &connection, kept)?;
    measure("dapltest -T P -m b RW 4 1: an operation", "us", &operation, kept)?;
    measure("dapltest -T P -m b -p 16 RW 65536 2: a megabyte", "us", &megabyte, kept)?;
    measure("dtest -b 64 -B: system calls of an operation", "calls", &calls, None)?;
    measure("dtest -b 64 -B: context switches of an operation", "switches", &switches, None)
}

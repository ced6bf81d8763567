// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-selftest`: what `/dev/kdapl` promises, each promise a test; speaks TAP.

mod again;
mod cgroup;
mod context;
mod end;
mod expect;
mod harness;
mod hosts;
mod machine;
mod peer;
mod plain;
mod raw;
mod soak;
mod software;
mod tests;
mod traffic;
mod udapl;

// The module's own model of an endpoint, compiled as `model-tests` does.
#[path = "../../../rust"]
#[allow(dead_code, unused_imports, reason = "one test looks at a part of it")]
#[rustfmt::skip]
mod rust {
    pub(crate) mod model;
}

// Tests name these as if they were here.
use observe::{threads, trace};

use clap::Parser;
use context::Settings;
use harness::Test;
use hosts::{Count, Layout};
use std::process::ExitCode;
use std::time::Duration;

/// How much slower everything is at least over a link that netem spoils.
const SPOILT: f64 = 10.0;

/// Tests /dev/kdapl and prints TAP version 13.
///
/// Each test runs in a process of its own, so that one that hangs or crashes
/// does not end the run. After each one no object may be left in the kernel.
#[derive(Parser)]
#[command(
    version,
    after_help = "Needs root, the kdapl module and a soft-RoCE device that no one else uses;
for --hosts one and two only the drivers.

Environment:
  KDAPL_SELFTEST_SCALE  how many times slower than usual this kernel is: time
                        limits are multiplied by it, counts divided
                        [default: measured with two threads that wake each other]

Examples:
  kdapl-selftest                         everything
  kdapl-selftest --list
  kdapl-selftest --filter 'EVD' --quick
  kdapl-selftest --stress 20 --seed 7    20 times the counts
  kdapl-selftest --hosts two --netem 'loss 1%' --filter connect"
)]
struct Cli {
    /// Prints the names of the tests instead of running them
    #[arg(long)]
    list: bool,
    /// Runs only tests whose name contains TEXT; may repeat
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Leaves out tests whose name contains TEXT; may repeat
    #[arg(long, value_name = "TEXT")]
    skip: Vec<String>,
    /// Leaves out tests that may take longer than that (where the kernel is as fast as usual)
    #[arg(long, value_name = "SECONDS")]
    within: Option<u64>,
    /// Runs only every Nth test from the Kth on: with all K up to N, each test once
    #[arg(long, value_name = "K/N", value_parser = part)]
    part: Option<(usize, usize)>,
    /// Makes random numbers the same again [default: a new one each time]
    #[arg(long)]
    seed: Option<u64>,
    /// A tenth of the counts
    #[arg(long, conflicts_with = "stress")]
    quick: bool,
    /// N times the counts; may be a fraction
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = effort)]
    stress: f64,
    #[command(flatten)]
    layout: Layout,
    /// Does everything at once for so long, in rounds of a minute, and fails if anything drifts
    #[arg(long, value_name = "MINUTES", conflicts_with = "list")]
    soak: Option<u32>,
    /// Runs one test in this process
    #[arg(long, hide = true)]
    run_one: Option<String>,
    /// Plays a part in a test of another process
    #[arg(long, hide = true)]
    play: Option<String>,
}

fn effort(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(effort) if effort > 0.0 && effort <= 1e6 => Ok(effort),
        _ => Err("it is a number above 0, a million at most".into()),
    }
}

fn part(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((part, parts)) if (1..=parts).contains(&part) => Ok((part, parts)),
        _ => Err("it is K/N, with K from 1 to N".into()),
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let least = if cli.layout.netem.is_some() { SPOILT } else { 1.0 };
    let settings = Settings {
        seed: cli.seed.unwrap_or_else(|| fastrand::u64(..)),
        scale: context::scale().max(least),
        effort: if cli.quick { 0.1 } else { cli.stress },
        layout: cli.layout,
    };
    if let Some(part) = &cli.play {
        return peer::play(part, &settings);
    }
    let all = tests::all();
    if let Some(name) = &cli.run_one {
        return harness::run_one(&all, name, &settings);
    }
    let longest = cli.within.map_or(Duration::MAX, Duration::from_secs);
    let is_chosen = |test: &Test| {
        let named = |texts: &[String]| texts.iter().any(|text| test.name.contains(text));
        (cli.filter.is_empty() || named(&cli.filter)) && !named(&cli.skip) && test.limit <= longest
    };
    let (part, parts) = cli.part.unwrap_or((1, 1));
    let chosen = all.into_iter().filter(is_chosen);
    let tests: Vec<_> = chosen.skip(part - 1).step_by(parts).collect();
    if cli.list {
        tests.iter().for_each(|test| println!("{}", test.name));
        return ExitCode::SUCCESS;
    }
    if cli.layout.netem.is_some() && cli.layout.hosts != Count::Two {
        eprintln!("--netem wants --hosts two: on one host nothing goes through a network device");
        return ExitCode::FAILURE;
    }
    match cli.layout.make() {
        Ok(_made) => match cli.soak {
            Some(minutes) => soak::run(minutes, &settings),
            None => harness::run_all(&tests, &settings),
        },
        Err(error) => {
            eprintln!("cannot make the hosts: {error:#}");
            ExitCode::FAILURE
        }
    }
}

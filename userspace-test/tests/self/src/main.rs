// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-selftest`: what `/dev/kdapl` promises, each promise a test; prints KTAP.

mod again;
mod cgroup;
mod context;
mod end;
mod expect;
mod harness;
mod hosts;
mod kunit;
mod machine;
mod peer;
mod plain;
mod raw;
mod selection;
mod soak;
mod software;
mod tests;
mod traffic;
mod udapl;

// The module's own model of an endpoint, compiled as `model-tests` does.
#[path = "../../../../rust"]
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
use selection::Selection;
use std::io::Write;
use std::process::ExitCode;

/// How much slower everything is at least over a link that netem spoils.
const SPOILT: f64 = 10.0;

/// Tests /dev/kdapl and prints KTAP version 1.
///
/// Each test runs in a process of its own, so that one that hangs or crashes
/// does not end the run. After each one no object may be left in the kernel.
#[derive(Parser)]
#[command(
    version,
    after_help = "Needs root, the kdapl module and a soft-RoCE device that no one else uses;
for --hosts one and two only the drivers.

Exit status: 0 if no test failed, 1 if one did, 4 if all were skipped.

Environment:
  KDAPL_SELFTEST_SCALE  how many times slower than usual this kernel is: time
                        limits are multiplied by it, counts divided
                        [default: measured with two threads that wake each other]

Examples:
  kdapl-selftest                         everything
  kdapl-selftest --list
  kdapl-selftest --test evd_resize
  kdapl-selftest --filter 'EVD' --quick
  kdapl-selftest --stress 20 --seed 7    20 times the counts
  kdapl-selftest --hosts two --netem 'loss 1%' --filter connect"
)]
struct Cli {
    /// Prints the identifiers and names of the tests instead of running them
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    selection: Selection,
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

/// Prints identifiers and names. A reader that closes the pipe ends it.
fn list(tests: &[Test]) {
    let width = tests.iter().map(|test| test.id.to_string().len()).max().unwrap_or(0);
    let mut output = std::io::stdout().lock();
    let line = |test: &Test| writeln!(output, "{:width$}  {}", test.id.to_string(), test.name);
    let _ = tests.iter().try_for_each(line);
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
    let tests = match cli.selection.choose(&all) {
        Ok(tests) => tests,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    if cli.list {
        list(&tests);
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

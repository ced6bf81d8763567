// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-selftest`: tests the promises of `/dev/kdapl`. Prints KTAP.

mod cgroup;
mod context;
mod end;
mod eventfd;
mod expect;
mod fork;
mod harness;
mod hosts;
mod iwarp_peer;
mod kernel_memory;
mod kunit;
mod machine;
mod nvme;
mod nvme_link;
mod peer;
mod plain;
mod raw;
mod records;
mod repeat;
mod selection;
mod soak;
mod software;
mod tag;
mod tests;
mod timeouts;
mod traffic;
mod udapl;

// The module's own model of an endpoint, compiled as `tests/model` does.
#[path = "../../../../rust"]
#[allow(dead_code, unused_imports, reason = "one test uses a part of it")]
#[rustfmt::skip]
mod rust {
    pub(crate) mod model;
}

// For the tests.
use observe::{threads, trace};

use clap::Parser;
use context::Settings;
use harness::Test;
use hosts::{Count, Layout};
use selection::Selection;
use std::io::Write;
use std::process::ExitCode;

/// Minimum scale of time limits over a link that netem spoils.
const MIN_NETEM_SCALE: f64 = 10.0;

/// Tests /dev/kdapl and prints KTAP version 1.
///
/// Each test runs in its own process, so that one that hangs or crashes does not end the run. After
/// each test, no object may be left in the kernel.
#[derive(Parser)]
#[command(
    version,
    after_help = "Needs root, the kdapl module and a soft-RoCE device that is otherwise unused;
with --hosts one or two, only the drivers.

Exit status: 0 if no test failed, 1 if one did, 4 if all were skipped.

Environment:
  KDAPL_SELFTEST_SCALE  factor by which this kernel is slower than usual:
                        time limits are multiplied by it, counts divided
                        [default: measured by wake-ups of two threads]

Examples:
  kdapl-selftest                         everything
  kdapl-selftest --list
  kdapl-selftest --test evd_resize --quick
  kdapl-selftest --stress 20 --seed 7    20 times the usual counts
  kdapl-selftest --hosts two --netem 'loss 1%' --tag link"
)]
struct Cli {
    /// Prints identifier, name and tags of each test instead of running it
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    selection: Selection,
    /// Seed of the random numbers, to repeat a run [default: a new one each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Runs a tenth of the usual counts
    #[arg(long, conflicts_with = "stress")]
    quick: bool,
    /// Runs N times the usual counts; may be a fraction
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = effort)]
    stress: f64,
    #[command(flatten)]
    layout: Layout,
    /// Runs everything at once for that long, in rounds of a minute; fails if memory use grows
    #[arg(long, value_name = "MINUTES", conflicts_with = "list")]
    soak: Option<u32>,
    /// Runs the test of an identifier in this process
    #[arg(long, hide = true)]
    run_one: Option<String>,
    /// Plays a part in a test of another process
    #[arg(long, hide = true)]
    play: Option<String>,
}

fn effort(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(effort) if effort > 0.0 && effort <= 1e6 => Ok(effort),
        _ => Err("must be a number above 0, at most a million".into()),
    }
}

/// Prints the identifier, the name and the tags of each test. Ends if the reader closes the pipe.
fn list(tests: &[Test]) {
    let width = tests.iter().map(|test| test.id.to_string().len()).max().unwrap_or(0);
    let mut output = std::io::stdout().lock();
    let line = |test: &Test| {
        write!(output, "{:width$}  {}", test.id.to_string(), test.name)?;
        test.tags.iter().try_for_each(|tag| write!(output, " [{tag}]"))?;
        writeln!(output)
    };
    let _ = tests.iter().try_for_each(line);
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let least = if cli.layout.netem.is_some() { MIN_NETEM_SCALE } else { 1.0 };
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
    if let Some(id) = &cli.run_one {
        return harness::run_one(&all, id, &settings);
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
        eprintln!("--netem requires --hosts two: one host does not send through a network device");
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-bench`: compares the cost of kDAPL with that of the same operations without it, in one
//! boot.
//!
//! `userspace-test/vm/bench` uses both parts: `run` measures in a guest and prints one sample on
//! each line; `report` makes a table, a JSON file and a chart of the samples of several boots.

mod benchmark;
mod bmi;
mod chart;
mod connect;
mod crowd;
mod ends;
mod kernel_ping;
mod memory;
mod nvme;
mod ping;
mod pipelines;
mod polling;
mod posts;
mod preposted;
mod report;
mod sample;
mod scale;
mod side;
mod strace;
mod tenant;
mod times;
mod transfer;
mod udapl;
mod uring;
mod wakeups;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Compares the cost of kDAPL with that of the same operations without it
#[derive(Parser)]
#[command(version, after_help = "To run all benchmarks: userspace-test/vm/bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Lists the benchmarks.
    List {
        /// Benchmarks [default: all]
        names: Vec<String>,
        /// Print only the names of those that run on a machine with this number of CPUs
        #[arg(long)]
        processors: Option<usize>,
    },
    /// Measures on this machine and prints one sample on each line, as JSON
    Run {
        /// Benchmarks [default: all]
        names: Vec<String>,
        /// Skip benchmarks that this kernel does not support, instead of failing
        #[arg(long)]
        partial: bool,
    },
    /// Measures operations of `transfer` and prints the nanoseconds of one, to profile them
    #[command(hide = true)]
    Cost {
        count: u32,
        /// Name of the operation, as of `verbs-cost`; `empty`, a dequeue that finds nothing; or
        /// `short-write`, an RDMA write of 4 bytes, 16 in flight
        what: String,
    },
    /// Acts as the user at its limits
    #[command(hide = true)]
    Tenant,
    /// Prints a table of the samples of several boots
    Report {
        /// Output of `run`, one file for each boot
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Write the figures to this file as a list of {name, unit, ours, peer, ratio, limit}
        #[arg(long)]
        json: Option<PathBuf>,
        /// Write a chart to this file
        #[arg(long)]
        svg: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(3),
        Err(error) => {
            eprintln!("kdapl-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether all limits are kept.
fn run(command: Command) -> Result<bool> {
    match command {
        Command::List { names, processors } => {
            for benchmark in benchmark::chosen(&names)? {
                match processors {
                    None => println!("{:12} {}", benchmark.name, benchmark.about),
                    Some(count) if benchmark.processors.contains(&count) => {
                        println!("{}", benchmark.name)
                    }
                    Some(_) => {}
                }
            }
            Ok(true)
        }
        Command::Run { names, partial } => {
            for benchmark in benchmark::chosen(&names)? {
                match (benchmark.run)(&mut |sample| sample.print()) {
                    Err(error) if partial && error.is::<observe::Skip>() => {
                        eprintln!("kdapl-bench: {}: skipped: {error}", benchmark.name);
                    }
                    outcome => outcome.with_context(|| format!("benchmark {}", benchmark.name))?,
                }
            }
            Ok(true)
        }
        Command::Cost { count, what } => transfer::cost(count, &what).map(|()| true),
        Command::Tenant => tenant::tenant().map(|()| true),
        Command::Report { files, json, svg } => {
            let figures = report::figures(&sample::read(&files)?)?;
            println!("{}", report::table(&figures));
            if let Some(path) = json {
                report::write_json(&figures, &path)?;
            }
            if let Some(path) = svg {
                chart::write(&figures, &path)?;
            }
            Ok(figures.iter().all(report::Figure::kept))
        }
    }
}

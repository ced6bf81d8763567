// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-bench`: what kDAPL costs beside what the same costs without it, both in one boot.
//!
//! It has two parts, which `userspace-test/vm/bench` puts together: `run` measures in a guest
//! and prints a sample a line, `report` turns the samples of several boots into a table, a JSON
//! file and a picture.

mod benchmark;
mod chart;
mod connect;
mod ends;
mod kernel_ping;
mod memory;
mod ping;
mod polling;
mod report;
mod sample;
mod scale;
mod side;
mod strace;
mod tenant;
mod udapl;
mod wakeups;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Compares what kDAPL costs with what the same costs without it.
#[derive(Parser)]
#[command(version, after_help = "To run all of it: userspace-test/vm/bench")]
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
        /// Those that are run on a machine of so many processors, by their names
        #[arg(long)]
        processors: Option<usize>,
    },
    /// Measures on this machine; prints one sample a line, as JSON.
    Run {
        /// Benchmarks [default: all]
        names: Vec<String>,
        /// Leaves out what this kernel cannot tell, instead of failing
        #[arg(long)]
        partial: bool,
    },
    /// Plays the user at its limits.
    #[command(hide = true)]
    Tenant,
    /// Shows the samples of several boots: a table on standard output.
    Report {
        /// What `run` printed, a file for each boot
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Where to write the figures as a list of {name, unit, ours, peer, ratio, limit}
        #[arg(long)]
        json: Option<PathBuf>,
        /// Where to draw them
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

/// Whether all limits are kept.
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
                        eprintln!("kdapl-bench: {}: left out: {error}", benchmark.name);
                    }
                    outcome => outcome.with_context(|| format!("benchmark {}", benchmark.name))?,
                }
            }
            Ok(true)
        }
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-fuzz`: runs programs of calls to `/dev/kdapl`, minimises them, and reports their
//! coverage.

mod distil;
mod minimise;
mod replay;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use kdapl_fuzz::coverage::{lines, report, Covered, Sites};
use kdapl_fuzz::program::Program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs programs of calls to /dev/kdapl
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs programs, in a guest, as root; prints KTAP with a test for each file
    Replay {
        /// Number of runs of each program
        #[arg(long, default_value_t = 1)]
        times: u32,
        /// Kills each program after so many milliseconds
        #[arg(long, default_value_t = 1000)]
        milliseconds: u32,
        /// Prints how often each call has succeeded and failed
        #[arg(long)]
        answers: bool,
        /// Adds the covered branches to this file, and prints their number
        #[arg(long, value_name = "FILE")]
        coverage: Option<PathBuf>,
        /// Files, or folders of files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Reduces a file of programs as long as a command fails with it
    Minimise {
        /// The command, which gets the name of a file as its last argument
        #[arg(long)]
        test: String,
        /// The file
        file: PathBuf,
        /// The reduced file
        out: PathBuf,
    },
    /// Selects few programs with the coverage of many, in a guest, as root
    Distil {
        /// Folder of programs that are run first
        #[arg(long)]
        seeds: PathBuf,
        /// Kills each program after so many milliseconds
        #[arg(long, default_value_t = 150)]
        milliseconds: u32,
        /// Folder of programs to select from
        folder: PathBuf,
        /// File for the selected programs
        out: PathBuf,
    },
    /// Reports the branch coverage of a module
    Report {
        /// The kdapl.ko with counters
        #[arg(long)]
        module: PathBuf,
        /// The file of covered branches
        coverage: PathBuf,
    },
}

fn main() -> Result<ExitCode> {
    match Arguments::parse().command {
        Command::Replay { times, milliseconds, answers, coverage, files } => {
            replay::Replay { times, milliseconds, answers, coverage }.run(&files)
        }
        Command::Minimise { test, file, out } => {
            let small = minimise::minimise(&read(&file)?, &test)?;
            write(&out, &small)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Distil { seeds, milliseconds, folder, out } => {
            distil::distil(&seeds, &folder, milliseconds, &out)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Report { module, coverage } => {
            let sites = Sites::read(&module)?;
            let covered = Covered::load(&coverage, sites.0.len())?;
            let lines = lines::lines(&module, &sites, &covered)?;
            print!("{}", report::text(&sites, &covered, &lines));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Separates the programs of a file.
const SEPARATOR: &str = "---\n";

/// Reads the programs of a file.
fn read(path: &Path) -> Result<Vec<Program>> {
    let text = fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let programs = text.split(SEPARATOR).map(str::parse);
    programs.collect::<Result<_>>().with_context(|| path.display().to_string())
}

fn write(path: &Path, programs: &[Program]) -> Result<()> {
    let texts: Vec<String> = programs.iter().map(Program::to_string).collect();
    fs::write(path, texts.join(SEPARATOR))
        .with_context(|| format!("cannot write {}", path.display()))
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-fuzz`: runs programs of calls to `/dev/kdapl`, makes them smaller, reports what code they
//! have reached.

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
    /// Runs programs, in a guest, as root; KTAP, a test for each file
    Replay {
        /// Runs each program so many times
        #[arg(long, default_value_t = 1)]
        times: u32,
        /// Kills each program after so many milliseconds
        #[arg(long, default_value_t = 1000)]
        milliseconds: u32,
        /// Shows how often each call has succeeded and failed
        #[arg(long)]
        answers: bool,
        /// Adds the branches that have run to this file, and says how many these are
        #[arg(long, value_name = "FILE")]
        coverage: Option<PathBuf>,
        /// Files, or folders of them
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Makes a file of programs smaller as long as a command fails with it
    Minimise {
        /// The command, which gets the name of a file as its last argument
        #[arg(long)]
        test: String,
        /// The file
        file: PathBuf,
        /// Where the smaller one goes
        out: PathBuf,
    },
    /// Chooses few programs that reach together what many do, in a guest, as root
    Distil {
        /// Folder of programs that are there anyway
        #[arg(long)]
        seeds: PathBuf,
        /// Kills each program after so many milliseconds
        #[arg(long, default_value_t = 150)]
        milliseconds: u32,
        /// Folder of programs
        folder: PathBuf,
        /// Where those go that are chosen
        out: PathBuf,
    },
    /// Reports which branches of a module have run
    Report {
        /// The kdapl.ko that counts
        #[arg(long)]
        module: PathBuf,
        /// The file of those that have
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

/// Between the programs of a file.
const SEPARATOR: &str = "---\n";

/// The programs of a file.
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

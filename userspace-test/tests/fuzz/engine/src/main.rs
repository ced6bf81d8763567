// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-fuzz-engine`: searches for programs that reach new code of `kdapl.ko`. Runs in a guest.

mod case;
mod guest;
mod progress;

use anyhow::{ensure, Context as _, Result};
use case::{Case, Change};
use clap::Parser;
use guest::Guest;
use kdapl_fuzz::coverage::{Counters, Covered, Sites};
use kdapl_fuzz::host::Host;
use kdapl_fuzz::past::Past;
use kdapl_fuzz::program::Program;
use kdapl_fuzz::run::Executor as Runner;
use libafl::corpus::{Corpus as _, InMemoryCorpus};
use libafl::events::SimpleEventManager;
use libafl::feedbacks::{MaxMapFeedback, TimeFeedback};
use libafl::fuzzer::{Evaluator as _, Fuzzer as _, StdFuzzer};
use libafl::monitors::NopMonitor;
use libafl::schedulers::{IndexesLenTimeMinimizerScheduler, QueueScheduler};
use libafl::stages::StdMutationalStage;
use libafl::state::{HasCorpus as _, HasExecutions as _, StdState};
use libafl::{feedback_or, Error};
use libafl_bolts::rands::StdRand;
use libafl_bolts::tuples::tuple_list;
use progress::Progress;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The module that is loaded in the guest.
const MODULE: &str = "/usr/lib/modules/kdapl/kdapl.ko";
/// Exit status after a complaint of the kernel.
const COMPLAINED: u8 = 3;

/// Searches for programs of calls to /dev/kdapl that reach new code
#[derive(Parser)]
struct Arguments {
    /// Folder of initial programs
    #[arg(long)]
    seeds: PathBuf,
    /// Folder of the host for the corpus, the counts and the coverage
    #[arg(long)]
    folder: PathBuf,
    /// Folder of the host, in its memory, for the most recent programs
    #[arg(long)]
    past: PathBuf,
    /// Ends the search after so many seconds
    #[arg(long)]
    seconds: u64,
    /// Kills each program after so many milliseconds
    #[arg(long, default_value_t = 150)]
    milliseconds: u32,
    /// Seed of the random numbers
    #[arg(long)]
    seed: u64,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let host = Host::make()?;
    let runner = Runner::start(arguments.milliseconds)?;
    let count = Sites::read(Path::new(MODULE))?.0.len();
    let counters = Counters::open(count)?;
    let covered = Covered::load(&arguments.folder.join("covered"), count)?;
    let mut guest = Guest::new(runner, counters, Past::new(&arguments.past), covered)?;
    search(&arguments, &mut guest)?;
    let complaint = guest.complaint.take();
    drop((guest, host));
    Ok(match complaint {
        Some(complaint) => {
            println!("the kernel complained: {complaint}");
            ExitCode::from(COMPLAINED)
        }
        None => ExitCode::SUCCESS,
    })
}

fn search(arguments: &Arguments, guest: &mut Guest) -> Result<()> {
    let (map, time) = guest.parts();
    let scheduler = IndexesLenTimeMinimizerScheduler::new(map, QueueScheduler::new());
    let mut feedback = feedback_or!(MaxMapFeedback::new(map), TimeFeedback::new(time));
    // A crash is detected by the host, or on the console.
    let mut objective = ();
    let (corpus, solutions) = (InMemoryCorpus::<Case>::new(), InMemoryCorpus::new());
    let random = StdRand::with_seed(arguments.seed);
    let mut state = StdState::new(random, corpus, solutions, &mut feedback, &mut objective)?;
    let mut fuzzer = StdFuzzer::new(scheduler, feedback, objective);
    let mut manager = SimpleEventManager::new(NopMonitor::new());
    let mut stages = tuple_list!(StdMutationalStage::new(Change::new(arguments.seed)));

    let found = arguments.folder.join("corpus");
    fs::create_dir_all(&found)?;
    let mut progress = Progress::new(&arguments.folder);
    for program in programs(&arguments.seeds)?.into_iter().chain(programs(&found)?) {
        if going_on(fuzzer.evaluate_input(&mut state, guest, &mut manager, &Case(program)))? {
            continue;
        }
        return Ok(());
    }
    ensure!(state.corpus().count() > 0, "no seed reaches any code");
    let mut kept = state.corpus().count();
    println!("{kept} initial programs, {} branches", guest.covered.count());
    while !progress.over(arguments.seconds) {
        let done = fuzzer.fuzz_one(&mut stages, guest, &mut state, &mut manager);
        for index in kept..state.corpus().count() {
            let id = state.corpus().nth(index);
            keep(&found, &state.corpus().cloned_input_for_id(id)?.0)?;
        }
        kept = state.corpus().count();
        let over = !going_on(done)? || guest.complaint.is_some();
        if progress.due() || over {
            progress.report(*state.executions(), kept, &guest.covered)?;
        }
        if over {
            return Ok(());
        }
    }
    progress.report(*state.executions(), kept, &guest.covered)
}

/// Returns whether the search continues. It ends after a complaint.
fn going_on<T>(result: Result<T, Error>) -> Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(Error::ShuttingDown) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the programs of a folder.
fn programs(folder: &Path) -> Result<Vec<Program>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let text = |path: &PathBuf| fs::read_to_string(path).ok();
    // Programs of an older header that do not parse are skipped.
    let programs = paths.iter().filter_map(text).flat_map(|text| {
        text.split("---\n").filter_map(|program| program.parse().ok()).collect::<Vec<_>>()
    });
    Ok(programs.collect())
}

/// Writes a program to a file that is named by a hash of its content.
fn keep(folder: &Path, program: &Program) -> Result<()> {
    let mut hasher = DefaultHasher::new();
    program.hash(&mut hasher);
    let path = folder.join(format!("{:016x}.txt", hasher.finish()));
    fs::write(&path, program.to_string()).with_context(|| path.display().to_string())
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Chooses few programs that reach together what many do.

use crate::read;
use anyhow::{Context as _, Result};
use kdapl_fuzz::coverage::{Counters, Sites};
use kdapl_fuzz::host::Host;
use kdapl_fuzz::program::Program;
use kdapl_fuzz::run::Executor;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The module that is loaded in a guest.
const MODULE: &str = "/usr/lib/modules/kdapl/kdapl.ko";
/// What a program reaches by chance, or what is left of another one, it does not reach each time.
const PASSES: usize = 3;

type Branches = BTreeSet<usize>;

/// Runs the programs of a folder's files, and writes those to a file that reach branches which
/// neither the seeds nor the ones before them do, in the order of how many these are.
pub fn distil(seeds: &Path, folder: &Path, milliseconds: u32, out: &Path) -> Result<()> {
    let host = Host::make()?;
    let mut executor = Executor::start(milliseconds)?;
    let mut counters = Counters::open(Sites::read(Path::new(MODULE))?.0.len())?;
    let (seeds, found) = (programs(seeds)?, programs(folder)?);
    let mut measure = |programs: &[Program]| branches(programs, &mut executor, &mut counters);
    let mut known: Branches = measure(&seeds)?.into_iter().flatten().collect();
    println!("{} seeds reach {} branches", seeds.len(), known.len());
    let reached = measure(&found)?;
    let mut chosen: Vec<(usize, &Program)> = Vec::new();
    while let Some((new, program)) = best(&found, &reached, &known) {
        known.extend(&reached[program]);
        chosen.push((new, &found[program]));
    }
    println!("{} of {} programs reach {} branches", chosen.len(), found.len(), known.len());
    let text = |(new, program): &(usize, &Program)| format!("# {new} more branches\n{program}");
    fs::write(out, chosen.iter().map(text).collect::<Vec<_>>().join(crate::SEPARATOR))
        .with_context(|| format!("cannot write {}", out.display()))?;
    drop((executor, counters, host));
    Ok(())
}

/// The program with most branches that are not known; how many these are.
fn best(found: &[Program], reached: &[Branches], known: &Branches) -> Option<(usize, usize)> {
    let new =
        |at: usize| (reached[at].difference(known).count(), usize::MAX - found[at].steps.len());
    let at = (0..found.len()).max_by_key(|at| new(*at))?;
    (new(at).0 > 0).then_some((new(at).0, at))
}

/// What each program reaches every time.
fn branches(
    programs: &[Program],
    executor: &mut Executor,
    counters: &mut Counters,
) -> Result<Vec<Branches>> {
    let mut reached: Vec<Option<Branches>> = vec![None; programs.len()];
    for _ in 0..PASSES {
        for (program, reached) in programs.iter().zip(&mut reached) {
            counters.clear()?;
            executor.run(program)?;
            let values = counters.read()?.iter().enumerate();
            let run = values.filter(|(_, value)| **value != 0).map(|(at, _)| at);
            *reached = Some(match reached.take() {
                Some(before) => run.filter(|at| before.contains(at)).collect(),
                None => run.collect(),
            });
        }
    }
    Ok(reached.into_iter().map(Option::unwrap_or_default).collect())
}

/// The programs of a folder's files; those that an older header understood are left out.
fn programs(folder: &Path) -> Result<Vec<Program>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths.iter().filter_map(|path| read(path).ok()).flatten().collect())
}

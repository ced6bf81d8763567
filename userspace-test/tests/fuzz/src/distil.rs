// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Selects few programs with the same coverage as many.

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
/// Number of runs of each program. A branch counts if every run reaches it, which excludes chance
/// and leftovers of other programs.
const PASSES: usize = 3;

type Branches = BTreeSet<usize>;

/// Runs the programs of a folder, and selects those that reach branches which neither the seeds nor
/// earlier selected programs reach. Writes them to `out`, the one with most new branches first.
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

/// Returns the number of new branches and the index of the program that reaches most of them.
fn best(found: &[Program], reached: &[Branches], known: &Branches) -> Option<(usize, usize)> {
    let new =
        |at: usize| (reached[at].difference(known).count(), usize::MAX - found[at].steps.len());
    let at = (0..found.len()).max_by_key(|at| new(*at))?;
    (new(at).0 > 0).then_some((new(at).0, at))
}

/// Returns the branches that each program reaches in every run.
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

/// Returns the programs of a folder. Files of an older header that do not parse are skipped.
fn programs(folder: &Path) -> Result<Vec<Program>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths.iter().filter_map(|path| read(path).ok()).flatten().collect())
}

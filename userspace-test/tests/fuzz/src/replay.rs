// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Runs the programs of files, each as a test: the kernel must not complain or hang.

use crate::read;
use anyhow::{ensure, Context as _, Result};
use kdapl_fuzz::console::Console;
use kdapl_fuzz::coverage::{Counters, Covered, Sites};
use kdapl_fuzz::host::Host;
use kdapl_fuzz::run::{Executor, Outcome};
use observe::ktap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// The module that is loaded in a guest.
const MODULE: &str = "/usr/lib/modules/kdapl/kdapl.ko";

/// Options of the runs.
pub struct Replay {
    pub times: u32,
    pub milliseconds: u32,
    pub answers: bool,
    pub coverage: Option<PathBuf>,
}

/// The counters, and the coverage of earlier runs.
struct Counted {
    path: PathBuf,
    counters: Counters,
    covered: Covered,
}

impl Counted {
    fn open(path: &Path) -> Result<Self> {
        let sites = Sites::read(Path::new(MODULE))?;
        let counters = Counters::open(sites.0.len())?;
        let covered = Covered::load(path, sites.0.len())?;
        Ok(Self { path: path.to_path_buf(), counters, covered })
    }

    fn finish(&mut self) -> Result<()> {
        self.covered.add(self.counters.read()?);
        self.covered.save(&self.path)?;
        let (run, all) = (self.covered.count(), self.covered.0.len());
        println!("# {run} of {all} branches of kdapl.ko have run");
        Ok(())
    }
}

impl Replay {
    /// Runs all programs. Succeeds if no test failed.
    pub fn run(&self, files: &[PathBuf]) -> Result<ExitCode> {
        let files = listed(files)?;
        let host = Host::make()?;
        let mut executor = Executor::start(self.milliseconds)?;
        let mut console = Console::open()?;
        let mut counted = self.coverage.as_deref().map(Counted::open).transpose()?;
        println!("{}", ktap::header(files.len()));
        let mut totals = ktap::Totals::default();
        for (number, path) in files.iter().enumerate() {
            let start = Instant::now();
            let complaint = self.one(path, &mut executor, &mut console)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            print!("{}", ktap::diagnostics(complaint.as_deref().unwrap_or_default()));
            let outcome =
                if complaint.is_some() { ktap::Outcome::Failed } else { ktap::Outcome::Passed };
            let description = format!("the kernel survives {name}");
            println!("{}", outcome.line(number + 1, &description, start.elapsed()));
            totals.add(&outcome);
        }
        if let Some(counted) = &mut counted {
            counted.finish()?;
        }
        if self.answers {
            for (call, answers) in executor.answers() {
                println!("# {call}: {answers:?}");
            }
        }
        drop((executor, host));
        println!("{totals}");
        Ok(totals.into())
    }

    fn one(
        &self,
        path: &Path,
        executor: &mut Executor,
        console: &mut Console,
    ) -> Result<Option<String>> {
        let programs = read(path)?;
        for _ in 0..self.times {
            for program in &programs {
                if executor.run(program)? == Outcome::Hung {
                    return Ok(Some("a process cannot be killed".into()));
                }
            }
        }
        Ok(console.complaint())
    }
}

/// Returns the files, and those of folders in the order of their names.
fn listed(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).with_context(|| path.display().to_string())?;
        let mut found = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        found.retain(|path| path.is_file());
        found.sort();
        files.extend(found);
    }
    ensure!(!files.is_empty(), "there is no program");
    Ok(files)
}

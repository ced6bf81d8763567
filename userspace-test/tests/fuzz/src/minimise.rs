// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Removes programs, then steps, then fields that a crash does not need.

use crate::write;
use anyhow::{ensure, Result};
use kdapl_fuzz::program::Program;
use std::env;
use std::fs;
use std::process::Command;

/// Returns the smallest programs that the command still fails with.
pub fn minimise(programs: &[Program], test: &str) -> Result<Vec<Program>> {
    let test = Test { command: test };
    ensure!(test.fails(programs)?, "the command succeeds with the whole file");
    let mut programs = test.fewer(programs.to_vec(), |rest| rest.to_vec())?;
    for at in 0..programs.len() {
        let all = programs.clone();
        let with = |program: Program| {
            let mut programs = all.clone();
            programs[at] = program;
            programs
        };
        let steps = all[at].steps.clone();
        let steps = test.fewer(steps, |rest| with(Program { steps: rest.to_vec() }))?;
        programs[at] = test.plainer(Program { steps }, with)?;
    }
    Ok(programs)
}

struct Test<'a> {
    command: &'a str,
}

impl Test<'_> {
    fn fails(&self, programs: &[Program]) -> Result<bool> {
        let file = env::temp_dir().join(format!("kdapl-fuzz-{}", std::process::id()));
        write(&file, programs)?;
        let line = format!("{} {}", self.command, file.display());
        let status = Command::new("/bin/sh").args(["-c", &line]).status()?;
        fs::remove_file(file)?;
        let steps: usize = programs.iter().map(|program| program.steps.len()).sum();
        println!("{} programs, {steps} steps: {status}", programs.len());
        Ok(!status.success())
    }

    /// Removes pieces, large ones first.
    fn fewer<T: Clone>(
        &self,
        mut items: Vec<T>,
        whole: impl Fn(&[T]) -> Vec<Program>,
    ) -> Result<Vec<T>> {
        let mut piece = items.len().div_ceil(2);
        while piece > 0 {
            let mut at = 0;
            while at < items.len() {
                let mut rest = items.clone();
                rest.drain(at..(at + piece).min(items.len()));
                if !rest.is_empty() && self.fails(&whole(&rest))? {
                    items = rest;
                } else {
                    at += piece;
                }
            }
            piece /= 2;
        }
        Ok(items)
    }

    /// Removes fields.
    fn plainer(
        &self,
        mut program: Program,
        with: impl Fn(Program) -> Vec<Program>,
    ) -> Result<Program> {
        for step in 0..program.steps.len() {
            for field in (0..program.steps[step].fields.len()).rev() {
                let mut less = program.clone();
                less.steps[step].fields.remove(field);
                if self.fails(&with(less.clone()))? {
                    program = less;
                }
            }
        }
        Ok(program)
    }
}

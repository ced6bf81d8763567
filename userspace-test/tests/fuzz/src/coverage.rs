// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Which branches of `kdapl.ko` have run.
//!
//! The module is built with `KDAPL_COVERAGE=y`: the compiler gives each branch a counter. The
//! counters of a loaded module are read through `kdapl_coverage.ko`; where each of them lies is
//! in the module's file.

pub mod lines;
pub mod report;
mod sites;

pub use sites::{Site, Sites};

use crate::host;
use anyhow::{ensure, Context as _, Result};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

const SECTION: &str = "/sys/module/kdapl/sections/__sancov_cntrs";
const READER: &str = "/usr/lib/modules/kdapl/kdapl_coverage.ko";
const COUNTERS: &str = "/sys/kernel/debug/kdapl_coverage";

/// The counters of the module that is loaded.
pub struct Counters {
    file: File,
    /// As they were last read.
    pub values: Vec<u8>,
    zeros: Vec<u8>,
}

impl Counters {
    /// Loads the module that gives access to them.
    ///
    /// # Errors
    /// If the module that is loaded has none, or this is not root.
    pub fn open(count: usize) -> Result<Self> {
        let start = fs::read_to_string(SECTION);
        let start = start.context("the kdapl.ko that is loaded does not count")?;
        host::command(&format!("insmod {READER} start={} size={count}", start.trim()))?;
        let file = OpenOptions::new().read(true).write(true).open(COUNTERS)?;
        Ok(Self { file, values: vec![0; count], zeros: vec![0; count] })
    }

    /// Reads them.
    ///
    /// # Errors
    /// If the kernel does not let it.
    pub fn read(&mut self) -> Result<&[u8]> {
        let length = self.file.read_at(&mut self.values, 0)?;
        ensure!(length == self.values.len(), "{length} counters were read");
        Ok(&self.values)
    }

    /// Sets all of them to 0.
    ///
    /// # Errors
    /// If the kernel does not let it.
    pub fn clear(&self) -> Result<()> {
        Ok(self.file.write_all_at(&self.zeros, 0)?)
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        let _ = host::command("rmmod kdapl_coverage");
    }
}

/// Which counters have ever been other than 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered(pub Vec<bool>);

impl Covered {
    /// Those that a file names; none if there is no file.
    ///
    /// # Errors
    /// If the file belongs to another module.
    pub fn load(path: &Path, count: usize) -> Result<Self> {
        let mut covered = vec![false; count];
        let Ok(text) = fs::read_to_string(path) else { return Ok(Self(covered)) };
        let mut lines = text.lines();
        let of: usize = lines.next().unwrap_or_default().parse().unwrap_or(0);
        if of != count {
            // Of a module that has been built anew since.
            return Ok(Self(covered));
        }
        for line in lines.filter(|line| !line.is_empty()) {
            let index: usize = line.parse().with_context(|| format!("'{line}' is no number"))?;
            *covered.get_mut(index).context("a counter that there is not")? = true;
        }
        Ok(Self(covered))
    }

    /// Writes them to a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let set = self.0.iter().enumerate().filter(|(_, covered)| **covered);
        let lines: Vec<String> = set.map(|(index, _)| index.to_string()).collect();
        fs::write(path, format!("{}\n{}\n", self.0.len(), lines.join("\n")))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Adds what has run; how many are new.
    pub fn add(&mut self, values: &[u8]) -> usize {
        let mut new = 0;
        for (covered, value) in self.0.iter_mut().zip(values) {
            new += usize::from(*value != 0 && !*covered);
            *covered |= *value != 0;
        }
        new
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().filter(|covered| **covered).count()
    }
}

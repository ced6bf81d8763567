// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Measures the branch coverage of `kdapl.ko`.
//!
//! A build with `KDAPL_COVERAGE=y` gives each branch a counter. `kdapl_coverage.ko` gives access to
//! the counters of the loaded module. The module's file contains the address of each.

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

/// The counters of the loaded module.
pub struct Counters {
    file: File,
    /// Values of the last read.
    pub values: Vec<u8>,
    zeros: Vec<u8>,
}

impl Counters {
    /// Loads the module that gives access to the counters.
    ///
    /// # Errors
    /// If the loaded module has no counters, or this is not root.
    pub fn open(count: usize) -> Result<Self> {
        let start = fs::read_to_string(SECTION);
        let start = start.context("the kdapl.ko that is loaded does not count")?;
        host::command(&format!("insmod {READER} start={} size={count}", start.trim()))?;
        let file = OpenOptions::new().read(true).write(true).open(COUNTERS)?;
        Ok(Self { file, values: vec![0; count], zeros: vec![0; count] })
    }

    /// Reads the counters.
    ///
    /// # Errors
    /// If the kernel refuses the read.
    pub fn read(&mut self) -> Result<&[u8]> {
        let length = self.file.read_at(&mut self.values, 0)?;
        ensure!(length == self.values.len(), "{length} counters were read");
        Ok(&self.values)
    }

    /// Sets all counters to 0.
    ///
    /// # Errors
    /// If the kernel refuses the write.
    pub fn clear(&self) -> Result<()> {
        Ok(self.file.write_all_at(&self.zeros, 0)?)
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        let _ = host::command("rmmod kdapl_coverage");
    }
}

/// The counters that were ever other than 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered(pub Vec<bool>);

impl Covered {
    /// Reads the covered counters from a file. Without a file there are none.
    ///
    /// # Errors
    /// If the file belongs to another module.
    pub fn load(path: &Path, count: usize) -> Result<Self> {
        let mut covered = vec![false; count];
        let Ok(text) = fs::read_to_string(path) else { return Ok(Self(covered)) };
        let mut lines = text.lines();
        let of: usize = lines.next().unwrap_or_default().parse().unwrap_or(0);
        if of != count {
            // The file belongs to an older build of the module.
            return Ok(Self(covered));
        }
        for line in lines.filter(|line| !line.is_empty()) {
            let index: usize = line.parse().with_context(|| format!("'{line}' is no number"))?;
            *covered.get_mut(index).context("the counter does not exist")? = true;
        }
        Ok(Self(covered))
    }

    /// Writes the covered counters to a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let set = self.0.iter().enumerate().filter(|(_, covered)| **covered);
        let lines: Vec<String> = set.map(|(index, _)| index.to_string()).collect();
        fs::write(path, format!("{}\n{}\n", self.0.len(), lines.join("\n")))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Adds the counters of a run. Returns the number of new ones.
    pub fn add(&mut self, values: &[u8]) -> usize {
        let mut new = 0;
        for (covered, value) in self.0.iter_mut().zip(values) {
            new += usize::from(*value != 0 && !*covered);
            *covered |= *value != 0;
        }
        new
    }

    /// Returns the number of covered counters.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().filter(|covered| **covered).count()
    }
}

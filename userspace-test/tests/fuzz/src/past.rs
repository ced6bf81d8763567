// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Stores the most recent programs in a folder of the host, where they survive a crash of the
//! guest.

use crate::program::Program;
use anyhow::{Context as _, Result};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Number of stored programs. An earlier program may have caused the crash.
pub const KEPT: u64 = 16;

/// The folder.
pub struct Past {
    folder: PathBuf,
    number: u64,
}

impl Past {
    /// Stores programs in this folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), number: 0 }
    }

    /// Stores a program that is about to run.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn record(&mut self, program: &Program) -> Result<()> {
        let path = self.folder.join((self.number % KEPT).to_string());
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(format!("# run {}\n{program}", self.number).as_bytes())?;
            // The folder is the host's. The program leaves the guest's memory here.
            file.sync_data()
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
        self.number += 1;
        Ok(())
    }
}

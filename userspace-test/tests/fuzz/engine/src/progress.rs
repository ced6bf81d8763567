// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Records the progress over all boots of the guest, in files of a folder on the host.

use anyhow::Result;
use kdapl_fuzz::coverage::Covered;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Interval of the records and of the printed lines.
const INTERVAL: Duration = Duration::from_secs(60);

/// Counts and times.
pub struct Progress {
    file: PathBuf,
    earlier: (u64, u64),
    start: Instant,
    next: Instant,
}

impl Progress {
    /// Continues from the record of an earlier boot.
    pub fn new(folder: &Path) -> Self {
        let file = folder.join("totals");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
        let earlier = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let start = Instant::now();
        Self { file, earlier, start, next: start + INTERVAL }
    }

    /// Returns whether the time is over.
    pub fn over(&self, seconds: u64) -> bool {
        self.start.elapsed().as_secs() >= seconds
    }

    /// Returns whether a minute has passed.
    pub fn due(&mut self) -> bool {
        let due = Instant::now() >= self.next;
        if due {
            self.next += INTERVAL;
        }
        due
    }

    /// Prints the progress, and records it.
    pub fn report(&self, programs: u64, kept: usize, covered: &Covered) -> Result<()> {
        let seconds = self.start.elapsed().as_secs();
        let (all, time) = (self.earlier.0 + programs, self.earlier.1 + seconds);
        let rate = programs as f64 / seconds.max(1) as f64;
        let (run, branches) = (covered.count(), covered.0.len());
        let percent = 100.0 * run as f64 / branches.max(1) as f64;
        println!(
            "after {} min: {all} programs ({rate:.0}/s), {kept} kept, \
             {run} of {branches} branches ({percent:.1} %)",
            time / 60
        );
        fs::write(&self.file, format!("{all} programs\n{time} seconds\n"))?;
        covered.save(&self.file.with_file_name("covered"))
    }
}

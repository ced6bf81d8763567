// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What has run and what has not, for a person.

use super::{Covered, Sites};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Branches that have run, and all.
#[derive(Clone, Copy, Default)]
struct Count {
    run: usize,
    all: usize,
}

impl Count {
    fn add(&mut self, covered: bool) {
        self.run += usize::from(covered);
        self.all += 1;
    }

    fn percent(self) -> f64 {
        100.0 * self.run as f64 / self.all.max(1) as f64
    }
}

/// A table of the module's files, and the functions of which nothing has run.
#[must_use]
pub fn text(sites: &Sites, covered: &Covered) -> String {
    let mut whole = Count::default();
    let mut files: BTreeMap<&str, Count> = BTreeMap::new();
    let mut functions: BTreeMap<&str, Count> = BTreeMap::new();
    for (site, covered) in sites.0.iter().zip(&covered.0) {
        whole.add(*covered);
        files.entry(&site.file).or_default().add(*covered);
        functions.entry(&site.function).or_default().add(*covered);
    }
    let mut text = format!(
        "{} of {} branches of kdapl.ko have run ({:.1} %)\n\n{:>6} {:>6} {:>5}  file\n",
        whole.run,
        whole.all,
        whole.percent(),
        "run",
        "all",
        "%"
    );
    for (file, count) in &files {
        let percent = count.percent();
        let _ = writeln!(text, "{:>6} {:>6} {percent:>5.0}  {file}", count.run, count.all);
    }
    text.push_str("\nFunctions with branches that have not run (run/all):\n");
    for (function, count) in functions.iter().filter(|(_, count)| count.run < count.all) {
        let _ = writeln!(text, "{:>4}/{:<4} {function}", count.run, count.all);
    }
    text
}

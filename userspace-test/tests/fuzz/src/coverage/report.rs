// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Prints the coverage.

use super::lines::Lines;
use super::{Covered, Sites};
use std::fmt::Write as _;

/// Number of covered items, and of all.
#[derive(Clone, Copy, Default)]
struct Count {
    run: usize,
    all: usize,
}

impl Count {
    fn of(each: impl Iterator<Item = bool>) -> Self {
        each.fold(Self::default(), |count, run| Self {
            run: count.run + usize::from(run),
            all: count.all + 1,
        })
    }

    fn percent(self) -> f64 {
        100.0 * self.run as f64 / self.all.max(1) as f64
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} ({:.1} %)", self.run, self.all, self.percent())
    }
}

/// Files for kernel consumers, which no program can reach.
const FOR_OTHERS: &[&str] = &["rust/kapi", "rust/dat/evd/upcall", "rust/rdma/kernel_memory"];

/// Returns the coverage of branches, also of those without a line, and the coverage of lines: each
/// file with the lines that have not run.
#[must_use]
pub fn text(sites: &Sites, covered: &Covered, lines: &Lines) -> String {
    let whole = Count::of(covered.0.iter().copied());
    let possible = sites.0.iter().zip(&covered.0).filter(|(site, run)| **run || !site.panics);
    let possible = Count::of(possible.map(|(_, run)| *run));
    let ours = || lines.iter().filter(|(file, _)| !FOR_OTHERS.iter().any(|f| file.starts_with(f)));
    let reachable = Count::of(ours().flat_map(|(_, lines)| lines.values().copied()));
    let mut text = format!(
        "{whole} branches of kdapl.ko have run; {possible} of those that are no panic; {reachable} \
         lines with branches outside of the interface for kernel consumers\n\n  run   all    %  \
         file: lines that have not run\n"
    );
    for (file, lines) in ours() {
        let count = Count::of(lines.values().copied());
        let missing = lines.iter().filter(|(_, run)| !**run).map(|(line, _)| line.to_string());
        let missing: Vec<_> = missing.collect();
        let (Count { run, all }, percent) = (count, count.percent());
        let _ = writeln!(text, "{run:>5} {all:>5} {percent:>4.0}  {file}: {}", missing.join(" "));
    }
    text
}
